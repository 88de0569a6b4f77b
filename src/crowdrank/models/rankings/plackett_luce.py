"""Scores from rankings by the Plackett-Luce model, partial and tied ones too, annotators alike or learned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...data.consensus import Consensus, Quality, Trace
from ...data.index import Items
from ...data.judgments import Rankings, expect
from ...errors import ParameterError
from ...fitting import newton
from ...pair_counts import PairCounts, apply_ties_rule, warn_unbounded
from ...protocols import BlockFit, Bools, Counts, Floats, Ints
from ...quality import INTERVAL, held_out, trusted_annotators, warn_near_chance
from ...standard_errors import ScoreGradients
from ...wording import expect_above, expect_choices, option
from .plackett_luce_fit import AdherencePrior, RankingPoint, RankingProblem

if TYPE_CHECKING:
    from .kernels.plackett_luce import RankedRows

_TIES = ("split", "ignore")
_ANNOTATORS = ("equal", "weighted")
_START_TOL = 1e-4
"""Tolerance of the scores that the learning of annotators begins with."""

_MOST_UNTRUSTED_ADHERENCE = 0.1
"""Largest adherence of the others beside trusted annotators, before adherences are learned."""

_N_LAGS = 32
_N_GAPS = 512
_LARGEST_EXPONENT = 500.0


@dataclass(frozen=True, kw_only=True)
class PlackettLuce:
    r"""Plackett-Luce: a ranking as successive choices with odds given by scores.

    An annotator puts item :math:`i` next, of those not yet placed, with probability :math:`e^{s_i} / \sum_j e^{s_j}`
    [Luce59]_ [Plackett75]_, so a ranking :math:`y` of :math:`m` items has

    .. math:: \log P(y) = \sum_{p=1}^{m} \Bigl[ s_{y_p} - \log \sum_{r \ge p} e^{s_{y_r}} \Bigr].

    The scores maximise the log-likelihood less :math:`\frac{\lambda}{2} \sum_i s_i^2`, :math:`\lambda` being ``ridge``;
    they sum to zero in every query. Rankings of two items are preferences by the Bradley-Terry model. With
    ``annotators="weighted"`` annotator :math:`a` ranks by :math:`\theta_a s_i` instead, where the adherence
    :math:`\theta_a` is large for careful annotators, 0 for guessing ones and below 0 for reversed ones.

    When to use
    -----------
    Use it for rankings, partial and short ones included, where scores with standard errors are wanted. Set
    ``annotators="weighted"`` where annotators differ. For full rankings of few items by few annotators ``mallows`` is
    an alternative.

    Parameters
    ----------
    ties
        ``"split"``: a tie is the mean of all orders of its items, so it says that they are close; ``"ignore"``: the
        items of a tie stand above those below, and nothing is known of their order.
    ridge
        Pull of the scores towards each other, as precision of a normal prior. It keeps items that were ranked first, or
        last, every time, and groups that were never ranked together, at finite scores; raise it where rankings are few.
    annotators
        ``"equal"``: all count alike; ``"weighted"``: an adherence of each is learned, over all queries.
    alpha
        Pull of the adherences towards their mean, as precision of a normal prior; left out, it is estimated from how
        much annotators differ. Raise it to have them count more alike.
    tol
        Largest change of a score, or of an adherence, in the last step; raise it to stop earlier.
    max_iter
        Largest number of Newton steps; raise it where a warning says that the fit did not converge.

    Notes
    -----
    Items left out of a ranking are not judged. Where being left out means being worse, rank them together last and use
    ``ties="ignore"``. Turning all rankings round does not turn the scores round: to choose the worst first is another
    model. Rankings of one item say nothing.

    Ties of more than two are split by an approximation: of those still to be placed, each item in turn is taken as it
    is and the others at their mean. With ``"ignore"`` each item of a tie has its chance against those below alone, a
    composite likelihood [Varin11]_, weighed by what a tie of equal items tells. A tie as an outcome of its own
    [Turner20]_ was tried and left out: from 150 public rankings of translations it predicted 59.4 % of the pairs of
    other annotators, split ties 59.8 % (20 draws, standard error of the difference 0.1).

    The default ridge is that of :class:`~crowdrank.models.pairs.bradley_terry.BradleyTerry`, a prior with standard
    deviation 3.2; use ``ridge=1e-6`` for maximum likelihood. Newton steps solve their linear system by conjugate
    gradients, so memory grows with the rows of the rankings. The trace has the log-likelihood less the penalties,
    which never falls.

    Standard errors and covariances are those of the scores centred in their query, from the inverse of the curvature,
    prior included. Both are exact for queries of up to 700 items; larger ones have no covariance, and their standard
    errors are estimated from seeded random probes [Bekas07]_. They include the uncertainty of learned adherences unless
    a query is as large as that, or items times annotators exceed 20 million. An unjudged item has score 0.

    Adherences have a mean square of 1 over the rankings, and the pull on them is estimated by moments [DerSimonian86]_:
    where annotators differ no more than chance makes them, they count alike. Quality follows from the adherence, as the
    probability to order two random items of a query like their scores; of equal annotators it is the agreement with
    the others. A majority of reversed annotators looks like a good crowd turned round. ``trusted=`` names annotators
    known to be good: scores start from theirs, and their adherences are held near 1.

    Examples
    --------
    >>> rows = [("ann", "q", "x", 1), ("ann", "q", "y", 2), ("ann", "q", "z", 3)]
    >>> rows += [("bob", "q", "x", 1), ("bob", "q", "z", 2), ("cy", "q", "z", 1), ("cy", "q", "x", 2)]
    >>> consensus = PlackettLuce().fit(Rankings.from_rows(rows))
    >>> consensus.order("q"), consensus.scores.round(3).tolist()
    (['x', 'y', 'z'], [0.461, 0.09, -0.551])
    """

    kinds: ClassVar[tuple[str, ...]] = ("ranking",)
    precision: ClassVar[float] = 1e-10
    ties: str = "split"
    ridge: float = 0.1
    annotators: str = "equal"
    alpha: float | None = None
    tol: float = 1e-6
    max_iter: int = 100

    def __post_init__(self) -> None:
        expect_choices(self, ties=_TIES, annotators=_ANNOTATORS)
        expect_above(self, 0, "ridge", hint="use a small one such as 1e-6 for none")
        expect_above(self, 0, "alpha", hint="leave it out to have it estimated")

    def fit(self, rankings: Rankings, *, trusted: Any | None = None) -> Consensus:
        """Return scores with standard errors; warns of items and groups that only the ridge keeps finite.

        ``trusted`` names annotators known to be good, for ``annotators="weighted"``.
        """
        expect(rankings, self)
        problem, start = self._problem(rankings, trusted)
        warn_unbounded(rankings.items, problem.pair_counts)
        problem, best, trace = self._maximum(problem, start)
        std_error, covariance = problem.standard_errors(best, rankings.items.offsets)
        quality: Any = held_out(self, rankings)
        estimates = {}
        if self.annotators == "weighted":
            quality, estimates = _quality(problem, best, rankings), {"alpha": problem.prior.alpha}
            if trusted is None:
                warn_near_chance("plackett_luce", quality.quality, quality.n_judgments)
        return Consensus.of(
            self, rankings, best.scores, trace=trace, std_error=std_error, covariance=covariance, quality=quality,
            estimates=estimates,
        )  # fmt: skip

    def over_blocks(self, judged: Any, **given: Any) -> BlockFit:
        """Return the passes of a fit to rankings in parts, for annotators who count alike."""
        from .plackett_luce_passes import PlackettLucePasses

        if self.annotators == "weighted" or given.get("trusted") is not None:
            raise ParameterError(
                "plackett_luce with annotators='weighted' needs all rankings at once; use annotators='equal' for "
                "packed ones, or crowd_agg, which learns a quality of each annotator"
            )
        if judged.by != "query":
            raise ParameterError("plackett_luce goes query by query; pack the judgments by query")
        passes = PlackettLucePasses(self, judged)
        return BlockFit(passes.lay_out, passes.solve)

    def score_gradients(self, rankings: Rankings, consensus: Consensus) -> ScoreGradients:
        """Return the gradients of the rankings in the scores, at the consensus."""
        from .kernels.plackett_luce import evaluate_lists, ranked_rows

        weight = np.ascontiguousarray(rankings.row_weight, np.float64)
        rows = ranked_rows(rankings.offsets, rankings.item, rankings.rank, weight, self.ties)
        adherence = np.ones(len(rankings))
        if self.annotators == "weighted" and consensus.quality is not None:
            adherence = consensus.quality.parameters["adherence"][rankings.annotator]
        # each place of each ranking as an item of its own
        places = np.arange(len(rows.item), dtype=np.int32)
        value = evaluate_lists(rows._replace(item=places), consensus.scores[rows.item], adherence).gradient
        judgment = np.repeat(np.arange(len(rankings)), np.diff(rows.offsets))
        return ScoreGradients(judgment, rows.item, value, self.ridge)

    def scores(self, rankings: Rankings) -> Floats:
        """Return the scores alone, without standard errors, for repeated fits."""
        expect(rankings, self)
        return self._maximum(*self._problem(rankings, None))[1].scores

    def _problem(self, rankings: Rankings, trusted: Any | None) -> tuple[RankingProblem, Floats]:
        """What is to be maximised, and the habits to begin with: all keep to the scores, or above all the trusted."""
        from .kernels.plackett_luce import ranked_rows

        weighted = self.annotators == "weighted"
        if trusted is not None and not weighted:
            raise ParameterError(f"{option('trusted')} is for annotators='weighted'; set that, or leave it out")
        if weighted and not rankings.n_annotators:
            raise ParameterError(
                "annotators='weighted' needs to know who gave each ranking; add an annotator column or use 'equal'"
            )
        weight = np.ascontiguousarray(rankings.row_weight, np.float64)
        rows = ranked_rows(rankings.offsets, rankings.item, rankings.rank, weight, self.ties)
        pair_counts = _neighbour_counts(rows, rankings.items, self.ties)
        annotator = rankings.annotator if weighted else np.zeros(len(rankings), np.int32)
        given = np.bincount(annotator, weight, rankings.n_annotators if weighted else 1)
        # trusted annotators who ranked nothing do not help the start
        known = trusted_annotators(rankings, trusted) & (given > 0) if weighted else np.zeros(1, bool)
        share = given / given.sum() if given.any() else np.full(len(given), 1.0 / len(given))
        prior = AdherencePrior(self.alpha or 1.0, share, known)
        problem = RankingProblem(rows, annotator, pair_counts, self.ridge, prior, self.tol)
        # the others count a little too: where no trusted annotator ranked, nothing else says which way round they rank
        sure = float(share[known].sum())
        untrusted = (
            _MOST_UNTRUSTED_ADHERENCE * min(1.0, sure / max(1.0 - sure, _MOST_UNTRUSTED_ADHERENCE))
            if known.any()
            else 1.0
        )
        return problem, np.append(known, untrusted).astype(np.float64)

    def _maximum(self, problem: RankingProblem, habits: Floats) -> tuple[RankingProblem, RankingPoint, Trace]:
        """Where the penalised log-likelihood is largest, of the scores first, then of the adherences with them."""
        weighted = self.annotators == "weighted"
        tol = max(self.tol, _START_TOL) if weighted else self.tol
        limit, what = self.max_iter, "plackett_luce"
        alike, start = partial(problem.evaluate, fixed=habits), problem.start(habits)
        point, best, trace = newton(alike, problem.direction, start, tol=tol, max_iter=limit, what=what)
        if weighted:
            problem = problem.with_estimated_alpha(best) if self.alpha is None else problem
            both, start = problem.evaluate, np.append(point, habits)
            _, best, fine = newton(both, problem.direction, start, tol=self.tol, max_iter=limit, what=what)
            best = problem.rescale(best)
            values = (trace.log_likelihood or ()) + (fine.log_likelihood or ())[1:]
            trace = replace(fine, n_iter=trace.n_iter + fine.n_iter, log_likelihood=values)
        return problem, best, trace


def _neighbour_counts(rows: RankedRows, items: Items, ties: str) -> PairCounts:
    """Neighbours in each ranking as pair counts, which connect the same items the same way round as all pairs do."""
    from ...kernels.pairs import count_pairs

    tied, offsets = rows.tied, rows.offsets
    if ties == "ignore" and tied.any():
        above, below = _across_ties(tied, offsets)
        outcome = np.ones(len(above), np.int8)
    else:
        inside = np.ones(len(tied), bool)
        inside[offsets[1:] - 1] = False
        above = np.flatnonzero(inside)
        below = above + 1
        outcome = (~tied[below]).astype(np.int8)
    counts = count_pairs(rows.item[above], rows.item[below], outcome, None, items.offsets)
    return apply_ties_rule(counts, ties, items.offsets)


def _across_ties(tied: Bools, offsets: Counts) -> tuple[Counts, Counts]:
    """Each row of a tie, or untied one, with each row of the next below it in its ranking."""
    begin = np.flatnonzero(~tied)
    ends = np.append(begin[1:], len(tied))
    last = np.repeat(offsets[1:], np.diff(offsets))[begin]
    following = np.minimum(np.append(ends[1:], len(tied)), last)
    number = np.repeat(following - ends, ends - begin)
    above = np.repeat(np.arange(len(tied)), number)
    first = np.repeat(ends, ends - begin) - np.cumsum(number) + number
    return above, np.repeat(first, number) + np.arange(len(above))


def _quality(problem: RankingProblem, best: RankingPoint, rankings: Rankings) -> Quality:
    """Probability that each annotator's adherence orders two random items of a query as their scores do."""
    from statistics import NormalDist

    half = NormalDist().inv_cdf(0.5 + 0.5 * INTERVAL) / np.sqrt(problem.adherence_curvature(best))
    gaps = _score_gaps(best.scores, rankings.items.query, rankings.items.offsets)

    def right(adherence: Floats) -> Floats:
        odds = np.exp(np.clip(np.outer(adherence, -gaps), -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
        return np.asarray((1.0 / (1.0 + odds)).mean(axis=1))

    counts: Any = np.bincount(rankings.annotator, rankings.weight, rankings.n_annotators)
    theta = best.adherence
    parameters = {"lower": right(theta - half), "upper": right(theta + half), "adherence": theta}
    return Quality(rankings.annotators, right(theta), counts, parameters)


def _score_gaps(scores: Floats, query: Ints, offsets: Counts) -> Floats:
    """Differences between the scores of two items of a query, thinned out to 512 of them."""
    ordered = scores[np.lexsort((scores, query))]
    code, size = np.arange(len(scores)), np.diff(offsets)[query]
    last = offsets[1:][query]
    differences = [np.zeros(0)]
    for number in range(_N_LAGS):
        # every distance in the order of a small query equally often, and 32 of those of a large one
        other = code + 1 + number * (size - 1) // _N_LAGS
        inside = other < last
        differences.append(ordered[other[inside]] - ordered[inside])
    gaps = np.sort(np.concatenate(differences))
    if not len(gaps):
        return np.zeros(1)
    return gaps if len(gaps) <= _N_GAPS else np.quantile(gaps, (np.arange(_N_GAPS) + 0.5) / _N_GAPS)
