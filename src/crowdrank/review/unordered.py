"""Whether grades that are numbers look like classes without an order, such as digits or numbers of categories."""

from __future__ import annotations

import numpy as np

from ..data.grades import MAX_LEVELS
from ..data.judgments import Grades
from ..protocols import Floats

_FEWEST_LEVELS = 4
"""Three levels have as many ways to disagree as shares of levels explain, so nothing is left to test."""

_FEWEST_DISAGREEMENTS = 100.0
_LEAST_KAPPA = 0.25
"""Annotators must agree beyond chance: those who guess disagree at all distances alike, whatever the grades mean."""

_ONE_IN_HUNDRED = 2.3263478740408408
_ORDERED = {4: 0.95, 5: 0.95}
_ORDERED_IN_MANY = 0.9
"""Grades in an order are nearer than this share of the distance by chance: of 4 levels they were at .953 (92,721 grades
of adult content), of 5 at .92 (web search), of 13 at .62 (peer grading)."""

_MOST_CELLS = 20_000_000
_MAX_ROUNDS = 500


def looks_unordered(grades: Grades) -> str | None:
    """Return why grades look like classes without an order, nothing where they do not, or where that is not clear.

    Two annotators who disagree on an item are a number of levels apart. In an order they are mostly near; classes are
    as far apart as the shares of the classes have it (quasi-independence [Goodman68]_). Said where the mean distance is
    not smaller than that at a level of 1 %, and larger than grades in an order have it at the same level.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth, asked = rng.integers(0, 6, 100), np.tile(np.arange(100), 5)
    >>> given = np.where(rng.random(500) < 0.7, truth[asked], rng.integers(0, 6, 500))
    >>> rows = [(f"a{k // 100}", "q", f"i{i}", int(g)) for k, (i, g) in enumerate(zip(asked, given))]
    >>> looks_unordered(Grades.from_rows(rows))
    'where two annotators disagree, their grades are as far apart as by chance (0.98 of that distance)'
    """
    if grades.nominal or not _FEWEST_LEVELS <= len(grades.levels) <= MAX_LEVELS:
        return None
    tables = _tables(grades)
    together = np.einsum("ik,il->kl", tables / (tables.sum(axis=1, keepdims=True) - 1.0), tables)
    # a grade is no pair with itself
    own = (tables / (tables.sum(axis=1, keepdims=True) - 1.0)).sum(axis=0)
    n_pairs, same = float(together.sum() - own.sum()), float(np.trace(together) - own.sum())
    apart = together - np.diag(np.diag(together))
    if float(apart.sum()) / 2.0 < _FEWEST_DISAGREEMENTS or _kappa(tables, same / n_pairs) < _LEAST_KAPPA:
        return None
    ratio, error = _distance(tables, apart)
    reach = _ONE_IN_HUNDRED * error
    if ratio + reach < 1.0 or ratio - reach < _ORDERED.get(len(grades.levels), _ORDERED_IN_MANY):
        return None
    return f"where two annotators disagree, their grades are as far apart as by chance ({ratio:.2f} of that distance)"


def _tables(grades: Grades) -> Floats:
    """Number of grades of each level that items with several grades have, (n_items, n_levels)."""
    values = np.sort(grades.level_values)
    level = np.searchsorted(values, grades.grade)
    n_items, n_levels = grades.n_items, len(values)
    several = np.flatnonzero(np.bincount(grades.item, minlength=n_items) > 1)
    # many items are as good as all
    several = several[:: max(1, -(-len(several) * n_levels // _MOST_CELLS))]
    place = np.full(n_items, -1, np.int64)
    place[several] = np.arange(len(several))
    use = place[grades.item] >= 0
    counts = np.bincount(place[grades.item[use]] * n_levels + level[use], minlength=len(several) * n_levels)
    return counts.reshape(-1, n_levels).astype(np.float64)


def _kappa(tables: Floats, agreement: float) -> float:
    """Agreement of two annotators beyond chance [Fleiss71]_."""
    shares = tables.sum(axis=0) / tables.sum()
    chance = float(shares @ shares)
    return (agreement - chance) / max(1.0 - chance, 1e-12)


def _distance(tables: Floats, apart: Floats) -> tuple[float, float]:
    """Mean distance of grades that disagree, as a share of that by chance, and its standard error over items."""
    sums = apart.sum(axis=1)
    size = np.sqrt(sums)
    for _ in range(_MAX_ROUNDS):
        size = np.sqrt(size * sums / np.maximum(size.sum() - size, 1e-12))
    expected = np.outer(size, size) * (1.0 - np.eye(len(size)))
    distance = np.abs(np.subtract.outer(np.arange(len(size)), np.arange(len(size)))).astype(np.float64)
    total = float((expected * distance).sum())
    ratio = float((apart * distance).sum()) / total
    from_each = (expected * distance).sum(axis=1) / np.maximum(expected.sum(axis=1), 1e-12)
    residual = distance - 0.5 * ratio * (from_each[:, None] + from_each)
    np.fill_diagonal(residual, 0.0)
    weighed = tables / (tables.sum(axis=1, keepdims=True) - 1.0)
    of_items = np.einsum("ik,kl,il->i", weighed, residual, tables, optimize=True)
    return ratio, float(np.sqrt((of_items**2).sum())) / total
