"""Standard errors of a consensus that let judgments depend: by cluster, and by errors that annotators share."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ..data.consensus import Consensus
from ..data.judged import row_codes
from ..data.judgments import Judgments, Mixed, Preferences
from ..errors import DataWarning, ParameterError
from ..io.notices import say
from ..protocols import Ints
from ..registry import method_class, names
from ..standard_errors import ClusterErrors, cluster_robust, student_factor
from ..wording import counted, of_all, option
from .sentences import words_of

_MIN_DEPENDENT_SHARE = 0.1
"""Share of the preferences that repeat, or follow from, others of their annotator, from which on errors allow for that.

Below it they change standard errors by less than 5 per cent, even where an annotator never answers differently.
"""

_MIN_QUERIES = 20
_MUCH_WIDER = 1.2
_MAX_ROWS_UNASKED = 200_000
"""Fewest queries, smallest factor and most rows at which wider errors by query are mentioned unasked; with as many
queries each is taken for a question of its own, not for a part of a leaderboard."""

_SHARE_NOT_TRUE = 0.2
"""Share of what annotators see alike in the items of a query that is taken not to be the truth.

It is the prior mean of class methods too. On seven public sets with known answers the share that makes pairs as often
right as they are said to be is 0 to .4, and .15 on average.
"""

_KNOWN_VARIANCE = 1e-6
"""Variance of the score of a known item, as a share of that of scores, at most."""

_DEPENDS = "preferences of an annotator repeat or imply each other"
_FEW_CLUSTERS = 10
_MAX_KEY_BITS = 62


def with_robust_errors(
    consensus: Consensus, method: Any, judgments: Judgments | Mixed, robust: str | None
) -> Consensus:
    """Return the consensus with standard errors and covariances that let the judgments of a cluster depend.

    ``robust`` is ``"annotator"``, ``"query"`` or ``"none"``; ``None`` takes annotators where judgments depend by
    construction, and keeps the model's errors, and says so, where there are no others.
    """
    unasked = robust is None
    if robust == "none" or (unasked and (consensus.std_error is None or "taste" in consensus.estimates)):
        # tastes are how the judgments of an annotator depend
        return consensus
    if unasked and not depends_by_construction(judgments):
        return _with_width_by_query(consensus, method, judgments)
    robust = robust or "annotator"
    cluster: Any = judgments.annotator
    try:
        if robust == "judgment":
            cluster = np.arange(len(judgments), dtype=np.int32)
        elif robust == "query":
            cluster = getattr(judgments, "block", None)
            if cluster is None:
                remedy = "take them together with across_queries() (--across-queries)"
                raise ParameterError(f"{option('robust', 'query')} needs items that several queries share; {remedy}")
        elif not judgments.n_annotators:
            raise ParameterError(words_of("unnamed_annotators"))
        errors = _errors_by(cluster, consensus, method, judgments)
    except ParameterError as error:
        if not unasked:
            raise
        say(f"{_DEPENDS}, but standard errors are the model's, and too narrow: {error}")
        return consensus
    number = int(np.median(errors.n_clusters[errors.n_clusters > 0])) if errors.n_clusters.any() else 0
    few, kept, plural = number < _FEW_CLUSTERS, "", {"query": "queries"}.get(robust, f"{robust}s")
    if unasked and few:
        consensus = _with_repeats_as_one(consensus, judgments)
    several = bool((errors.n_clusters > 1).any())
    if unasked and not several:
        return consensus
    if not several:
        where = "" if robust == "query" else " of a query"
        raise ParameterError(f"{option('robust', robust)} needs two or more {plural}{where}; leave it out")
    clusters = f"{number:,} {plural}"
    if unasked and few:
        errors, n_narrower = _no_narrower(consensus, errors)
        which = of_all(n_narrower, len(consensus.items), "item")
        kept = f"; {which} would have a narrower one and keep the model's" if n_narrower else ""
    elif few:
        degrees = counted(number - 1, "degree")
        warnings.warn(words_of("few_clusters", clusters=clusters, degrees=degrees), DataWarning, stacklevel=3)
    wider = _times_as_wide(consensus, errors)
    why = f"{_DEPENDS}: " if unasked else ""
    each = "" if consensus.items.n_queries == 1 else " per query"
    say(f"{why}standard errors by {robust} are {wider:.2f} times as wide as the model's ({clusters}{each}){kept}")
    estimates: dict[str, Any] = {**consensus.estimates, "robust": {"by": robust, "clusters": number, "wider": wider}}
    control = consensus.estimates.get("control", {})
    if not any("degrees" in one for one in control.values()):
        # coefficients of covariates, where annotators have none of their own
        for (name, one), std_error in zip(control.items(), errors.of_shared, strict=False):
            estimates["control"] = {**estimates["control"], name: {**one, "std_error": float(std_error)}}
    return replace(
        consensus, std_error=errors.std_error, covariance=errors.covariance, estimates=estimates,
        trace=replace(consensus.trace, errors=f"cluster-robust by {robust}"),
    )  # fmt: skip


def with_shared_error(consensus: Consensus, judgments: Judgments | Mixed, shared: str | None) -> Consensus:
    """Return the consensus with errors widened by what annotators err together: what shows, and what cannot show.

    ``shared`` is ``"estimated"``, ``"none"`` or ``None``, which does what it can: annotators found to err together
    widen errors where five or more overlap, and there is an allowance for what all get wrong alike where queries tell
    what one question is. The probabilities of class methods have an allowance of their own.
    """
    if shared == "none" or consensus.std_error is None or consensus.probabilities is not None:
        return consensus
    factor, allowed = None, consensus
    if not isinstance(judgments, Mixed) and len(judgments):
        from ..review.diagnosis import shared_error_factor

        factor = shared_error_factor(judgments, consensus) if judgments.n_annotators else None
        if factor is not None and factor != 1.0:
            wider = float(np.sqrt(factor))
            say(f"annotators err together: standard errors are {wider:.2f} times as wide as those of independent ones")
            consensus = _widen(consensus, factor, {"shared": {"wider": wider}})
        allowed = _with_unseen_error(consensus, judgments)
    if factor is None and allowed is consensus and shared is not None:
        raise ParameterError(words_of("no_shared_error", given=option("shared", shared), fewest=_MIN_QUERIES))
    return allowed


def _with_unseen_error(consensus: Consensus, judgments: Judgments) -> Consensus:
    r"""The consensus with an allowance for what all annotators get wrong alike about a question.

    The difference of two items that annotators agree on is :math:`z = s + u`, the truth :math:`s` and an error
    :math:`u` that they share; their judgments show the sum only. If :math:`u` has the share :math:`\rho` of the
    variance :math:`\sigma^2` of :math:`z`, then in the normal model

    .. math:: P(s > 0) = \Phi\Bigl(\frac{z}{\sqrt{V + \tau^2 / m}}\Bigr), \qquad
              \tau^2 = \frac{\rho}{1 - \rho} \sigma^2,

    :math:`V` being the variance that more judgments would take away, and :math:`m` the number of questions that the
    difference rests on: the pairs of a query that were compared, for each item but one. It is 1 where queries have two
    items, and where items are graded or ranked, which is one question about each. Over the prompts of a leaderboard
    such errors average out, so there is no allowance where queries are taken together or are few; nor where those
    trusted tell what the truth is.
    """
    sizes, query, blocks = np.diff(consensus.items.offsets), consensus.items.query, consensus.covariance
    if len(sizes) < _MIN_QUERIES or sizes.max() < 2 or "trusted" in consensus.estimates:
        return consensus
    assert consensus.std_error is not None
    others = np.maximum(sizes - 1, 1)
    n_questions = others
    if isinstance(judgments, Preferences):
        _, low, high = _questions(judgments)
        pairs = np.unique(low.astype(np.int64) * judgments.n_items + high)
        n_questions = np.maximum(np.bincount(query[pairs // judgments.n_items], minlength=len(sizes)), others)
    means = np.bincount(query, consensus.scores, len(sizes)) / np.maximum(sizes, 1)
    variance = float(((consensus.scores - means[query]) ** 2).sum()) / int((sizes - 1).clip(0).sum())
    # half of the variance of a difference is each item's; known items have hardly any error
    unsure = consensus.std_error**2 > _KNOWN_VARIANCE * variance
    added = _SHARE_NOT_TRUE / (1.0 - _SHARE_NOT_TRUE) * variance * others / n_questions
    # with covariances, errors are those of centred scores
    centred = added[query] * (1.0 - (blocks is not None) / sizes[query])
    std_error = np.sqrt(consensus.std_error**2 + centred * unsure)
    changed = std_error > consensus.std_error
    if not changed.any():
        return consensus
    wider = float(np.median(std_error[changed] / consensus.std_error[changed]))
    if blocks is not None:
        # many queries have the same number of items
        centring = cache(lambda n: np.eye(n) - 1.0 / max(n, 1))
        masks, some_known = np.split(unsure, consensus.items.offsets[1:-1]), not unsure.all()

        def wider_block(block: Any, own: float, mask: Any) -> Any:
            more = own * centring(len(block))
            return block + (more * np.outer(mask, mask) if some_known else more)

        each = zip(blocks, added.tolist(), masks, strict=True)
        blocks = tuple(None if block is None else wider_block(block, own, mask) for block, own, mask in each)
    say(words_of("unseen_error", wider=wider))
    seen = consensus.estimates.get("shared", {"wider": 1.0})["wider"]
    estimates = {**consensus.estimates, "shared": {"wider": seen * wider, "unseen": _SHARE_NOT_TRUE}}
    return replace(consensus, std_error=std_error, covariance=blocks, estimates=estimates)


def _widen(consensus: Consensus, factor: float, estimates: dict[str, Any]) -> Consensus:
    """The consensus with variances so many times as large, and what was estimated."""
    assert consensus.std_error is not None
    blocks = consensus.covariance
    return replace(
        consensus, std_error=consensus.std_error * float(np.sqrt(factor)),
        covariance=None if blocks is None else tuple(None if block is None else block * factor for block in blocks),
        estimates={**consensus.estimates, **estimates},
    )  # fmt: skip


def _with_repeats_as_one(consensus: Consensus, judgments: Any) -> Consensus:
    r"""The consensus with errors widened where few annotators answered the same question several times.

    Answers of one annotator to one question agree more often, :math:`A_w`, than those of two annotators, :math:`A_b`:
    they correlate by :math:`r = (A_w - A_b) / (1 - A_b)`, and :math:`m` of them are worth :math:`m / (1 + (m - 1) r)`
    [Kish65]_. One annotator's answers alone do not show :math:`A_b`; there they count as one.
    """
    block, low, high = _questions(judgments)
    answer = 1 + np.where(judgments.left < judgments.right, judgments.outcome, -judgments.outcome)
    thing = row_codes(block, low, high)
    own = row_codes(thing, judgments.annotator)

    def n_pairs(*keys: Any) -> float:
        number = np.bincount(row_codes(*keys)).astype(np.float64)
        return float((number * (number - 1)).sum())

    again = n_pairs(own)
    if not again:
        return consensus
    others = n_pairs(thing) - again
    agreed = n_pairs(own, answer)
    within, between = agreed / again, (n_pairs(thing, answer) - agreed) / others if others else 0.0
    repeat = float(np.clip((within - between) / (1 - between), 0.0, 1.0)) if others and between < 1 else 1.0
    factor = 1.0 + repeat * again / len(thing)
    say(words_of("asked_again", repeat=repeat, wider=np.sqrt(factor)))
    return _widen(consensus, factor, {"repeats": {"correlation": repeat, "wider": float(np.sqrt(factor))}})


def _with_width_by_query(consensus: Consensus, method: Any, judgments: Any) -> Consensus:
    """The consensus with how much wider errors by query would be, said where that is much; they are never unasked."""
    block = getattr(judgments, "block", None)
    n_queries = 0 if block is None or len(block) > _MAX_ROWS_UNASKED else len(np.unique(block))
    if block is None or n_queries < _MIN_QUERIES or len(block) < 2 * n_queries:
        return consensus
    # where there are no errors by query, nothing is known to be wrong with the model's
    with suppress(ParameterError):
        wider = _times_as_wide(consensus, _errors_by(block, consensus, method, judgments))
        if wider >= _MUCH_WIDER:
            say(words_of("wider_by_query", wider=wider, n_queries=n_queries))
            by_query = {"by_query": {"wider": wider, "clusters": n_queries}}
            return replace(consensus, estimates={**consensus.estimates, **by_query})
    return consensus


def _no_narrower(consensus: Consensus, by_cluster: ClusterErrors) -> tuple[ClusterErrors, int]:
    """The errors, none narrower than the model's, and how many were; correlations stay those of the clusters.

    Errors are taken unasked since judgments depend, which widens them. The residuals of a few clusters that agree with
    the scores learned from them may still be small by chance.
    """
    assert consensus.covariance is not None
    assert consensus.std_error is not None
    narrower, blocks = consensus.std_error > by_cluster.std_error, list(by_cluster.covariance)
    for number, (model, block) in enumerate(zip(consensus.covariance, by_cluster.covariance, strict=True)):
        assert model is not None
        assert block is not None
        own = by_cluster.std_error[consensus.items.offsets[number] : consensus.items.offsets[number + 1]]
        if not own.all():
            blocks[number] = model
            continue
        factor = np.maximum(np.sqrt(np.maximum(np.diagonal(model), 0.0)) / own, 1.0)
        blocks[number] = factor[:, None] * block * factor
    std_error = np.maximum(by_cluster.std_error, consensus.std_error)
    return by_cluster._replace(covariance=tuple(blocks), std_error=std_error), int(narrower.sum())


def _times_as_wide(consensus: Consensus, by_cluster: ClusterErrors) -> float:
    """How many times as wide as the model's the standard errors by cluster are, in the median."""
    assert consensus.std_error is not None
    known = consensus.std_error > 0
    return float(np.median(by_cluster.std_error[known] / consensus.std_error[known])) if known.any() else 1.0


