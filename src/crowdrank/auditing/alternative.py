"""The alternative annotator test: does a program agree with people as well as one of them does [Calderon25]."""

from __future__ import annotations

from math import comb
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.judged import pairs_of_groups
from ..protocols import Bools, Floats
from .labels import Labels

_FALSE_DISCOVERIES = 0.05
_FEW = 30
"""Items of a person below which the test is exact."""

_EQUAL = 1e-9


class Alternative(NamedTuple):
    """What the test found of a program: the share of people it wins against, and how it does against each.

    ``advantage`` is the mean over people of the probability that the program agrees with the others as well as that
    person or better, with the ends of its interval; ``share_lost`` is the share of people who are clearly better.
    ``table`` has a row per person. ``gain`` is the program's agreement with people less that of people with each other,
    by cell.
    """

    winning_rate: float
    share_lost: float
    advantage: float
    lower: float
    upper: float
    n_items: int
    table: pl.DataFrame
    gain: Floats


def alternative_test(people: Labels, values: Floats, margin: float, level: float, ids: pl.Series) -> Alternative:
    r"""Return the test of a program whose values are given by cell.

    Person :math:`j` is left out; on each of their items the program's mean agreement with the other people is compared
    with the person's own. With :math:`W^p` and :math:`W^h` whether the program, or the person, agrees at least as well,
    the program wins against :math:`j` where :math:`\overline{W^h} - \overline{W^p}` is below the margin by Student's t,
    by all exchanges of sign where items are fewer than 30, with Benjamini and Yekutieli's bound of .05 on false
    discoveries over people.
    """
    one, other = pairs_of_groups([people.cell.astype(np.int32)])
    first, second = np.concatenate([one, other]), np.concatenate([other, one])
    n = len(people.cell)
    given = values[people.cell]
    n_others = np.bincount(first, minlength=n)
    agreed = {}
    for name, own in (("person", people.value), ("program", given)):
        sums = np.bincount(first, people.agree(own[first], people.value[second]), n)
        agreed[name] = np.divide(sums, n_others, out=np.full(n, np.nan), where=n_others > 0)
    rows = pl.DataFrame({
        "person": people.annotator, "instance": people.instance[people.cell], "own": agreed["person"],
        "program": agreed["program"],
    }).filter(pl.Series((n_others > 0) & ~np.isnan(given)))  # fmt: skip
    rows = rows.group_by("person", "instance").agg(pl.col("own", "program").mean()).sort("person", "instance")
    own, program = rows["own"].to_numpy(), rows["program"].to_numpy()
    wins, losses = program >= own - _EQUAL, own >= program - _EQUAL
    person, instance = rows["person"].to_numpy(), rows["instance"].to_numpy()
    table = []
    for code in np.unique(person):
        mine = person == code
        lead = losses[mine].astype(np.float64) - wins[mine]
        table.append({
            "person": ids[int(code)], "n_items": int(mine.sum()), "program_better": float(wins[mine].mean()),
            "person_better": float(losses[mine].mean()), "difference": float(lead.mean()),
            "spread": float(lead.std(ddof=1)) if mine.sum() > 1 else 0.0,
            "p_value": below(lead, margin), "p_worse": below(-lead, -margin),
        })  # fmt: skip
    frame = pl.DataFrame(table, infer_schema_length=None)
    won, lost = (rejections(frame[name].to_numpy()) for name in ("p_value", "p_worse"))
    frame = frame.with_columns(won=pl.Series(won), lost=pl.Series(lost))
    advantage, error = _advantage(person, instance, wins)
    half = NormalDist().inv_cdf(0.5 + level / 2) * error
    cells = np.bincount(people.cell, np.where(n_others > 0, agreed["program"] - agreed["person"], 0.0), len(values))
    number = np.bincount(people.cell, n_others > 0, len(values))
    gain = np.divide(cells, number, out=np.full(len(values), np.nan), where=number > 0)
    return Alternative(
        float(won.mean()), float(lost.mean()), advantage, max(advantage - half, 0.0), min(advantage + half, 1.0),
        len(np.unique(instance)), frame, gain,
    )  # fmt: skip


def _advantage(person: Any, instance: Any, wins: Bools) -> tuple[float, float]:
    """Mean over people of how often the program is as good or better, and its standard error over items."""
    known, code = np.unique(person, return_inverse=True)
    number = np.bincount(code)
    share = np.bincount(code, wins) / number
    moves = (wins - share[code]) / (number[code] * len(known))
    by_item = np.bincount(np.unique(instance, return_inverse=True)[1], moves)
    n = len(by_item)
    return float(share.mean()), float(np.sqrt((by_item**2).sum() * n / max(n - 1, 1)))


def below(lead: Floats, margin: float) -> float:
    """Return the p value of a mean below the margin: Student's t, of few values by all exchanges of sign."""
    from scipy.special import stdtr

    n, gap = len(lead), lead - margin
    if n < _FEW:
        return _by_signs(gap)
    spread = float(gap.std(ddof=1))
    if spread <= _EQUAL:
        return 0.0 if gap[0] < 0 else 1.0
    return float(stdtr(n - 1, float(gap.mean()) / (spread / np.sqrt(n))))


def _by_signs(gap: Floats) -> float:
    """Share of all patterns of sign whose sum is as small as the one seen; values are few, so it is counted."""
    sizes, counts = np.unique(np.round(np.abs(gap), 9), return_counts=True)
    sums, chances = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        sums = (sums[:, None] + size * (2 * np.arange(count + 1) - count)).ravel()
        chances = (chances[:, None] * [comb(count, flips) / 2**count for flips in range(count + 1)]).ravel()
    return float(min(chances[sums <= gap.sum() + 1e-7].sum(), 1.0))


def rejections(p_values: Floats, level: float = _FALSE_DISCOVERIES) -> Bools:
    """Return which hypotheses Benjamini and Yekutieli reject: false discoveries at most ``level``, however dependent.

    Examples
    --------
    >>> rejections(np.array([0.001, 0.2, 0.01])).tolist()
    [True, False, True]
    """
    n = len(p_values)
    order = np.argsort(p_values, kind="stable")
    bound = level * np.arange(1, n + 1) / (n * (1.0 / np.arange(1, n + 1)).sum())
    passing = np.flatnonzero(p_values[order] <= bound)
    mask = np.zeros(n, bool)
    mask[order[: passing[-1] + 1 if len(passing) else 0]] = True
    return mask
