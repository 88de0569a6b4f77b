"""Two runs of an evaluation, paired: what moved beyond noise, what caused it, and looks that may be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from ..api import as_judgments, check_level
from ..data.judgments import Mixed
from ..data.showing import Shown
from ..errors import JudgmentError, ParameterError
from ..metrics.significance import holm, mean_interval, paired_t
from ..protocols import Floats
from ..wording import counted, one_of, option
from .labels import Labels, in_words

LOOKS = ("once", "anytime")
_MIN_PAIRS = 2
_NODES = np.polynomial.legendre.leggauss(32)
"""Where and by how much shares of the capital are bet: any mixture of bets holds, this one is an integral."""

_LEAST_MEAN = 1e-9
_SHOWN_CAUSES, _LEAST_CAUSE = 3, 0.1


@dataclass(frozen=True, eq=False, kw_only=True)
class Change(Shown):
    """What :func:`crowdrank.changed` found: a row per item, and what caused the changes.

    Parameters
    ----------
    table
        item (and query), old, new, difference, lower, upper, p_value, p_holm, n_pairs and change: ``"better"``,
        ``"worse"`` or ``"none"``.
    causes
        item, unit (annotator or query), id, share of the item's difference, n_pairs.
    level, looks
        Level of the intervals, and whether they hold for any number of looks.
    """

    table: pl.DataFrame
    causes: pl.DataFrame = field(repr=False)
    level: float = 0.95
    looks: str = "once"

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return f"Change({', '.join(f'{k} {v}' for k, v in self.counts().row(0, named=True).items())})"

    def frame(self) -> pl.DataFrame:
        """Return the row of each item, the largest differences first."""
        return self.table

    def counts(self) -> pl.DataFrame:
        """Return one row: better, worse, changed, n_items."""
        better, worse = (int((self.table["change"] == word).sum()) for word in ("better", "worse"))
        return pl.DataFrame({"better": [better], "worse": [worse], "changed": [better + worse], "n_items": [len(self)]})

    @property
    def sentences(self) -> list[str]:
        """What changed, in words."""
        row = self.counts().row(0, named=True)
        if not row["changed"]:
            return [f"none of {counted(row['n_items'], 'item')} moved beyond noise"]
        said = []
        for one in self.table.filter(pl.col("change") != "none").iter_rows(named=True):
            large = self.causes.filter(pl.col("item") == one["item"], pl.col("share") >= _LEAST_CAUSE)
            rows = large.sort("share", descending=True).head(_SHOWN_CAUSES).rows()
            causes = ", ".join(f"{unit} {name} {share:.0%}" for _, unit, name, share, _ in rows)
            why = f"most of it by {causes}" if causes else "no annotator or query stands out"
            said.append(in_words("moved", why=why, **one))
        return said


def changed(
    old: Any, new: Any, *, level: float = 0.95, looks: str = "once", scale: Sequence[float] | None = None
) -> Change:
    """Return which items moved between two runs of an evaluation, each beyond noise or not.

    Judgments are paired by annotator, query and item (or pair of items): only what both runs judged is compared. The
    difference of an item is the mean over pairs, tested by Student's t with Holm's correction over items, so the chance
    that anything is called a change though nothing is one is at most one less the level. With ``looks="anytime"``
    intervals and p values are those of betting [WaudbySmith24]_, which hold at all times together, in whatever order
    judgments come in: anyone may look every day. Judgments of a query count as one, by their mean.

    Parameters
    ----------
    old, new
        Judgments of the two runs, of one kind: grades, preferences or rankings; frames, or paths.
    level
        Of the intervals, over all items together.
    looks
        ``"once"``, or ``"anytime"``.
    scale
        Lowest and highest grade there is, which ``"anytime"`` bets on; by default the declared levels, and without
        those the grades seen, which is too narrow where later ones are beyond.

    Examples
    --------
    >>> rows = [(f"w{n}", f"q{n}", "x", 3 + n % 2) for n in range(30)]
    >>> later = [(who, q, item, grade + 1) for who, q, item, grade in rows]
    >>> from crowdrank import Grades
    >>> found = changed(Grades.from_rows(rows).across_queries(), Grades.from_rows(later).across_queries())
    >>> found.frame().select("item", "difference", "change").rows()
    [('x', 1.0, 'better')]
    """
    check_level(level, "level")
    one_of(looks, LOOKS, "looks", of_verb=True)
    sides: list[Any] = [as_judgments(one) for one in (old, new)]
    if isinstance(sides[0], Mixed) or isinstance(sides[1], Mixed) or sides[0].kind != sides[1].kind:
        raise JudgmentError("the two runs have to be of one kind of judgment; give one kind of both")
    before, after = (_rows(one) for one in sides)
    keys = [name for name in ("annotator", "query", "item", "other") if name in before.columns]
    pairs = before.join(after, on=keys, suffix="_new", maintain_order="left").sort("item", "query", "annotator")
    if not len(pairs):
        raise JudgmentError(in_words("unpaired"))
    pairs = pairs.with_columns(move=pl.col("value_new") - pl.col("value"))
    # how far two values may be apart: by the scale or levels declared; of a share of a win 1
    values, span = np.concatenate([before["value"].to_numpy(), after["value"].to_numpy()]), 1.0
    if sides[0].kind == "grade" and scale is None:
        span = float(np.ptp(np.concatenate([one.level_values for one in sides])))
    elif sides[0].kind == "grade" and scale is not None:
        if len(scale) != 2 or not scale[0] < scale[1]:
            raise ParameterError(in_words("no_scale", option=option("scale", tuple(scale))))
        if values.min() < scale[0] or values.max() > scale[1]:
            ends = {"low": scale[0], "high": scale[1], "lowest": values.min(), "highest": values.max()}
            raise JudgmentError(in_words("beyond_scale", **ends))
        span = float(scale[1] - scale[0])
    rows = []
    groups = [(item[0], part) for item, part in pairs.group_by("item", maintain_order=True)]
    alpha = (1 - level) / max(len(groups), 1)
    for item, part in groups:
        # judgments of a query depend
        alone = part["query"].n_unique() == 1
        move = (part if alone else part.group_by("query").agg(pl.col("move").mean()).sort("query"))["move"].to_numpy()
        if len(move) < _MIN_PAIRS:
            continue
        if looks == "anytime":
            share = np.clip((move + span) / (2 * span), 0.0, 1.0) if span else np.full(len(move), 0.5)
            low, high = betting_interval(share, alpha)
            bounds = (2 * span * low - span, 2 * span * high - span)
            p = min(1.0, 2 * float(np.exp(-max(log_capital(share, 0.5), log_capital(1 - share, 0.5)))))
        else:
            bounds, p = mean_interval(move, 1 - alpha), paired_t(move, np.zeros(len(move)))
        means = {"old": part["value"].mean(), "new": part["value_new"].mean(), "difference": float(move.mean())}
        tested = {"lower": bounds[0], "upper": bounds[1], "p_value": p}
        rows.append({"item": item, **means, **tested, "n_pairs": len(part)})
    if not rows:
        raise JudgmentError("no item was judged twice or more in both runs; at least 2 pairs per item are needed")
    table = pl.DataFrame(rows)
    adjusted = holm(table["p_value"].to_numpy())
    better, worse = (pl.lit(pl.Series(adjusted <= 1 - level)) & (pl.col("difference") * sign > 0) for sign in (1, -1))
    word = pl.when(better).then(pl.lit("better")).when(worse).then(pl.lit("worse")).otherwise(pl.lit("none"))
    table = table.with_columns(p_holm=pl.Series(adjusted), change=word)
    table = table.sort(pl.col("difference").abs(), descending=True, maintain_order=True)
    # share of the difference of each item that moved, by annotator and by query, the largest first
    texts = dict.fromkeys(("item", "unit", "id"), pl.String)
    causes = [pl.DataFrame(schema={**texts, "share": pl.Float64, "n_pairs": pl.UInt32})]
    for item in table.filter(pl.col("change") != "none")["item"]:
        part = pairs.filter(pl.col("item") == item)
        total = part["move"].sum()
        for unit in ("annotator", "query"):
            if part[unit].n_unique() > 1 and total:
                own = part.group_by(pl.col(unit).alias("id"))
                shares = own.agg((pl.col("move").sum() / total).alias("share"), n_pairs=pl.len())
                shares = shares.sort(["share", "id"], descending=[True, False]).head(20)
                causes.append(shares.select(pl.lit(item).alias("item"), pl.lit(unit).alias("unit"), pl.all()))
    return Change(table=table, causes=pl.concat(causes), level=level, looks=looks)


def _rows(judgments: Any) -> pl.DataFrame:
    """Annotator, query, item and value of each label; of pairs a row for either item, with its share of the win."""
    labels = Labels.of(judgments)
    names = judgments.annotators.ids.cast(pl.String)
    who = names.gather(labels.annotator) if len(names) else pl.Series([""] * len(labels.annotator))
    cells = labels.cells[labels.cell].with_columns(pl.all().cast(pl.String))
    if labels.nominal:
        raise JudgmentError("classes without an order do not get better or worse; give levels from worst to best")
    table = cells.with_columns(annotator=who, value=pl.Series(labels.value))
    if "other" not in table.columns:
        return table
    won = table.with_columns(value=0.5 + 0.5 * pl.col("value"))
    turned = won.with_columns(item="other", other="item", value=1 - pl.col("value"))
    return pl.concat([won, turned.select(won.columns)])


def log_capital(values: Floats, mean: float) -> float:
    r"""Return the log of what bets have won by now against a mean of values in 0 to 1 that is no larger than this.

    A share :math:`c` of the capital is bet on each value, for all :math:`c` in 0 to 1 alike, and wins
    :math:`\int_0^1 \prod_i (1 + c (x_i / m - 1)) \, dc` [WaudbySmith24]_. If the mean is :math:`m`, that ever reaches
    :math:`1 / \alpha` with a chance of at most :math:`\alpha`, in whatever order the values came in.

    Examples
    --------
    >>> round(float(np.exp(log_capital(np.ones(9), 0.5))), 1)  # the integral of (1 + c)^9
    102.3
    """
    share, weight = (0.5 + 0.5 * _NODES[0], 0.5 * _NODES[1])
    return float(np.logaddexp.reduce(np.log1p(np.outer(share, values / mean - 1)).sum(axis=1) + np.log(weight)))


def betting_interval(values: Floats, alpha: float) -> tuple[float, float]:
    """Return the interval of the mean of values in 0 to 1 that holds at all times together, with the values so far.

    Examples
    --------
    >>> [round(end, 2) for end in betting_interval(np.full(200, 0.75), 0.05)]
    [0.73, 0.76]
    """
    from scipy.optimize import brentq

    def lowest(x: Floats) -> float:
        def lead(mean: float) -> float:
            return log_capital(x, mean) + float(np.log(alpha / 2))

        return float(brentq(lead, _LEAST_MEAN, x.mean())) if x.mean() > _LEAST_MEAN and lead(_LEAST_MEAN) > 0 else 0.0

    return lowest(values), 1.0 - lowest(1.0 - values)