def variance_by_query(consensus: Consensus, method: Any, judgments: Any) -> tuple[float, int] | None:
    """Return how many times the model's the variances of scores by query are, and of how many queries that is known.

    This is the mean over all items, which a few queries tell well, where their covariance would be singular. Of fewer
    than ten queries the preferences of an annotator about a pair are a cluster instead. ``None`` where there are no
    gradients.
    """
    cluster: Any = getattr(judgments, "block", None)
    if cluster is None or len(np.unique(cluster)) < _FEW_CLUSTERS:
        cluster = np.arange(len(judgments), dtype=np.int64)
        if isinstance(judgments, Preferences):
            cluster = row_codes(judgments.row_annotator, *_questions(judgments))
    try:
        errors = _errors_by(cluster, consensus, method, judgments)
    except ParameterError:
        return None
    n_clusters = int(errors.n_clusters.max(initial=0))
    if n_clusters < 2 or consensus.std_error is None:
        return None
    total = float((errors.std_error**2).sum() / student_factor(n_clusters))
    return total / max(float((consensus.std_error**2).sum()), 1e-300), n_clusters


def _errors_by(cluster: Ints, consensus: Consensus, method: Any, judgments: Judgments | Mixed) -> ClusterErrors:
    """Errors by cluster, where the method has gradients and a covariance of every query; otherwise what is missing."""
    instead = f"{option('bootstrap', 200)} with {option('resample', 'annotator')}"
    if not hasattr(method, "score_gradients"):
        able = [name for name in names("aggregator") if hasattr(method_class("aggregator", name), "score_gradients")]
        raise ParameterError(f"{consensus.method} has no cluster-robust errors; use {', '.join(able)}, or {instead}")
    blocks = consensus.covariance
    if isinstance(judgments, Mixed):
        raise ParameterError(f"there are no cluster-robust errors for several kinds together; use {instead}")
    if "taste" in consensus.estimates or blocks is None or any(block is None for block in blocks):
        raise ParameterError(words_of("no_robust_errors", instead=instead))
    return cluster_robust(blocks, consensus.items.offsets, method.score_gradients(judgments, consensus), cluster)


