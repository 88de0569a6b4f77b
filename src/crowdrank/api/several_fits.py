"""One table from several fits: a leaderboard per category, shrunk to that of all, and the mean of several criteria."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..errors import JudgmentError, ParameterError
from ..io.notices import say
from ..protocols import Floats
from ..wording import option

_FREE_LEVEL = 100.0
_UNKNOWN_VARIANCE = 100.0
_DEVIATIONS = np.concatenate([[1e-3], np.geomspace(0.02, 3.0, 60)])
"""Standard deviations among which that of a category against all is chosen."""


def category_table(whole: Consensus, parts: Mapping[str, Consensus]) -> pl.DataFrame:
    """Return the scores of each category, shrunk to those of all as far as the category's own say little.

    In category c item i has the score ``s_i + t_ic``, where ``s`` are the scores of the other judgments, and ``t_ic``
    is normal around 0 with a standard deviation that is learned for the category, and integrated over. Columns:
    category, item, score, std_error, rank, and ``sd``, that of the category's differences. All judgments are the
    category ``all``.

    Parameters
    ----------
    whole
        The consensus of all judgments, whose items are those of one query.
    parts
        The consensus of each category's judgments.
    """
    everything = _scores_of(whole, whole)
    tables = [_rank_items("all", whole, *everything, 0.0)]
    for category, part in parts.items():
        own, covariance = _scores_of(part, whole)
        score, spread, deviation = _shrink_scores(everything, own - own.mean(), covariance)
        tables.append(_rank_items(category, whole, score, spread, deviation))
    return pl.concat(tables)


def _scores_of(part: Consensus, whole: Consensus) -> tuple[Floats, Floats]:
    """Centred scores and their covariance in the order of all items; items that the part lacks are unknown."""
    if part.items.n_queries != 1 or part.covariance is None or part.covariance[0] is None:
        raise ParameterError(
            f"{option('by')} needs covariances of the scores of one query: use across_queries() (--across-queries), a "
            "method such as bradley_terry or latent_score, and at most 700 items"
        )
    place = {one: number for number, one in enumerate(whole.items.ids.to_list())}
    codes = np.array([place[one] for one in part.items.ids.to_list()])
    scores, covariance = np.zeros(len(place)), _UNKNOWN_VARIANCE * np.eye(len(place))
    scores[codes] = part.scores - part.scores.mean()
    covariance[np.ix_(codes, codes)] = part.covariance[0]
    return scores, covariance


def _shrink_scores(whole: tuple[Floats, Floats], own: Floats, covariance: Floats) -> tuple[Floats, Floats, float]:
    """Scores of a category, their covariance, and the mean standard deviation of its differences to the others.

    What is not known of that deviation is integrated over.
    """
    m = len(own)
    level = np.full((m, m), _FREE_LEVEL / m)
    scores, elsewhere = _scores_without(whole, own, covariance, level)
    posteriors = [_posterior(own - scores, covariance, elsewhere, level, sd) for sd in _DEVIATIONS.tolist()]
    # the deviations lie further apart the larger they are
    log_weight = np.array([-0.5 * surprise for surprise, _, _ in posteriors]) + np.log(np.gradient(_DEVIATIONS))
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    moves = np.array([move for _, move, _ in posteriors])
    off = moves - weight @ moves
    spread = np.einsum("d,dij->ij", weight, [one for _, _, one in posteriors]) + (weight[:, None] * off).T @ off
    moved = scores + weight @ moves
    spread = spread - spread.mean(axis=0, keepdims=True)
    spread = spread - spread.mean(axis=1, keepdims=True)
    return moved - moved.mean(), np.asarray(0.5 * (spread + spread.T), np.float64), float(weight @ _DEVIATIONS)


def _scores_without(
    whole: tuple[Floats, Floats], own: Floats, covariance: Floats, level: Floats
) -> tuple[Floats, Floats]:
    """Scores of all judgments but those of a category, and their covariance, the level left open."""
    everything, part = np.linalg.inv(whole[1] + level), np.linalg.inv(covariance + level)
    values, vectors = np.linalg.eigh(0.5 * (everything - part + (everything - part).T))
    inverse = (vectors / np.maximum(values, 1.0 / _UNKNOWN_VARIANCE)) @ vectors.T
    return inverse @ (everything @ whole[0] - part @ own), inverse


def _posterior(
    off: Floats, covariance: Floats, elsewhere: Floats, level: Floats, deviation: float
) -> tuple[float, Floats, Floats]:
    """How surprising differences to the others are, the move from the others' scores, and the covariance there.

    The first is twice the negative log-likelihood, with a half-normal prior of the standard deviation.
    """
    around = elsewhere + deviation**2 * np.eye(len(off))
    matrix = covariance + level + around
    share = np.linalg.solve(matrix, around).T
    surprise = float(np.linalg.slogdet(matrix)[1] + off @ np.linalg.solve(matrix, off) + deviation**2)
    return surprise, share @ off, around - share @ around


def _rank_items(category: str, whole: Consensus, score: Floats, covariance: Floats, deviation: float) -> pl.DataFrame:
    """The items of a category, best first."""
    table = pl.DataFrame({
        "category": [category] * len(score), "item": whole.items.ids, "score": score,
        "std_error": np.sqrt(np.maximum(np.diag(covariance), 0.0)), "sd": np.full(len(score), deviation),
    })  # fmt: skip
    ranked = table.with_columns(rank=pl.col("score").round(9).rank("min", descending=True).cast(pl.Int64))
    return ranked.sort("rank", maintain_order=True).select("category", "item", "score", "std_error", "rank", "sd")


def criteria_table(parts: Mapping[str, Consensus]) -> pl.DataFrame:
    """Return the mean of the scores that items have by each criterion, all weighing the same, and these scores.

    Columns: query, item, score, rank, a column for each criterion and, where all have it, std_error: the mean of
    those of the criteria, which is an upper bound, since errors of one annotator in two criteria go together.
    """
    tables, keys = {}, ["item"]
    for criterion, part in parts.items():
        kept = {"score": criterion, "std_error": f"std_error {criterion}"}
        frame = part.frame()
        keys = ["query", "item"] if "query" in frame.columns else ["item"]
        own = [*keys, *(name for name in kept if name in frame.columns)]
        tables[criterion] = frame.select(own).rename({name: new for name, new in kept.items() if name in own})
    whole = None
    for table in tables.values():
        whole = table if whole is None else whole.join(table, on=keys, how="inner", maintain_order="left")
    if whole is None or not len(whole):
        raise JudgmentError(f"no item has grades by all of the criteria; name others with {option('criteria')}")
    names = list(tables)
    errors = [f"std_error {name}" for name in names]
    whole = whole.with_columns(score=pl.mean_horizontal(names))
    if set(errors) <= set(whole.columns):
        whole = whole.with_columns(std_error=pl.mean_horizontal(errors))
    _say_correlations(whole, names)
    rank = pl.col("score").round(9).rank("min", descending=True)
    ranked = whole.with_columns(rank=(rank.over("query") if "query" in keys else rank).cast(pl.Int64))
    ranked = ranked.sort(*keys[:-1], "rank", maintain_order=True)
    columns = [*keys, "score", "rank", *names, *(["std_error"] if "std_error" in ranked.columns else [])]
    return ranked.select(columns)


def _say_correlations(table: pl.DataFrame, names: list[str]) -> None:
    """Say how far criteria order items alike."""
    if len(names) < 2 or len(table) < 3:
        return
    correlations = np.corrcoef(np.stack([table[name].to_numpy() for name in names]))
    by_pair = [
        f"{a} and {b} {correlations[i, j]:.2f}" for i, a in enumerate(names) for j, b in enumerate(names) if i < j
    ]
    say(f"correlations of scores by criterion: {', '.join(by_pair)}")
