"""How far annotators agree with each other, whatever kind of judgment they gave."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..data.grades import MAX_LEVELS
from ..data.judgments import Grades, Judgments, Mixed, parts_of
from ..metrics.agreement import count_ordered_pairs, equal_pairs, krippendorff_alpha, own_cells
from .coded_judgments import code_judgments
from .habits import things_of


@dataclass(frozen=True)
class Agreement:
    """Agreement between annotators; where nobody is named, each judgment is by somebody else.

    Parameters
    ----------
    same
        Share of equal answers among all pairs of answers to the same thing by different annotators; NaN where there
        are none.
    alpha
        Krippendorff's alpha: 1 is full agreement, 0 what chance would give; nominal for nominal grades, otherwise
        ordinal. NaN where no two annotators judged the same or all answers are the same.
    n_shared
        Items, or pairs of items, that at least two annotators judged.
    """

    same: float
    alpha: float
    n_shared: int


def agreement(judgments: Judgments) -> Agreement:
    """Return how far annotators agree on items (grades) or on pairs of items (preferences, rankings as preferences).

    Examples
    --------
    >>> from crowdrank.data.judgments import Preferences
    >>> rows = [("ann", "q", "x", "y", "x"), ("bob", "q", "y", "x", "x"), ("ann", "q", "x", "z", "x")]
    >>> agreement(Preferences.from_rows(rows))
    Agreement(same=1.0, alpha=1.0, n_shared=1)
    """
    level = "nominal" if isinstance(judgments, Grades) and judgments.nominal else "ordinal"
    part, (thing, answer, _) = things_of(judgments)
    who = part.annotator if part.n_annotators else None
    own = own_cells(thing, who)
    pairs = count_ordered_pairs(thing, own)
    n_shared = int((pairs > 0).sum())
    if not n_shared:
        return Agreement(float("nan"), float("nan"), 0)
    same = equal_pairs(thing, np.unique(answer, return_inverse=True)[1], own, len(pairs)).sum() / pairs.sum()
    if not isinstance(judgments, Grades):
        # either item may stand first, so each pair counts both ways: chance agreement is then the same for both
        thing, answer = np.append(thing, thing + int(thing.max()) + 1), np.append(answer, -answer)
        who = None if who is None else np.append(who, who)
    return Agreement(float(same), krippendorff_alpha(thing, who, answer, level=level), n_shared)


MOST = 200
_MIN_ANSWERS = 3


def contested_items(judgments: Judgments | Mixed, consensus: Consensus) -> pl.DataFrame:
    """Return where the crowd disagrees most, the most divided first; at most 200 rows.

    For preferences and rankings: [query,] item, other, n_answers, n_item (prefer the item), n_other, n_tied and
    divided, the share of all but the commonest answer, cautiously. For grades: [query,] item, n_answers, lowest,
    highest and spread, the standard deviation of the grades (of classes without an order: divided, the share of all
    but the commonest). What has fewer than three answers is left out.
    """
    part = max(parts_of(judgments), key=len)
    coded = code_judgments(part)
    if isinstance(part, Grades):
        # items by how far apart their grades are
        grade, items = pl.col("grade"), part.items
        if part.nominal:
            codes = pl.DataFrame({"code": coded.first[coded.thing], "grade": coded.code})
            classes = codes.group_by("code", "grade").len()
            worst, table = "divided", classes.group_by("code").agg(divided=1 - pl.max("len") / pl.sum("len"))
        else:
            spread = ((grade**2).mean() - grade.mean() ** 2).clip(0.0).sqrt()
            by_item = pl.DataFrame({"code": part.item, "grade": part.grade}).group_by("code")
            worst, table = "spread", by_item.agg(lowest=grade.min(), highest=grade.max(), spread=spread)
        number = pl.Series(np.bincount(part.item, minlength=part.n_items)).gather(table["code"])
        table = table.with_columns(n_answers=number).filter(pl.col("n_answers") >= _MIN_ANSWERS)
        table = table.sort(worst, "code", descending=[True, False]).head(MOST)
        columns = {} if items.single else {"query": items.query_ids().gather(table["code"])}
        ids = pl.DataFrame({**columns, "item": items.ids.gather(table["code"])})
        return ids.hstack(table.select("n_answers", pl.all().exclude("code", "n_answers")))
    n_items = max(part.n_items, 1)
    key = coded.first.astype(np.int64)[coded.thing] * n_items + coded.second[coded.thing]
    pairs, cell = np.unique(key, return_inverse=True)
    votes = np.bincount(cell * 3 + coded.code, minlength=3 * len(pairs)).reshape(-1, 3)
    number = votes.sum(axis=1)
    # a share less one standard error (Wilson), so few votes do not look more divided than many
    share = (number - votes.max(axis=1)) / number
    middle, reach = share + 0.5 / number, np.sqrt(share * (1 - share) / number + 0.25 / number**2)
    divided = (middle - reach) / (1 + 1 / number)
    order = np.argsort(-divided, kind="stable")
    order = order[number[order] >= _MIN_ANSWERS][:MOST]
    first, second = pairs[order] // n_items, pairs[order] % n_items
    ahead = consensus.scores[first] >= consensus.scores[second]
    item, other = np.where(ahead, first, second), np.where(ahead, second, first)
    items, (lost, tied, won) = consensus.items, votes[order].T
    columns = {} if items.single else {"query": items.queries.ids.gather(items.query[item])}
    columns |= {"item": items.ids.gather(item), "other": items.ids.gather(other)}
    counts = {"n_answers": number[order], "n_item": np.where(ahead, won, lost), "n_other": np.where(ahead, lost, won)}
    return pl.DataFrame({**columns, **counts, "n_tied": tied, "divided": divided[order]})


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

# threshold (sample): items and levels looked at for classes without an order
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
    # number of grades of each level that items with several grades have, (n_items, n_levels)
    values, n_items = np.sort(grades.level_values), grades.n_items
    level, n_levels = np.searchsorted(values, grades.grade), len(values)
    several = np.flatnonzero(np.bincount(grades.item, minlength=n_items) > 1)
    # many items are as good as all
    several = several[:: max(1, -(-len(several) * n_levels // _MOST_CELLS))]
    place = np.full(n_items, -1, np.int64)
    place[several] = np.arange(len(several))
    use = place[grades.item] >= 0
    counts = np.bincount(place[grades.item[use]] * n_levels + level[use], minlength=len(several) * n_levels)
    tables = counts.reshape(-1, n_levels).astype(np.float64)
    weighed = tables / (tables.sum(axis=1, keepdims=True) - 1.0)
    together = np.einsum("ik,il->kl", weighed, tables)
    # a grade is no pair with itself
    own = weighed.sum(axis=0)
    n_pairs, same = float(together.sum() - own.sum()), float(np.trace(together) - own.sum())
    apart = together - np.diag(np.diag(together))
    if float(apart.sum()) / 2.0 < _FEWEST_DISAGREEMENTS:
        return None
    # agreement of two annotators beyond chance [Fleiss71]_
    shares = tables.sum(axis=0) / tables.sum()
    chance = float(shares @ shares)
    kappa = (same / n_pairs - chance) / max(1.0 - chance, 1e-12)
    if kappa < _LEAST_KAPPA:
        return None
    # mean distance of grades that disagree, as a share of that by chance, and its standard error over items
    sums = apart.sum(axis=1)
    size = np.sqrt(sums)
    for _ in range(_MAX_ROUNDS):
        size = np.sqrt(size * sums / np.maximum(size.sum() - size, 1e-12))
    expected = np.outer(size, size) * (1.0 - np.eye(n_levels))
    distance = np.abs(np.subtract.outer(np.arange(n_levels), np.arange(n_levels))).astype(np.float64)
    total = float((expected * distance).sum())
    ratio = float((apart * distance).sum()) / total
    from_each = (expected * distance).sum(axis=1) / np.maximum(expected.sum(axis=1), 1e-12)
    residual = distance - 0.5 * ratio * (from_each[:, None] + from_each)
    np.fill_diagonal(residual, 0.0)
    of_items = np.einsum("ik,kl,il->i", weighed, residual, tables, optimize=True)
    reach = _ONE_IN_HUNDRED * float(np.sqrt((of_items**2).sum())) / total
    if ratio + reach < 1.0 or ratio - reach < _ORDERED.get(len(grades.levels), _ORDERED_IN_MANY):
        return None
    return f"where two annotators disagree, their grades are as far apart as by chance ({ratio:.2f} of that distance)"
