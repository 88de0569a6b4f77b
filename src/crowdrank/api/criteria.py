"""Several criteria at once: a score by each, an overall by stated or learned weights, correlations, and halo."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import nnls
from scipy.special import expit

from ..data.consensus import Consensus
from ..data.judgments import Grades, Preferences
from ..data.showing import Shown
from ..errors import JudgmentError, ParameterError
from ..io.notices import say
from ..protocols import Floats
from ..wording import option

_N_DRAWS = 400
_FEWEST_ITEMS = 8
"""Items with fewer of which nothing is said of correlations."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Rubric(Shown):
    """Scores by several criteria and what they have in common; :func:`rubric` makes it.

    Parameters
    ----------
    table
        query, item, score (the overall), rank, a column for each criterion and, where all have it, std_error.
    weights
        criterion, weight and, where it was learned, lower and upper.
    correlations
        one, other, correlation of scores with its bounds, corrected (for the errors of the scores, where they are
        known), and halo, lower and upper: the correlation of the errors that one annotator makes in both.
    annotators
        annotator, n_judged and halo; empty where the judgments name no annotators.

    Examples
    --------
    >>> import crowdrank as cr
    >>> rows = {"item": list("xyzxyz"), "annotator": list("aaabbb"), "grade": [3, 2, 1, 3, 1, 2]}
    >>> parts = {name: cr.aggregate(rows, "mean_grade") for name in ("style", "content")}
    >>> len(cr.rubric(parts))
    3
    """

    table: pl.DataFrame
    weights: pl.DataFrame
    correlations: pl.DataFrame
    annotators: pl.DataFrame

    def __len__(self) -> int:
        return len(self.table)

    def __repr__(self) -> str:
        return f"Rubric({len(self)} items, {len(self.weights)} criteria)"

    def frame(self) -> pl.DataFrame:
        """Return the table of items, best first."""
        return self.table

    def sheets(self) -> dict[str, pl.DataFrame]:
        """Return the tables of a workbook by their names."""
        sheets = {"items": self.table, "weights": self.weights, "correlations": self.correlations}
        return {name: sheet for name, sheet in {**sheets, "annotators": self.annotators}.items() if len(sheet)}

    def sentences(self) -> list[str]:
        """Return what there is to say of the criteria."""
        said = []
        if len(self.correlations):
            shown = [
                f"{row['one']} and {row['other']} {row['correlation']:.2f} ({row['lower']:.2f} to {row['upper']:.2f})"
                for row in self.correlations.iter_rows(named=True)
            ]
            said.append(f"correlations of scores by criterion: {', '.join(shown)}")
            halo = self.correlations.drop_nulls("halo")
            if len(halo):
                worst = halo.sort("halo", descending=True).row(0, named=True)
                mean = float(np.mean(halo["halo"].to_numpy()))
                said.append(
                    f"halo: errors of one annotator in two criteria correlate by {mean:.2f} on average, "
                    f"most in {worst['one']} and {worst['other']} ({worst['halo']:.2f}, {worst['halo_lower']:.2f} to "
                    f"{worst['halo_upper']:.2f}; 0 is none)"
                )
        if "lower" in self.weights.columns:
            shown = [f"{name} {w:.2f} ({low:.2f} to {up:.2f})" for name, w, low, up in self.weights.iter_rows()]
            said.append(f"weights by the overall judgment: {', '.join(shown)}")
        return said


