"""Mean log-likelihood of judgments that a method has not seen.

A random 15 % of the judgments are held out; those by annotators and on items that the rest knows are predicted. Of
preferences, and of the pairs of rankings, only decided answers count, and what a method says is the probability of the
left item given that it is not a tie. Methods say it in their own terms:

- ``latent_score``: the model's predictive probability, averaged over what is not known of items and annotators;
- ``dawid_skene``: the annotator's confusion matrix, weighted by the item's probable levels;
- ``bradley_terry``: ``sigmoid`` of the difference of scores;
- ``crowd_bt``: the same, turned round with the annotator's probability of a mistake.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

SHARE = 0.15
_LEAST = 1e-12


def split(judgments: Any, seed: int, *, keep: float = 1.0) -> tuple[Any, Any]:
    """Return the judgments to learn from and those held out; ``keep`` is the share of the first to learn from."""
    rng = np.random.default_rng(seed)
    held = rng.random(len(judgments)) < SHARE
    seen = ~held & (rng.random(len(judgments)) < keep)
    return judgments.select(seen), judgments.select(held)


def judgments_to_predict(learned: Any, held: Any) -> Any:
    """Return those held-out judgments whose annotator and items occur in what was learned from."""
    known = learned.judged_items
    busy = np.bincount(learned.annotator, minlength=learned.n_annotators) > 0
    use = busy[held.annotator]
    if held.kind == "ranking":
        lost = np.bincount(held.ranking, ~known[held.item], minlength=len(held)) > 0
        return held.select(use & ~lost)
    for column in {"item", "left", "right"} & set(held.answers):
        use = use & known[getattr(held, column)]
    return held.select(use)


def with_levels(judgments: Any) -> Any:
    """Return grades with their levels declared, so that every part of them knows all."""
    return replace(judgments, declared=judgments.levels) if judgments.kind == "grade" else judgments


def without_annotators(judgments: Any) -> Any:
    """Return the judgments as if one annotator had given them all."""
    from crowdrank.data.index import Index

    nobody = Index.empty()
    return replace(judgments, annotators=nobody, annotator=np.empty(0, np.int32), groups=None, group=None)


def log_likelihood(method: str, judgments: Any, seed: int, **params: Any) -> float:
    """Return the mean log-likelihood of the judgments held out with this seed."""
    learned, held = split(with_levels(judgments), seed)
    asked = judgments_to_predict(learned, held)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PREDICTORS[method](learned, asked, params)


def _latent(learned: Any, asked: Any, params: dict[str, Any]) -> float:
    """The latent-score model; ``annotators=False`` takes everybody for the same."""
    if not params.pop("annotators", True):
        learned, asked = without_annotators(learned), without_annotators(asked)
    return of_levels(latent_levels(learned, asked, **params), asked)


def latent_levels(learned: Any, asked: Any, *, features: Any = None, difficulty: bool = True, **params: Any) -> Any:
    """Return the probability of each level of each judgment asked for, or of each pair of its rankings, (n, K).

    ``features`` are those of the items, standardised, (n_items, n_features). ``difficulty`` says whether items may
    differ in it.
    """
    from crowdrank.models.latent_score.model import lay_out
    from crowdrank.models.latent_score.outcomes import score_errors
    from crowdrank.models.latent_score.steps import Options, fit_scores

    layout = lay_out(learned, **params)
    fit = fit_scores(layout, Options(difficulty=None if difficulty else False), features=features)
    scores, blocks = fit.state.scores, score_errors(layout, fit)[1]
    pairs = asked.as_preferences() if asked.kind == "ranking" else asked
    if asked.kind == "grade":
        gap, variance = scores[pairs.item], fit.state.variance[pairs.item]
    else:
        gap = scores[pairs.left] - scores[pairs.right]
        variance = _gap_variance(learned.items, blocks, fit.state, pairs.left, pairs.right)
    who = pairs.annotator if pairs.n_annotators else np.zeros(len(pairs), np.int32)
    clear = np.exp(-fit.state.difficulty[pairs.item]) if len(fit.state.difficulty) else np.ones(len(gap))
    return _levels(fit.state, fit.state.kinds[0], who, gap, variance, clear)


def _gap_variance(items: Any, blocks: Any, state: Any, left: Any, right: Any) -> Any:
    """Variance of the difference of two scores, as if they were independent where their covariance is not known."""
    variance = state.variance[left] + state.variance[right]
    for query in np.unique(items.query[left]) if blocks is not None else ():
        if blocks[query] is not None:
            use, start = items.query[left] == query, items.offsets[query]
            i, j = left[use] - start, right[use] - start
            own = np.diagonal(blocks[query])
            variance[use] = own[i] + own[j] - 2 * blocks[query][i, j]
    return np.maximum(variance, 0.0)


def _levels(state: Any, habits: Any, who: Any, gap: Any, variance: Any, clear: Any) -> Any:
    """Probability of each level for annotators at a score or difference, averaged over what is not known of either.

    ``clear`` is the clarity of the item graded, 1 where items do not differ in it.
    """
    scale = np.exp(habits.log_scale)
    alpha, unsure = state.alpha[who], state.alpha_variance[who]
    eta = scale * alpha * gap + habits.bias[who]
    spread = scale**2 * ((alpha**2 + unsure) * variance + unsure * gap**2)
    spread = spread + 2 * scale * gap * habits.covariance[who] + habits.bias_variance[who]
    flat = clear / np.sqrt(1 + np.pi * clear**2 * np.maximum(spread, 0) / 8)
    cuts = habits.centre + np.exp(habits.spread[who])[:, None] * habits.cuts
    below = sigmoid(flat[:, None] * (cuts - eta[:, None]))
    ends = np.zeros((len(who), 1)), np.ones((len(who), 1))
    chance = np.diff(np.hstack([ends[0], below, ends[1]]), axis=1)
    if not len(habits.favourites):
        return chance
    lapse = habits.lapse[who][:, None]
    return (1 - lapse) * chance + lapse * habits.favourites[who]


def of_levels(chance: Any, asked: Any) -> float:
    """Return the mean log-likelihood from the probability of each level (n, K); ties of preferences are left out."""
    if asked.kind == "grade":
        return mean_log(chance[np.arange(len(asked)), asked.level_codes()[0]])
    pairs = asked.as_preferences() if asked.kind == "ranking" else asked
    won, lost = chance[:, -1], chance[:, 0]
    return decided(won / (won + lost), pairs.outcome)


def decided(left: Any, outcome: Any) -> float:
    """Return the mean log-likelihood of decided outcomes from the probability that left wins."""
    chance = np.where(outcome > 0, left, 1 - left)
    return mean_log(chance[outcome != 0])


def mean_log(chance: Any) -> float:
    """Return the mean logarithm of probabilities."""
    return float(np.log(np.maximum(chance, _LEAST)).mean())


def _dawid_skene(learned: Any, asked: Any, params: dict[str, Any]) -> float:
    """Confusion matrices weighted by the probable levels."""
    from crowdrank.registry import make

    consensus = make("aggregator", "dawid_skene", params).fit(learned)
    confusion = consensus.quality.parameters["confusion"][asked.annotator]
    chance = np.einsum("nj,njl->nl", consensus.probabilities[asked.item], confusion)
    return of_levels(chance, asked)


def _bradley_terry(learned: Any, asked: Any, params: dict[str, Any]) -> float:
    """The difference of scores."""
    from crowdrank.registry import make

    scores = make("aggregator", "bradley_terry", params).scores(learned.as_preferences())
    pairs = asked.as_preferences()
    return decided(sigmoid(scores[pairs.left] - scores[pairs.right]), pairs.outcome)


def _crowd_bt(learned: Any, asked: Any, params: dict[str, Any]) -> float:
    """The difference of scores, and the annotator's chance of a mistake."""
    from crowdrank.registry import make

    consensus = make("aggregator", "crowd_bt", params).fit(learned.as_preferences())
    pairs = asked.as_preferences()
    right = consensus.quality.parameters["eta"][pairs.annotator]
    above = sigmoid(consensus.scores[pairs.left] - consensus.scores[pairs.right])
    return decided(right * above + (1 - right) * (1 - above), pairs.outcome)


def sigmoid(x: Any) -> Any:
    """Return the logistic function."""
    return 0.5 + 0.5 * np.tanh(0.5 * x)


PREDICTORS: dict[str, Callable[[Any, Any, dict[str, Any]], float]] = {
    "latent_score": _latent,
    "dawid_skene": _dawid_skene,
    "bradley_terry": _bradley_terry,
    "crowd_bt": _crowd_bt,
}
