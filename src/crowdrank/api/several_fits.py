"""One table from several fits: a leaderboard per category, shrunk to that of all."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..data.consensus import Consensus
from ..errors import DataWarning, ParameterError
from ..io.notices import say
from ..protocols import Floats
from ..registry import make
from ..wording import option
from .aggregation import aggregate, reweigh_pairs
from .robust_errors import variance_by_query, with_robust_errors

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
        raise ParameterError(
            f"{option('by')} needs covariances of the scores of one query: use across_queries() (--across-queries), a "
            "method such as bradley_terry or latent_score, and at most 700 items"
        )
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
    times = _variance_times(list(parts.values()))
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


def _variance_times(parts: Sequence[CategoryFit]) -> float:
    """How many times the model's the variances by query are: the mean over categories, by their queries."""
    known = [part.by_query for part in parts if part.by_query is not None]
    if not known:
        return 1.0
    ratios, queries = np.array(known).T
    times = max(float(np.average(ratios, weights=queries)), 1.0)
    if times >= _TOLD_VARIANCE:
        say(
            f"judgments of a query depend on each other: variances are {times:.1f} times the model's, and categories "
            f"are shrunk as if each judgment told {1 / times:.2f} of what it says"
        )
    return times


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
    scores, elsewhere = _scores_without(whole, own, known, level)
    posteriors = [_posterior(own.scores - scores, own.covariance, elsewhere, level, sd) for sd in _DEVIATIONS.tolist()]
    # the deviations lie further apart the larger they are
    log_weight = np.array([-0.5 * one.surprise for one in posteriors]) + np.log(np.gradient(_DEVIATIONS))
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    if posteriors[-1].surprise <= min(one.surprise for one in posteriors):
        warnings.warn(
            f"the scores of category {category} differ from those of the others by more than a standard deviation of "
            f"{_DEVIATIONS[-1]:g}, the largest that is looked at, so they are hardly shrunk; see whether its votes are "
            "read the right way round", DataWarning, stacklevel=4,
        )  # fmt: skip
    moves = np.array([one.move for one in posteriors])
    off = moves - weight @ moves
    spread = np.einsum("d,dij->ij", weight, [one.covariance for one in posteriors]) + (weight[:, None] * off).T @ off
    moved = scores + weight @ moves
    spread = spread - spread.mean(axis=0, keepdims=True)
    variance = np.diagonal(spread - spread.mean(axis=1, keepdims=True))
    # how much of the score is the category's own; tastes are the same in both parts
    share = np.clip(weight @ np.array([one.share for one in posteriors]), 0.0, 1.0)
    further = (1.0 - share) * np.sqrt(whole.more) + share * np.sqrt(own.more)
    return moved - moved.mean(), np.sqrt(np.maximum(variance, 0.0) + further**2), float(weight @ _DEVIATIONS)


def _scores_without(whole: _Scores, own: _Scores, known: Floats, level: Floats) -> tuple[Floats, Floats]:
    """Scores of all judgments but those of a category, and their covariance, the level left open.

    The category has that share of what all judgments tell which it has of what categories tell. What it says by itself
    may be more than all judgments say, where these contradict each other.
    """
    part = np.linalg.inv(own.covariance + level)
    root, undo = _power(whole.covariance + level, -0.5), _power(known, -0.5)
    share = root @ undo @ part @ undo @ root
    values, vectors = np.linalg.eigh(root @ root - share)
    inverse = (vectors / np.maximum(values, 1.0 / _UNKNOWN_VARIANCE)) @ vectors.T
    return whole.scores + inverse @ share @ (whole.scores - own.scores), inverse


def _power(matrix: Floats, exponent: float) -> Floats:
    """Power of a symmetric matrix of positive eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * values**exponent) @ vectors.T


class _Posterior(NamedTuple):
    """At a standard deviation: how surprising a category is, how far its scores lie from the others', and how surely.

    ``surprise`` is twice the negative log-likelihood, with a half-normal prior of the standard deviation. ``share`` is
    how much of the own score of each item is believed.
    """

    surprise: float
    move: Floats
    covariance: Floats
    share: Floats


def _posterior(off: Floats, covariance: Floats, elsewhere: Floats, level: Floats, deviation: float) -> _Posterior:
    """The category, given its differences to the others and a standard deviation of them."""
    around = elsewhere + deviation**2 * np.eye(len(off))
    matrix = covariance + level + around
    share = np.linalg.solve(matrix, around).T
    surprise = float(np.linalg.slogdet(matrix)[1] + off @ np.linalg.solve(matrix, off) + deviation**2)
    return _Posterior(surprise, share @ off, around - share @ around, np.diagonal(share))


def _rank_items(category: str, whole: Consensus, score: Floats, std_error: Floats, deviation: float) -> pl.DataFrame:
    """The items of a category, best first."""
    table = pl.DataFrame({
        "category": [category] * len(score), "item": whole.items.ids, "score": score,
        "std_error": std_error, "sd": np.full(len(score), deviation),
    })  # fmt: skip
    ranked = table.with_columns(rank=pl.col("score").round(9).rank("min", descending=True).cast(pl.Int64))
    return ranked.sort("rank", maintain_order=True).select("category", "item", "score", "std_error", "rank", "sd")
