"""Several rankings beside each other: by criteria, with weights and halo, and per category, shrunk to that of all."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.optimize import nnls
from scipy.special import expit

from ..data.consensus import Consensus
from ..data.judgments import Grades, Preferences
from ..data.showing import Shown
from ..errors import DataWarning, JudgmentError, ParameterError
from ..io.notices import say
from ..protocols import Floats
from ..registry import make
from ..wording import option
from .aggregation import aggregate, reweigh_pairs
from .robust_errors import variance_by_query, with_robust_errors
from .sentences import words_of

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
    names, sure = list(parts), all(part.std_error is not None for part in parts.values())
    # items that have all criteria, what names them, their scores and, where all have some, standard errors
    whole, keys = pl.DataFrame(), ["item"]
    for place, part in enumerate(parts.values()):
        frame = part.frame()
        keys = ["query", "item"] if "query" in frame.columns else ["item"]
        figures = {"score": f"score {place}"} | ({"std_error": f"error {place}"} if sure else {})
        own = frame.select(*keys, *figures).rename(figures)
        whole = own if not place else whole.join(own, on=keys, how="inner", maintain_order="left")
    if not len(whole):
        raise JudgmentError(f"no item was judged by all of the criteria; name others with {option('criteria')}")
    matrix = whole.select("^score .*$").to_numpy()
    errors = whole.select("^error .*$").to_numpy() if sure else None
    whole, rng = whole.select(keys), np.random.default_rng(seed)
    draws = rng.integers(len(whole), size=(_N_DRAWS, len(whole)))
    share = np.full(len(names), 1 / len(names))
    table: dict[str, Any] = {"criterion": names, "weight": share}
    if overall is not None:
        if weights is not None:
            raise ParameterError("weights are either stated or learned from an overall judgment; give one of them")
        target = whole.join(overall.frame(), on=keys, how="left", maintain_order="left")["score"]
        known = target.is_not_null().to_numpy()
        if known.sum() < max(_FEWEST_ITEMS, 2 * len(names)):
            raise JudgmentError("too few items have an overall judgment and all criteria; state the weights instead")
        wanted = target.drop_nulls().to_numpy()
        share = _learned_weights(matrix[known], wanted)
        again = rng.integers(len(wanted), size=(_N_DRAWS, len(wanted)))
        resampled = [_learned_weights(matrix[known][draw], wanted[draw]) for draw in again]
        low, high = np.quantile(np.array(resampled), [0.025, 0.975], axis=0)
        table |= {"weight": share, "lower": low, "upper": high}
    elif weights is not None:
        share = np.array([float(weights[name]) for name in names])
        if (share < 0).any() or not share.sum() > 0:
            raise ParameterError(f"weights of {option('criteria')} must be numbers of at least 0, one above 0")
        table["weight"] = share = share / share.sum()
    columns = {name: matrix[:, place] for place, name in enumerate(names)} | {"score": matrix @ share}
    columns |= {} if errors is None else {"std_error": errors @ share}
    whole = whole.with_columns(pl.Series(name, values) for name, values in columns.items())
    rank = pl.col("score").round(9).rank("min", descending=True)
    whole = whole.with_columns(rank=(rank.over("query") if "query" in keys else rank).cast(pl.Int64))
    whole = whole.sort(*keys[:-1], "rank", maintain_order=True)
    residuals = None if judgments is None else _residuals(parts, judgments)
    # halo of each annotator: the mean correlation of their errors between criteria
    rows: list[tuple[Any, int, float | None]] = []
    for (who,), own in residuals.group_by("annotator", maintain_order=True) if residuals is not None else ():
        pairs = itertools.combinations([own[f"error {place}"].to_numpy() for place in range(len(names))], 2)
        halo = float(np.mean([_correlation(one, other) for one, other in pairs])) if len(own) >= _FEWEST_ITEMS else None
        rows.append((who, len(own), halo))
    halos = pl.DataFrame(rows, schema=["annotator", "n_judged", "halo"], orient="row", infer_schema_length=None)
    return Rubric(
        table=whole.select(*keys, "score", "rank", *names, *(["std_error"] if sure else [])),
        weights=pl.DataFrame(table), correlations=_correlations(matrix, errors, names, draws, residuals, rng),
        annotators=halos.sort("halo", "annotator", descending=[True, False], nulls_last=True) if rows else halos,
    )  # fmt: skip


def _learned_weights(matrix: Floats, target: Floats) -> Floats:
    """Shares of the criteria in an overall judgment, none below 0."""
    found = nnls(matrix - matrix.mean(axis=0), target - target.mean())[0]
    return found / found.sum() if found.sum() > 0 else np.full(matrix.shape[1], 1 / matrix.shape[1])


def _residuals(parts: Mapping[str, Consensus], judgments: Mapping[str, Any]) -> pl.DataFrame | None:
    """Errors of each annotator by each criterion, in rows that are about the same thing."""
    whole = pl.DataFrame()
    for place, (name, part) in enumerate(parts.items()):
        given, column = judgments[name], f"error {place}"
        if isinstance(given, Grades) and given.n_annotators and not given.nominal:
            total = np.bincount(given.item, given.grade, given.n_items)[given.item]
            count = np.bincount(given.item, minlength=given.n_items)[given.item]
            others = (total - given.grade) / np.maximum(count - 1, 1)
            keys, error = {"item": given.item}, np.where(count > 1, given.grade - others, np.nan)
        elif isinstance(given, Preferences) and given.n_annotators:
            keys = {"item": given.left, "right": given.right}
            error = (given.outcome + 1) / 2 - expit(part.scores[given.left] - part.scores[given.right])
        else:
            return None
        ids = {key: given.items.ids.gather(code) for key, code in keys.items()}
        ids |= {"query": given.items.query_ids().gather(keys["item"])}
        ids |= {"annotator": given.annotators.ids.gather(given.annotator)}
        table = pl.DataFrame({**ids, column: error}).with_columns(pl.col(column).fill_nan(None))
        table = table.group_by(list(ids)).mean()
        whole = whole.join(table, on=list(ids), how="inner") if place else table
    return whole.drop_nulls().sort(pl.exclude("^error .*$")) if parts else None


def _correlations(
    matrix: Floats, errors: Floats | None, names: list[str], draws: Any, residuals: pl.DataFrame | None, rng: Any
) -> pl.DataFrame:
    """A row for each two criteria."""
    rows, halves = [], None
    if residuals is not None and len(residuals) >= _FEWEST_ITEMS:
        # errors of the grades of one item depend on each other, so items are drawn
        item = residuals.select(pl.struct("query", "item").rank("dense") - 1).to_series().to_numpy().astype(np.int64)
        n_items = item.max() + 1
        halves = rng.multinomial(n_items, np.full(n_items, 1 / n_items), size=_N_DRAWS)[:, item]
    if len(matrix) < 3:
        return pl.DataFrame(schema={"one": pl.String, "other": pl.String, "correlation": pl.Float64})
    for i, j in itertools.combinations(range(len(names)), 2):
        together = _correlation(matrix[:, i], matrix[:, j])
        resampled = [_correlation(matrix[draw, i], matrix[draw, j]) for draw in draws]
        lower, upper = np.nanquantile(resampled, [0.025, 0.975]).tolist()
        row: dict[str, Any] = {"one": names[i], "other": names[j], "correlation": together}
        row |= {"lower": lower, "upper": upper, **dict.fromkeys(("corrected", "halo", "halo_lower", "halo_upper"))}
        if errors is not None:
            reliable = [1 - (errors[:, k] ** 2).mean() / max(matrix[:, k].var(ddof=1), 1e-12) for k in (i, j)]
            if min(reliable) > 0:
                row["corrected"] = float(np.clip(together / np.sqrt(reliable[0] * reliable[1]), -1, 1))
        if residuals is not None and halves is not None:
            one, other = residuals[f"error {i}"].to_numpy(), residuals[f"error {j}"].to_numpy()
            drawn = [_correlation(one, other, weight) for weight in halves]
            row["halo"] = _correlation(one, other)
            row["halo_lower"], row["halo_upper"] = np.nanquantile(drawn, [0.025, 0.975]).tolist()
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def _correlation(one: Floats, other: Floats, weight: Any = None) -> float:
    """Correlation of two columns, 0 where one does not vary."""
    covariance = np.cov(one, other, aweights=weight)
    scale = float(np.sqrt(covariance[0, 0] * covariance[1, 1]))
    return float(covariance[0, 1] / scale) if scale > 1e-12 else 0.0


def criteria_weights(texts: list[str]) -> tuple[list[str], dict[str, float] | None]:
    """Return the names of criteria and their weights from texts such as ``content=.5``; no weights where none has one.

    Examples
    --------
    >>> criteria_weights(["content=.5", "style=.3"])
    (['content', 'style'], {'content': 0.5, 'style': 0.3})
    """
    parts = {text: text.rpartition("=") for text in texts}
    weights: dict[str, float] = {}
    for text in texts if any(equals for _, equals, _ in parts.values()) else ():
        name, equals, number = parts[text]
        if not equals:
            raise ParameterError(f"criterion {text!r} has no weight, but others have; give all of them one, or none")
        try:
            weights[name.strip()] = float(number)
        except ValueError:
            raise ParameterError(f"the weight of {text!r} is not a number; write content=0.5,style=0.3") from None
    return list(weights) or texts, weights or None


_FREE_LEVEL = 100.0
_UNKNOWN_VARIANCE = 100.0
_DEVIATIONS = np.concatenate([[1e-3], np.geomspace(0.02, 3.0, 60)])
"""Standard deviations among which that of a category against all is chosen."""

_TOLD_VARIANCE = 1.2


class CategoryFit(NamedTuple):
    """The consensus of all judgments, or of one category's, and how far its judgments depend on each other.

    ``consensus`` has the model's covariance, ``errors`` the standard errors to report. ``by_query`` is how many times
    the model's the variances by query are, and the number of queries; ``None`` where that is not asked or not known.
    """

    consensus: Consensus
    errors: Floats
    by_query: tuple[float, int] | None = None


def fit_category(judgments: Any, *, robust: str | None = None, **wanted: Any) -> CategoryFit:
    """Return the fit that :func:`category_table` needs of all judgments or of a category, by the options of aggregate.

    Robust errors have the scores of a few annotators for what is certain of them: their covariance is singular. So
    the table is shrunk by the model's, and these are only reported.
    """
    if wanted.get("reweight") is not None:
        judgments, robust = reweigh_pairs(judgments, wanted.pop("reweight")), robust or "judgment"
    consensus: Consensus = aggregate(judgments, robust="none", **wanted)
    blocks = consensus.covariance
    if consensus.items.n_queries != 1 or consensus.std_error is None or blocks is None or blocks[0] is None:
        raise ParameterError(words_of("by_covariances"))
    if robust == "none":
        return CategoryFit(consensus, consensus.std_error)
    method = make("aggregator", consensus.method, consensus.params)
    errors = with_robust_errors(consensus, method, judgments, robust).std_error
    assert errors is not None
    return CategoryFit(consensus, errors, variance_by_query(consensus, method, judgments))


def category_table(whole: CategoryFit, parts: Mapping[str, CategoryFit]) -> pl.DataFrame:
    r"""Return the scores of each category, shrunk to those of all as far as the category's own say little.

    In category c item i has the score ``s_i + t_ic``, where ``s`` are the scores of the other judgments, and ``t_ic``
    is normal around 0 with a standard deviation that is learned for the category, and integrated over. Columns:
    category, item, score, std_error, rank, and ``sd``, that of the category's differences. All judgments are the
    category ``all``.

    Parameters
    ----------
    whole
        The fit of all judgments, whose items are those of one query.
    parts
        The fit of each category's judgments.

    Notes
    -----
    A category is known by its queries, and judgments of a query depend on each other. So the model's covariances,
    which are well conditioned, are multiplied by one number: how many times as large variances by query are, on
    average over categories. What robust standard errors have beyond that, such as the tastes of annotators who judged
    all categories, makes all of them wrong alike. It says nothing of their differences, and is added at the end.
    """
    # how many times the model's the variances by query are: the mean over categories, by their queries
    by_query, times = [part.by_query for part in parts.values() if part.by_query is not None], 1.0
    if by_query:
        ratios, queries = np.array(by_query).T
        times = max(float(np.average(ratios, weights=queries)), 1.0)
    if times >= _TOLD_VARIANCE:
        say(words_of("shrunk_categories", times=times, worth=1 / times))
    everything = _scores_of(whole, whole, times)
    tables = [_rank_items("all", whole.consensus, everything.scores, whole.errors, 0.0)]
    each = {category: _scores_of(part, whole, times) for category, part in parts.items()}
    level = np.full_like(everything.covariance, _FREE_LEVEL / len(everything.scores))
    known = sum(np.linalg.inv(own.covariance + level) for own in each.values())
    # judgments of no category are in those of all
    further, vectors = np.linalg.eigh(np.linalg.inv(everything.covariance + level) - known)
    known = known + (vectors * np.maximum(further, 0.0)) @ vectors.T
    for category, own in each.items():
        score, std_error, deviation = _shrink_scores(category, everything, own, known, level)
        tables.append(_rank_items(category, whole.consensus, score, std_error, deviation))
    return pl.concat(tables)


class _Scores(NamedTuple):
    """Centred scores in the order of all items, their covariance, and the further variance of each."""

    scores: Floats
    covariance: Floats
    more: Floats


def _scores_of(part: CategoryFit, whole: CategoryFit, times: float) -> _Scores:
    """The scores of a part; items that it lacks are unknown."""
    consensus, ids = part.consensus, whole.consensus.items.ids.to_list()
    assert consensus.covariance is not None
    assert consensus.covariance[0] is not None
    place = {one: number for number, one in enumerate(ids)}
    codes = np.array([place[one] for one in consensus.items.ids.to_list()])
    scores, covariance, more = np.zeros(len(ids)), _UNKNOWN_VARIANCE * np.eye(len(ids)), np.zeros(len(ids))
    scores[codes] = consensus.scores - consensus.scores.mean()
    covariance[np.ix_(codes, codes)] = times * consensus.covariance[0]
    more[codes] = np.maximum(part.errors**2 - np.diagonal(times * consensus.covariance[0]), 0.0)
    return _Scores(scores - scores.mean(), covariance, more)


def _shrink_scores(
    category: str, whole: _Scores, own: _Scores, known: Floats, level: Floats
) -> tuple[Floats, Floats, float]:
    """Scores of a category, their standard errors, and the mean standard deviation of its differences to the others.

    ``known`` is the precision of all categories together. What is not known of the deviation is integrated over.
    """
    # scores of all judgments but those of the category, and their covariance, the level left open: the category has
    # that share of what all judgments tell which it has of what categories tell, since what it says by itself may be
    # more than all judgments say, where these contradict each other
    root, undo = _power(whole.covariance + level, -0.5), _power(known, -0.5)
    told = root @ undo @ np.linalg.inv(own.covariance + level) @ undo @ root
    values, vectors = np.linalg.eigh(root @ root - told)
    elsewhere = (vectors / np.maximum(values, 1.0 / _UNKNOWN_VARIANCE)) @ vectors.T
    scores = whole.scores + elsewhere @ told @ (whole.scores - own.scores)
    off, surprises, moved, covariances, believed = own.scores - scores, [], [], [], []
    for deviation in _DEVIATIONS.tolist():
        # the posterior at a standard deviation: how surprising the category is, how far its scores lie from the
        # others', how surely, and how much of the own score of each item is believed
        around = elsewhere + deviation**2 * np.eye(len(off))
        matrix = own.covariance + level + around
        share = np.linalg.solve(matrix, around).T
        # twice the negative log-likelihood, with a half-normal prior of the standard deviation
        surprises.append(float(np.linalg.slogdet(matrix)[1] + off @ np.linalg.solve(matrix, off) + deviation**2))
        moved.append(share @ off)
        covariances.append(around - share @ around)
        believed.append(np.diagonal(share))
    # the deviations lie further apart the larger they are
    log_weight = -0.5 * np.array(surprises) + np.log(np.gradient(_DEVIATIONS))
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    if surprises[-1] <= min(surprises):
        said = words_of("far_category", category=category, largest=_DEVIATIONS[-1])
        warnings.warn(said, DataWarning, stacklevel=4)
    moves = np.array(moved)
    apart = moves - weight @ moves
    spread = np.einsum("d,dij->ij", weight, covariances) + (weight[:, None] * apart).T @ apart
    middle = scores + weight @ moves
    spread = spread - spread.mean(axis=0, keepdims=True)
    variance = np.diagonal(spread - spread.mean(axis=1, keepdims=True))
    # how much of the score is the category's own; tastes are the same in both parts
    part = np.clip(weight @ np.array(believed), 0.0, 1.0)
    further = (1.0 - part) * np.sqrt(whole.more) + part * np.sqrt(own.more)
    return middle - middle.mean(), np.sqrt(np.maximum(variance, 0.0) + further**2), float(weight @ _DEVIATIONS)


def _power(matrix: Floats, exponent: float) -> Floats:
    """Power of a symmetric matrix of positive eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values**exponent) @ vectors.T


def _rank_items(category: str, whole: Consensus, score: Floats, std_error: Floats, deviation: float) -> pl.DataFrame:
    """The items of a category, best first."""
    table = pl.DataFrame({"item": whole.items.ids, "score": score, "std_error": std_error})
    rank = pl.col("score").round(9).rank("min", descending=True).cast(pl.Int64).alias("rank")
    named = table.select(pl.lit(category).alias("category"), pl.all(), rank, sd=pl.lit(deviation))
    return named.sort("rank", maintain_order=True)
