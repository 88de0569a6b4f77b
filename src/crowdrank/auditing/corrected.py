"""The figure after correction: what people found on a sample, sharpened by a program, and how many labels it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..metrics.significance import PoweredMean, prediction_powered_mean
from ..protocols import Bools, Counts, Floats
from .labels import Labels

_MAX_CLASSES = 20
_MIN_CASES = 10
"""Cases with labels of both, below which a figure is not corrected."""

MAX_NEXT = 1000


class Figure(NamedTuple):
    """A figure as a mean: the value of each case by people and by a program, NaN where there is none."""

    name: str
    people: Floats
    program: Floats


def figures(people: Labels, values: Floats, threshold: float | None, classes: tuple[Any, ...]) -> Iterator[Figure]:
    """Return the means, rates and win rates that labels of a kind have."""
    n = len(values)
    if people.kind != "grade":
        both = people.cells.filter(pl.Series((people.number > 0) & ~np.isnan(values)))
        names = pl.concat([both["item"], both["other"].alias("item")]).value_counts().sort("item")
        ahead = (0.5 + 0.5 * people.mean, 0.5 + 0.5 * values)
        for name in names.filter(pl.col("count") >= _MIN_CASES)["item"]:
            left = (people.cells["item"] == name).to_numpy()
            plays = left | (people.cells["other"] == name).to_numpy()
            sides = [np.where(plays, np.where(left, one, 1.0 - one), np.nan) for one in ahead]
            yield Figure(f"win rate of {name}", sides[0], sides[1])
    elif people.nominal:
        for code in np.unique(people.value)[:_MAX_CLASSES]:
            share = _share(people, people.value == code, n)
            yield Figure(f"share of {classes[int(code)]}", share, _holds(values, values == code))
    else:
        yield Figure("mean grade", people.mean, values)
        if threshold is not None:
            share = _share(people, people.value >= threshold, n)
            yield Figure(f"share of at least {threshold:g}", share, _holds(values, values >= threshold))


def _share(people: Labels, named: Bools, n: int) -> Floats:
    """Share of people's labels of each cell for which something holds, NaN where there are none."""
    sums = np.bincount(people.cell, named, n)
    return np.divide(sums, people.number, out=np.full(n, np.nan), where=people.number > 0)


def _holds(values: Floats, mask: Bools) -> Floats:
    """1 or 0 for each value, NaN where there is none."""
    return np.where(np.isnan(values), np.nan, mask.astype(np.float64))


def corrected_row(figure: Figure, cluster: Counts, level: float) -> dict[str, Any] | None:
    """Return a figure by people alone, by the program alone and corrected, and how many labels would halve its width.

    ``None`` where too few cases have both.
    """
    known, said = ~np.isnan(figure.people), ~np.isnan(figure.program)
    both, rest = known & said, said & ~known
    n = int(both.sum())
    if n < _MIN_CASES:
        return None
    h, f, other = figure.people[both], figure.program[both], figure.program[rest]
    n_clusters = len(np.unique(cluster[both]))
    # queries with several cases are clusters; where each has one, cases are independent
    clusters = (cluster[both], cluster[rest]) if 1 < n_clusters < n else None
    joint, alone = (
        _of_few(prediction_powered_mean(h, f, other, level=level, lam=lam, clusters=clusters), level, n, n_clusters)
        for lam in (None, 0.0)
    )
    width = alone.upper - alone.lower
    # at m labels the variance is that of the residuals over m, and that of the program over what it judged besides
    left = float(np.var(h)) / (4 * n) - (joint.lam**2 * float(np.var(other)) / len(other) if len(other) else 0.0)
    halving = float(np.var(h - joint.lam * f)) / left if left > 0 else np.inf
    return {
        "figure": figure.name, "people": alone.mean, "people_lower": alone.lower, "people_upper": alone.upper,
        "program_says": float(figure.program[said].mean()), "corrected": joint.mean, "lower": joint.lower,
        "upper": joint.upper, "relative_width": (joint.upper - joint.lower) / width if width > 0 else 1.0,
        "weight": joint.lam, "n_people": n, "n_program": int(said.sum()),
        "labels_to_halve": int(min(np.ceil(halving), 4 * n)), "labels_to_halve_alone": 4 * n,
        **rogan_gladen(h, f, figure.program[said], level),
    }  # fmt: skip