def rubric(
    parts: Mapping[str, Consensus],
    judgments: Mapping[str, Any] | None = None,
    *,
    weights: Mapping[str, float] | None = None,
    overall: Consensus | None = None,
    seed: int = 0,
) -> Rubric:
    r"""Return the overall score of items by several criteria, and how far criteria and annotators' errors go together.

    Parameters
    ----------
    parts
        The consensus by each criterion.
    judgments
        The judgments by each criterion, for the halo.
    weights
        How much each criterion counts; all the same by default.
    overall
        The consensus of an overall judgment, from which weights are learned: those that are not negative and fit it
        best, as shares of their sum.
    seed
        Seed of the resampled items that bounds of 95 % are made from.

    Notes
    -----
    ``std_error`` is the weighted mean of those of the criteria, an upper bound: errors in two criteria need not go
    together. ``corrected`` is the correlation divided by the root of both reliabilities
    :math:`1 - \overline{se^2} / \mathrm{var}(s)`. Halo is the correlation of an annotator's errors: of a grade, its
    difference to the mean of the item's other grades; of a preference, that to the probability by the scores.

    Examples
    --------
    >>> import crowdrank as cr
    >>> rows = {"item": list("xyzxyz"), "annotator": list("aaabbb")}
    >>> parts = {name: cr.aggregate({**rows, "grade": grade}, "mean_grade")
    ...          for name, grade in {"style": [3, 2, 1, 3, 1, 2], "content": [1, 2, 3, 1, 3, 3]}.items()}
    >>> rubric(parts, weights={"style": 0.8, "content": 0.2}).table["item"].to_list()
    ['x', 'z', 'y']
    """
    names = list(parts)
    whole, keys, matrix, errors = _join_criteria(parts)
    rng = np.random.default_rng(seed)
    draws = rng.integers(len(whole), size=(_N_DRAWS, len(whole)))
    share = np.full(len(names), 1 / len(names))
    table: dict[str, Any] = {"criterion": names}
    if overall is not None:
        if weights is not None:
            raise ParameterError("weights are either stated or learned from an overall judgment; give one of them")
        target = whole.select(keys).join(overall.frame(), on=keys, how="left", maintain_order="left")["score"]
        known = target.is_not_null().to_numpy()
        if known.sum() < max(_FEWEST_ITEMS, 2 * len(names)):
            raise JudgmentError("too few items have an overall judgment and all criteria; state the weights instead")
        share = _learned_weights(matrix[known], target.drop_nulls().to_numpy())
        again = rng.integers(int(known.sum()), size=(_N_DRAWS, int(known.sum())))
        resampled = [_learned_weights(matrix[known][draw], target.drop_nulls().to_numpy()[draw]) for draw in again]
        low, high = np.quantile(np.array(resampled), [0.025, 0.975], axis=0)
        table |= {"weight": share, "lower": low, "upper": high}
    else:
        if weights is not None:
            share = np.array([float(weights[name]) for name in names])
            if (share < 0).any() or not share.sum() > 0:
                raise ParameterError(f"weights of {option('criteria')} must be numbers of at least 0, one above 0")
            share = share / share.sum()
        table["weight"] = share
    whole = whole.with_columns(pl.Series(name, matrix[:, place]) for place, name in enumerate(names))
    whole = whole.with_columns(score=pl.Series(matrix @ share))
    if errors is not None:
        whole = whole.with_columns(std_error=pl.Series(errors @ share))
    rank = pl.col("score").round(9).rank("min", descending=True)
    whole = whole.with_columns(rank=(rank.over("query") if "query" in keys else rank).cast(pl.Int64))
    whole = whole.sort(*keys[:-1], "rank", maintain_order=True)
    columns = [*keys, "score", "rank", *names, *(["std_error"] if errors is not None else [])]
    residuals = None if judgments is None else _residuals(parts, judgments)
    return Rubric(
        table=whole.select(columns), weights=pl.DataFrame(table), annotators=_halo_of_annotators(residuals, names),
        correlations=_correlations(matrix, errors, names, draws, residuals, rng),
    )  # fmt: skip


def _join_criteria(parts: Mapping[str, Consensus]) -> tuple[pl.DataFrame, list[str], Floats, Floats | None]:
    """Items that have all criteria, what names them, their scores and, where all have some, standard errors."""
    whole, keys = None, ["item"]
    sure = all(part.std_error is not None for part in parts.values())
    for place, part in enumerate(parts.values()):
        frame = part.frame()
        keys = ["query", "item"] if "query" in frame.columns else ["item"]
        own = frame.select(*keys, pl.col("score").alias(f"score {place}"))
        if sure:
            own = own.with_columns(frame["std_error"].alias(f"error {place}"))
        whole = own if whole is None else whole.join(own, on=keys, how="inner", maintain_order="left")
    if whole is None or not len(whole):
        raise JudgmentError(f"no item was judged by all of the criteria; name others with {option('criteria')}")
    scores = whole.select([f"score {place}" for place in range(len(parts))]).to_numpy()
    errors = whole.select([f"error {place}" for place in range(len(parts))]).to_numpy() if sure else None
    return whole.select(keys), keys, scores, errors


def _learned_weights(matrix: Floats, target: Floats) -> Floats:
    """Shares of the criteria in an overall judgment, none below 0."""
    found = nnls(matrix - matrix.mean(axis=0), target - target.mean())[0]
    return found / found.sum() if found.sum() > 0 else np.full(matrix.shape[1], 1 / matrix.shape[1])


def _residuals(parts: Mapping[str, Consensus], judgments: Mapping[str, Any]) -> pl.DataFrame | None:
    """Errors of each annotator by each criterion, in rows that are about the same thing."""
    whole: pl.DataFrame | None = None
    for place, (name, part) in enumerate(parts.items()):
        given = judgments[name]
        if isinstance(given, Grades) and given.n_annotators and not given.nominal:
            total = np.bincount(given.item, given.grade, given.n_items)
            count = np.bincount(given.item, minlength=given.n_items)
            others = count[given.item] > 1
            own = (total[given.item] - given.grade) / np.maximum(count[given.item] - 1, 1)
            keys, error = {"item": given.item}, np.where(others, given.grade - own, np.nan)
        elif isinstance(given, Preferences) and given.n_annotators:
            keys = {"item": given.left, "right": given.right}
            gap = part.scores[given.left] - part.scores[given.right]
            error = (given.outcome + 1) / 2 - expit(gap)
        else:
            return None
        ids = {key: given.items.ids.gather(code) for key, code in keys.items()}
        ids |= {"query": given.items.query_ids().gather(keys["item"])}
        ids |= {"annotator": given.annotators.ids.gather(given.annotator)}
        table = pl.DataFrame({**ids, f"error {place}": error}).with_columns(pl.col(f"error {place}").fill_nan(None))
        table = table.group_by(list(ids)).mean()
        whole = table if whole is None else whole.join(table, on=list(ids), how="inner")
    return None if whole is None else whole.drop_nulls().sort(pl.exclude("^error .*$"))