def depends_by_construction(judgments: Judgments | Mixed) -> bool:
    """Return whether preferences repeat or imply each other: made of rankings or grades, or a pair asked again."""
    if not isinstance(judgments, Preferences) or not judgments.n_annotators or not len(judgments):
        return False
    block, low, high = _questions(judgments)
    keys = (judgments.annotator, block, low, high)
    widths = [int(np.max(key, initial=0)).bit_length() for key in keys]
    asked = np.zeros(len(low), np.int64)
    if sum(widths) <= _MAX_KEY_BITS:
        # packed into one integer, which is sorted sooner than codes are made
        for key, width in zip(keys, widths, strict=True):
            asked = (asked << width) | key
    else:
        asked = row_codes(*keys)
    asked.sort()
    n_asked = 1 + int((np.diff(asked) != 0).sum())
    if len(low) - n_asked >= _MIN_DEPENDENT_SHARE * len(low):
        return True
    if judgments.recorded is None or not judgments.recorded.all():
        return False
    group = row_codes(judgments.annotator, judgments.items.query[low], block)
    # of m items that are in order, all but m - 1 of the preferences follow from the others
    n_items = len(np.unique(row_codes(np.tile(group, 2), np.concatenate([low, high]))))
    if n_asked - (n_items - len(np.unique(group))) < _MIN_DEPENDENT_SHARE * len(low):
        return False
    # in each group every winner has more wins, less losses, than the loser: there are no circles
    both = row_codes(np.tile(group, 2), np.concatenate([judgments.left, judgments.right]))
    n, won = len(group), judgments.outcome.astype(np.float64)
    surplus = np.bincount(both, np.concatenate([won, -won]))
    return bool((won * (surplus[both[:n]] - surplus[both[n:]]) >= np.abs(won)).all())


def _questions(preferences: Preferences) -> tuple[Any, Any, Any]:
    """Query of each preference, and the two items whichever side they were on."""
    left, right, block = preferences.left, preferences.right, preferences.block
    return np.zeros(len(left), np.int64) if block is None else block, np.minimum(left, right), np.maximum(left, right)
