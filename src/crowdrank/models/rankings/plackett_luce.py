"""Scores from rankings by the Plackett-Luce model, partial and tied ones too, annotators alike or learned."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import COVARIANCE_ITEMS, Consensus, Quality, Trace
from ...data.index import Items
from ...data.judgments import Rankings, expect
from ...data.parted import PartColumns, PartedFit, read_sample, share_of_rows
from ...errors import ParameterError
from ...fitting import newton, warn_unconverged
from ...pair_counts import PairCounts, apply_ties_rule, warn_unbounded
from ...protocols import BlockFit, Blocks, Bools, Counts, Floats, Ints, StepResult
from ...quality import INTERVAL, TRUSTED, held_out, quality_of_sample, trusted_annotators, warn_near_chance
from ...standard_errors import ScoreGradients, score_standard_errors
from ...wording import expect_above, expect_choices, option

if TYPE_CHECKING:
    from ...kernels.laplacian import Product
    from .kernels.plackett_luce import ListModel, RankedRows


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

        if self.annotators == "weighted" or given.get("trusted") is not None:
            raise ParameterError(
                "plackett_luce with annotators='weighted' needs all rankings at once; use annotators='equal' for "
                "packed ones, or crowd_agg, which learns a quality of each annotator"
            )
        if judged.by != "query":
            raise ParameterError("plackett_luce goes query by query; pack the judgments by query")
        return BlockFit(lambda rankings: rankings, partial(self._solve, judged))

    def _solve(self, judged: Any, blocks: Blocks) -> PartedFit:
        """Scores and standard errors of all blocks, each fitted by itself: queries share nothing."""
        n = max(len(judged.annotators), 1)

        def weights(rankings: Rankings, state: Any) -> StepResult:
            return (np.bincount(rankings.row_annotator, rankings.weight, n).astype(np.float64),), None

        def fit_block(rankings: Rankings, state: Any) -> StepResult:
            with warnings.catch_warnings():
                # what is said of single items would be said of thousands
                warnings.simplefilter("ignore")
                consensus = self.fit(rankings)
            return (consensus.scores, consensus.std_error, consensus.trace), None

        (given,) = blocks.total(weights)
        fits = list(blocks.read(fit_block))
        traces = [trace for *_, trace in fits]
        converged, change = all(one.converged for one in traces), max(one.change for one in traces)
        if not converged:
            warn_unconverged("plackett_luce", self.max_iter, change, self.tol)
        sample = partial(read_sample, lambda rankings: rankings, given, share_of_rows(judged.rows))
        quality = quality_of_sample(self, [part for (part,) in blocks.read(sample)], given, {})
        trace = Trace(max(one.n_iter for one in traces), converged, change)
        return PartedFit([PartColumns(scores, std_error) for scores, std_error, _ in fits], trace, quality)

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
        most = _MOST_UNTRUSTED_ADHERENCE
        untrusted = most * min(1.0, sure / max(1.0 - sure, most)) if known.any() else 1.0
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
    following = np.minimum(np.append(ends[1:], len(tied)), np.repeat(offsets[1:], np.diff(offsets))[begin])
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


# threshold (equal): steps of rankings laid out at once
_FEW_STEPS = 500_000
_LEAST_VARIANCE = 1e-4
# threshold (sample): cells of rankings for standard errors
_MOST_CELLS = 20_000_000
_SMALLEST_SQUARE = 1e-300


class RankingPoint(NamedTuple):
    """The penalised log-likelihood at one point, and what the next step needs.

    The gradient is over scores and, where they are learned, habits. ``log_likelihood`` is the value, penalties
    included, because that is what never falls.
    """

    value: float
    gradient: Floats
    log_likelihood: float
    model: ListModel
    scores: Floats
    habits: Floats
    adherence: Floats


@dataclass(frozen=True, eq=False)
class AdherencePrior:
    r"""Normal prior of the adherences, relative to the root of their mean square over the rankings.

    Habits are what adherences are made of, (n_annotators + 1,): those trusted have an adherence of their own, others a
    deviation :math:`\delta_a` from the crowd's mean, which stands last. With :math:`m = \sum_a c_a \theta_a^2`,
    :math:`c_a` being the share of the rankings that :math:`a` gave, the negated logarithm of the density is

    .. math:: \frac{\alpha}{2 m} \sum_{a} \delta_a^2
              + \frac{\tau}{2} \sum_{t} \Bigl( \frac{\theta_t}{\sqrt m} - 1 \Bigr)^2

    over the crowd :math:`a` and those trusted, :math:`t`.

    Parameters
    ----------
    alpha
        Precision of the crowd's adherences.
    share
        Share of the rankings that each annotator gave, (n_annotators,).
    trusted
        Whose adherence is near 1, (n_annotators,).
    """

    alpha: float
    share: Floats
    trusted: Bools

    @cached_property
    def precision(self) -> Floats:
        """Precision of each adherence."""
        right, wrong = TRUSTED
        # what this many pairs right and wrong tell of an adherence of 1 that explains them
        sure = right * wrong / (right + wrong) * float(np.log(right / wrong)) ** 2
        return np.where(self.trusted, sure, self.alpha)

    def adherence(self, habits: Floats) -> Floats:
        """Return the adherences that habits make up; the same for changes of both."""
        return habits[:-1] + np.where(self.trusted, 0.0, habits[-1])

    def by_habit(self, values: Floats) -> Floats:
        """Return derivatives in the habits from those in the adherences."""
        return np.append(values, float(values[~self.trusted].sum()))

    def scale(self, adherence: Floats) -> float:
        """Return the mean square of the adherences."""
        return max(float((self.share * adherence**2).sum()), _SMALLEST_SQUARE)

    def value(self, habits: Floats) -> float:
        """Return the penalty."""
        scale = self.scale(self.adherence(habits))
        off = habits[:-1] - scale**0.5 * self.trusted
        return 0.5 * float((self.precision * off**2).sum()) / scale

    def _by_scale(self, habits: Floats) -> tuple[Floats, Floats, float, float]:
        """Derivatives in the habits of annotators; then these, the penalty and its derivative, derived by the scale."""
        scale, own = self.scale(self.adherence(habits)), habits[:-1]
        off, sure = self.precision * own, self.precision * self.trusted
        squares, plain = float((off * own).sum()), float((sure * own).sum())
        first = off / scale - sure / scale**0.5
        turned = 0.5 * sure / scale**1.5 - off / scale**2
        slope = 0.5 * plain / scale**1.5 - 0.5 * squares / scale**2
        return first, turned, slope, squares / scale**3 - 0.75 * plain / scale**2.5

    def gradient(self, habits: Floats) -> Floats:
        """Return the derivatives of the penalty."""
        first, _, slope, _ = self._by_scale(habits)
        return np.append(first, 0.0) + self.by_habit(2.0 * slope * self.share * self.adherence(habits))

    def product(self, habits: Floats) -> Product:
        """Return the function that multiplies the second derivatives of the penalty with a vector."""
        _, turned, slope, bend = self._by_scale(habits)
        adherence = self.adherence(habits)
        relative, rise = self.precision / self.scale(adherence), 2.0 * self.share * adherence

        def multiply(vector: Floats) -> Floats:
            change = self.adherence(vector)
            along, across = float((rise * change).sum()), float((turned * vector[:-1]).sum())
            by_scale = (across + bend * along) * rise + 2.0 * slope * self.share * change
            return np.append(relative * vector[:-1] + along * turned, 0.0) + self.by_habit(by_scale)

        return multiply


@dataclass(frozen=True, eq=False)
class RankingProblem:
    """Scores and adherences to be found for rankings.

    Parameters
    ----------
    rows
        The rankings.
    annotator
        Who gave each of them, (n_rankings,); all 0 where annotators count alike.
    pair_counts
        Who stood above whom, for the groups of items that were ranked together.
    ridge
        Precision of the prior of the scores.
    prior
        How adherences are made up, and their prior.
    tol
        Tolerance of the steps; raise it to stop earlier.
    """

    rows: RankedRows
    annotator: Ints
    pair_counts: PairCounts
    ridge: float
    prior: AdherencePrior
    tol: float

    def pull(self, here: RankingPoint) -> float:
        """Return the precision of the prior of a score as it is."""
        return self.ridge * self.prior.scale(here.adherence)

    def start(self, habits: Floats) -> Floats:
        """Return where the gradient at equal scores leads, with long steps shortened: it saves some Newton steps."""
        here = self.evaluate(np.zeros(len(self.pair_counts.group)), fixed=habits)
        step = here.gradient / (here.model.diagonal + self.pull(here))
        return self.pair_counts.centre(2.0 * np.arcsinh(0.5 * step))

    def evaluate(self, point: Floats, fixed: Floats | None = None) -> RankingPoint:
        """Return the penalised log-likelihood of scores and habits, or of scores at fixed habits."""
        from .kernels.plackett_luce import evaluate_lists

        n = len(self.pair_counts.group)
        scores, habits = point[:n], point[n:] if fixed is None else fixed
        adherence = self.prior.adherence(habits)
        model = evaluate_lists(self.rows, scores, adherence[self.annotator])
        pull, squares = self.ridge * self.prior.scale(adherence), float(np.square(scores).sum())
        value = model.log_likelihood - 0.5 * pull * squares - self.prior.value(habits)
        gradient = model.gradient - pull * scores
        if fixed is None:
            own = self._by_annotator(model.slope) - self.ridge * squares * self.prior.share * adherence
            gradient = np.append(gradient, self.prior.by_habit(own) - self.prior.gradient(habits))
        return RankingPoint(value, gradient, value, model, scores, habits, adherence)

    def _by_annotator(self, values: Floats) -> Floats:
        """Sum over the rankings of each annotator."""
        return np.bincount(self.annotator, values, len(self.prior.share)).astype(np.float64, copy=False)

    def _multiply(self, here: RankingPoint) -> Callable[[Floats, Floats], tuple[Floats, Floats]]:
        """Product of the negated curvature of the log-likelihood with changes of scores and of rankings' adherences."""
        from .kernels.plackett_luce import list_product

        return list_product(self.rows, here.model, here.scores, here.adherence[self.annotator])

    def direction(self, here: RankingPoint) -> Floats:
        """Return the Newton step, or what was found of it before the curvature turned out not to be definite."""
        from ...kernels.laplacian import newton_step

        n = len(here.scores)
        product, diagonal = self._curvature_product(here) if len(here.gradient) > n else self._scores_only(here)
        step = newton_step(product, diagonal, here.gradient, tol=self.tol, onwards=True)
        # a small ridge would leave the level of a group to rounding
        step[:n] = self.pair_counts.centre(step[:n])
        return step

    def _scores_only(self, here: RankingPoint) -> tuple[Product, Floats]:
        """Product with the negated curvature in the scores, and its diagonal."""
        multiply = self._multiply(here)
        still, pull = np.zeros(len(self.annotator)), self.pull(here)

        def product(vector: Floats) -> Floats:
            return multiply(vector, still)[0] + pull * vector

        return product, here.model.diagonal + pull

    def _curvature_product(self, here: RankingPoint) -> tuple[Product, Floats]:
        """Product with the negated curvature in scores and habits, and about its diagonal."""
        scores, prior, n, multiply = here.scores, self.prior, len(here.scores), self._multiply(here)
        by_prior, pull, seen = prior.product(here.habits), self.pull(here), self._ridge_curvature(here)
        ridge = self.ridge * float(np.square(scores).sum()) * prior.share
        own = self.adherence_curvature(here)
        crowd = float((own - prior.precision / prior.scale(here.adherence))[~prior.trusted].sum())
        diagonal = np.concatenate([here.model.diagonal + pull, own, [crowd if crowd > 0 else 1.0]])
        # the scale is free, and a step is not to change it
        free = np.append(scores, -here.habits)
        stiff = 1.0 / max(float((free**2 / diagonal).sum()), _SMALLEST_SQUARE)

        def product(vector: Floats) -> Floats:
            change, turn = vector[:n], prior.adherence(vector[n:])
            image, twist = multiply(change, turn[self.annotator])
            image = image + pull * change + float((seen * turn).sum()) * scores
            turned = self._by_annotator(twist) + ridge * turn + float((scores * change).sum()) * seen
            both = np.append(image, prior.by_habit(turned) + by_prior(vector[n:]))
            return both + stiff * float((free * vector).sum()) * free

        return product, diagonal

    def _ridge_curvature(self, here: RankingPoint) -> Floats:
        """What the ridge adds to the curvature between a score and each adherence, for each unit of score."""
        return 2.0 * self.ridge * self.prior.share * here.adherence

    def _likelihood_curvature(self, here: RankingPoint) -> Floats:
        """Negated curvature of the log-likelihood in each adherence by itself."""
        ones = np.ones(len(self.annotator))
        return self._by_annotator(self._multiply(here)(np.zeros(len(here.scores)), ones)[1])

    def adherence_curvature(self, here: RankingPoint) -> Floats:
        """Return the negated curvature in each adherence by itself, at a fixed scale."""
        squares, scale = float(np.square(here.scores).sum()), self.prior.scale(here.adherence)
        return self._likelihood_curvature(here) + self.ridge * squares * self.prior.share + self.prior.precision / scale

    def with_estimated_alpha(self, here: RankingPoint) -> RankingProblem:
        """Return the problem with ``alpha`` estimated from how far the adherences differ [DerSimonian86]_.

        Of each adherence there is the estimate that one Newton step from here leads to, and its variance.
        """
        bend = self._likelihood_curvature(here)
        use = (bend > 0) & ~self.prior.trusted
        weight = bend[use]
        unpulled = here.adherence[use] + self._by_annotator(here.model.slope)[use] / weight
        total, squares = float(weight.sum()), float((weight**2).sum())
        room = total - squares / total if len(weight) > 1 else 0.0
        variance = 0.0
        if room > 0:
            mean = float((weight * unpulled).sum()) / total
            variance = (float((weight * (unpulled - mean) ** 2).sum()) - len(weight) + 1) / room
        return replace(self, prior=replace(self.prior, alpha=1.0 / max(variance, _LEAST_VARIANCE)))

    def rescale(self, here: RankingPoint) -> RankingPoint:
        """Return the same point with adherences of mean square 1."""
        root = self.prior.scale(here.adherence) ** 0.5
        return self.evaluate(np.append(here.scores * root, here.habits / root))

    def standard_errors(self, here: RankingPoint, offsets: Counts) -> tuple[Floats, tuple[Floats | None, ...]]:
        """Return the standard error of each item's centred score, and the covariance block of each query.

        They include the uncertainty of learned adherences where all queries have a covariance and items times
        annotators are not too many.
        """
        from ...kernels.threads import one_blas_thread
        from .kernels.plackett_luce import list_bends

        sizes = np.diff(offsets)
        code, small = np.arange(int(offsets[-1])), np.repeat(sizes <= COVARIANCE_ITEMS, sizes)
        later = np.where(small, np.repeat(offsets[1:], sizes) - 1 - code, 0)
        starts = np.concatenate([[0], np.cumsum(later)])
        second = (np.repeat(code + 1 - starts[:-1], later) + np.arange(int(starts[-1]))).astype(np.int32)
        product, _ = self._scores_only(here)
        if small.all() and int(sizes.max(initial=0)) * len(self.rows.item) <= _FEW_STEPS:
            bends = _bends_by_products(product, np.repeat(code, later), second, offsets)
        else:
            bends = list_bends(self.rows, here.model, here.adherence[self.annotator], starts, small)
        matrix = (starts, second, bends, here.model.diagonal, self.pull(here), offsets)
        std_error, blocks = score_standard_errors(*matrix, product=product)
        learned = len(here.gradient) > len(here.scores)
        if not learned or not small.all() or len(code) * len(self.prior.share) > _MOST_CELLS:
            return std_error, blocks
        exact = [block for block in blocks if block is not None]
        with one_blas_thread():
            shifts = self._shifts(here, exact, offsets)
            own = [shifts[begin:end] for begin, end in pairwise(offsets)]
            wider = tuple(block + shift @ shift.T for block, shift in zip(exact, own, strict=True))
        return np.sqrt(std_error**2 + np.square(shifts).sum(axis=1)), wider

    def _shifts(self, here: RankingPoint, blocks: list[Floats], offsets: Counts) -> Floats:
        """How far each score moves with independent standard errors of the adherences, (n_items, n_annotators)."""
        from ...kernels.threads import read_only
        from .kernels.plackett_luce import list_product

        rows, n_annotators = self.rows, len(self.prior.share)
        # each row as an item of its own, so the image can be told by item and annotator
        each = rows._replace(item=read_only(np.arange(len(rows.item), dtype=np.int32)))
        multiply = list_product(each, here.model, here.scores[rows.item], here.adherence[self.annotator])
        image, _ = multiply(np.zeros(len(rows.item)), np.ones(len(self.annotator)))
        cell = rows.item.astype(np.int64) * n_annotators + np.repeat(self.annotator, np.diff(rows.offsets))
        cross = np.outer(here.scores, self._ridge_curvature(here))
        cross += np.bincount(cell, image, cross.size).reshape(cross.shape)
        parts = [block @ cross[begin:end] for block, (begin, end) in zip(blocks, pairwise(offsets), strict=True)]
        beside = np.concatenate(parts)
        values, vectors = np.linalg.eigh(np.diag(self.adherence_curvature(here)) - cross.T @ beside)
        root = vectors / np.sqrt(np.maximum(values, _SMALLEST_SQUARE + 1e-9 * values.max(initial=0.0)))
        # the mean square of the adherences is 1 for certain
        fixed = root.T @ (self.prior.share * here.adherence)
        fixed /= np.sqrt(max(float(fixed @ fixed), _SMALLEST_SQUARE))
        moved = beside @ root
        return moved - np.outer(moved @ fixed, fixed)


def _bends_by_products(product: Product, first: Counts, second: Ints, offsets: Counts) -> Floats:
    """Negated curvature of each pair of items, a column of all queries at a time, with no kernel more to compile."""
    place = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], np.diff(offsets))
    bends = np.zeros(len(first))
    for number in range(int(np.diff(offsets).max(initial=0))):
        pairs = place[first] == number
        bends[pairs] = -product((place == number).astype(np.float64))[second[pairs]]
    return bends