def _of_few(found: PoweredMean, level: float, n: int, n_clusters: int) -> PoweredMean:
    """The mean with the interval of Student's t: its spread, and the weight of the program, are learned from few."""
    from scipy.special import stdtrit

    # the variance of clusters makes up for their mean already
    number, spread = (n_clusters, n_clusters - 1) if 1 < n_clusters < n else (n, n)
    degrees = max(number - 1 - (found.lam > 0), 1)
    factor = stdtrit(degrees, 0.5 + level / 2) / NormalDist().inv_cdf(0.5 + level / 2) * (spread / degrees) ** 0.5
    half = float(factor) * (found.upper - found.mean)
    return replace(found, lower=found.mean - half, upper=found.mean + half)


def rogan_gladen(h: Floats, f: Floats, everywhere: Floats, level: float) -> dict[str, float | None]:
    """Return the rate of a test with errors, corrected by its sensitivity and specificity [Rogan78]; of rates alone."""
    names = ("rogan_gladen", "rogan_gladen_lower", "rogan_gladen_upper")
    good, bad = float(h.sum()), float((1 - h).sum())
    if not np.isin(f, (0.0, 1.0)).all() or not ((h >= 0) & (h <= 1)).all() or min(good, bad) < 1:
        return dict.fromkeys(names)
    sensitivity, specificity = float((h * f).sum()) / good, float(((1 - h) * (1 - f)).sum()) / bad
    youden = sensitivity + specificity - 1
    if youden <= 0.05:
        # hardly better than chance: any rate would do
        return dict.fromkeys(names)
    said = float(everywhere.mean())
    rate = min(max((said + specificity - 1) / youden, 0.0), 1.0)
    variance = said * (1 - said) / len(everywhere)
    variance += rate**2 * sensitivity * (1 - sensitivity) / good
    variance += (1 - rate) ** 2 * specificity * (1 - specificity) / bad
    half = NormalDist().inv_cdf(0.5 + level / 2) * variance**0.5 / youden
    return dict(zip(names, (rate, max(rate - half, 0.0), min(rate + half, 1.0)), strict=True))


def next_labels(people: Labels, values: Floats, seed: int) -> pl.DataFrame:
    """Return cells that the program labelled and people did not, best first for the corrected figure.

    They are drawn without replacement with chances in proportion to the spread of people's labels less the program's,
    given what the program says: where it is a poor guide, people are asked more.
    """
    both = (people.number > 0) & ~np.isnan(values)
    wanted = np.flatnonzero((people.number == 0) & ~np.isnan(values))
    if people.nominal:
        residual = _share(people, people.value != values[people.cell], len(values))
    else:
        residual = people.mean - values
    overall = max(float(residual[both].std()), 1e-9)
    said, code = np.unique(values[both], return_inverse=True)
    number = np.bincount(code)
    mean = np.bincount(code, residual[both]) / number
    square = np.bincount(code, (residual[both] - mean[code]) ** 2)
    # two cases of the overall spread stand beside what was seen of a label
    spread = np.sqrt((square + 2 * overall**2) / (number + 2))
    place = np.clip(np.searchsorted(said, values[wanted]), 0, len(said) - 1)
    chance = np.where(said[place] == values[wanted], spread[place], overall)
    keys = np.random.default_rng(seed).exponential(size=len(wanted)) / chance
    order = np.argsort(keys, kind="stable")[:MAX_NEXT]
    return people.cells[wanted[order]].with_columns(spread=pl.Series(chance[order], dtype=pl.Float64))