def _correlations(
    matrix: Floats, errors: Floats | None, names: list[str], draws: Any, residuals: pl.DataFrame | None, rng: Any
) -> pl.DataFrame:
    """A row for each two criteria."""
    rows = []
    halves = None
    if residuals is not None and len(residuals) >= _FEWEST_ITEMS:
        # errors of the grades of one item depend on each other, so items are drawn
        item = residuals.select(pl.struct("query", "item").rank("dense") - 1).to_series().to_numpy().astype(np.int64)
        weight = rng.multinomial(item.max() + 1, np.full(item.max() + 1, 1 / (item.max() + 1)), size=_N_DRAWS)
        halves = weight[:, item]
    if len(matrix) < 3:
        return pl.DataFrame(schema={"one": pl.String, "other": pl.String, "correlation": pl.Float64})
    for i, j in itertools.combinations(range(len(names)), 2):
        row: dict[str, Any] = {
            "one": names[i],
            "other": names[j],
            "correlation": _correlation(matrix[:, i], matrix[:, j]),
        }
        resampled = [_correlation(matrix[draw, i], matrix[draw, j]) for draw in draws]
        row["lower"], row["upper"] = (float(one) for one in np.nanquantile(resampled, [0.025, 0.975]))
        row |= {"corrected": None, "halo": None, "halo_lower": None, "halo_upper": None}
        if errors is not None:
            reliable = [1 - (errors[:, k] ** 2).mean() / max(matrix[:, k].var(ddof=1), 1e-12) for k in (i, j)]
            if min(reliable) > 0:
                row["corrected"] = float(np.clip(row["correlation"] / np.sqrt(reliable[0] * reliable[1]), -1, 1))
        if residuals is not None and halves is not None:
            one, other = residuals[f"error {i}"].to_numpy(), residuals[f"error {j}"].to_numpy()
            row["halo"] = _correlation(one, other)
            drawn = [_correlation(one, other, weight) for weight in halves]
            row["halo_lower"], row["halo_upper"] = (float(bound) for bound in np.nanquantile(drawn, [0.025, 0.975]))
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def _correlation(one: Floats, other: Floats, weight: Any = None) -> float:
    """Correlation of two columns, 0 where one does not vary."""
    covariance = np.cov(one, other, aweights=weight) if weight is not None else np.cov(one, other)
    scale = float(np.sqrt(covariance[0, 0] * covariance[1, 1]))
    return float(covariance[0, 1] / scale) if scale > 1e-12 else 0.0


def _halo_of_annotators(residuals: pl.DataFrame | None, names: list[str]) -> pl.DataFrame:
    """Mean correlation of each annotator's errors between criteria."""
    rows: list[tuple[Any, int, float | None]] = []
    for (who,), own in residuals.group_by("annotator", maintain_order=True) if residuals is not None else ():
        columns = [own[f"error {place}"].to_numpy() for place in range(len(names))]
        pairs = itertools.combinations(columns, 2)
        halo = float(np.mean([_correlation(one, other) for one, other in pairs])) if len(own) >= _FEWEST_ITEMS else None
        rows.append((who, len(own), halo))
    table = pl.DataFrame(rows, schema=["annotator", "n_judged", "halo"], orient="row", infer_schema_length=None)
    return table.sort("halo", "annotator", descending=[True, False], nulls_last=True) if rows else table


def criteria_weights(texts: list[str]) -> tuple[list[str], dict[str, float] | None]:
    """Return the names of criteria and their weights from texts such as ``content=.5``; no weights where none has one.

    Examples
    --------
    >>> criteria_weights(["content=.5", "style=.3"])
    (['content', 'style'], {'content': 0.5, 'style': 0.3})
    """
    weights: dict[str, float] = {}
    names = []
    for text in texts:
        name, equals, number = (part.strip() for part in text.rpartition("=")) if "=" in text else (text, "", "")
        names.append(name)
        if equals:
            try:
                weights[name] = float(number)
            except ValueError:
                raise ParameterError(f"the weight of {text!r} is not a number; write content=0.5,style=0.3") from None
    if weights and len(weights) < len(names):
        lacking = next(name for name in names if name not in weights)
        raise ParameterError(f"criterion {lacking!r} has no weight, but others have; give all of them one, or none")
    return names, weights or None


def say_rubric(found: Rubric) -> None:
    """Say what there is to say of the criteria."""
    for sentence in found.sentences():
        say(sentence)
