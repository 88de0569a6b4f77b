"""A ranker for each annotator, and the sum of their scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import polars as pl

from ...data.consensus import Consensus, Quality
from ...data.features import Features
from ...data.joint_fit import JointFit, takes_missing
from ...data.judgments import Grades, Judgments, Preferences, expect
from ...errors import DataWarning, JudgmentError, expect_package, warn
from ...protocols import Bools, Counts, Floats, Ints, Progress
from ...quality import held_out_quality
from ...wording import expect_at_least

if TYPE_CHECKING:
    from ...rankers.estimator import Ranker
    from ...rankers.training_rows import Lists, Matrix
    from .added_scores import AddedScores


@dataclass(frozen=True, kw_only=True)
class IndependentAnnotators:
    r"""IAM: one ranker per annotator, shrunk towards the ranker of all, averaged.

    .. math:: s(x) = \frac{1}{K} \sum_{k=1}^{K} \bigl[ \rho_k f_k(x) + (1 - \rho_k) f_0(x) \bigr], \qquad
              \rho_k = \frac{n_k}{n_k + \kappa},

    where :math:`f_k` is the ranker of annotator :math:`k`, who gave :math:`n_k` lists, :math:`f_0` that of all
    judgments together, and :math:`\kappa` the number of lists that it counts as; with :math:`\kappa = 0` it is IAM as
    in [Gupta16]_. Quality plays no part: all annotators count the same, and an item's score depends on its features
    alone.

    When to use
    -----------
    Use it as the baseline of [Gupta16]_, or where annotators legitimately differ and each judged much. Where some are
    unreliable use ``joint_annotators`` or ``latent_score``, which weigh them.

    Parameters
    ----------
    ranker
        A ranker; a copy of it is fitted to each annotator. By name, or on the command line, it is ``rank-logistic``, a
        linear ranker of pairs.
    strength
        :math:`\kappa`; raise it where annotators gave few judgments. ``None`` learns it: rankers are fitted to half of
        everyone's lists, and the strength is taken at which they rank the same annotators' other lists best. 0 is
        the paper's method.

    Notes
    -----
    Of preferences each is a list of two items, the better and the worse, so any ranker learns pairs from it; ties
    are left out. Of grades the items of a query are a list, of rankings those of one ranking. Judgments count by their
    weight, and so, in rankings, do all of their items.

    Annotators who order no two items with features have no ranker. Judgments without annotators are
    taken as by one.

    The paper reports 55 % of wine pairs for it against 80 % here: with features on one scale and weights that are found
    exactly, single annotators lead to nearly what the truth itself would.

    One grade for a tenth of the items leaves an annotator a few lists of two or three items, and a ranker of its
    own is mostly noise; the common one has seen them all. Scores of :math:`f_k` have the spread of those of
    :math:`f_0`, unless :math:`\kappa = 0`.

    Quality is held-out agreement: with the mean of the other annotators' own rankers.

    Examples
    --------
    >>> from crowdrank.rankers import RankSVM
    >>> rows = [("ann", "q", "x", "y", "left"), ("bob", "q", "y", "z", "left"), ("bob", "q", "x", "z", "left")]
    >>> features = Features.from_frame({"query": ["q"] * 3, "item": ["x", "y", "z"], "length": [5, 2, 1]})
    >>> fit = IndependentAnnotators(ranker=RankSVM(loss="logistic")).fit(Preferences.from_rows(rows), features)
    >>> fit.consensus.order("q")
    ['x', 'y', 'z']
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade", "preference", "ranking")
    precision: ClassVar[float] = 1e-8
    ranker: Any
    strength: float | None = None

    def __post_init__(self) -> None:
        expect_at_least(self, 0, "strength", hint="leave it out to have it learned")

    def fit(self, judgments: Judgments, features: Features, *, progress: Progress | None = None) -> JointFit:
        """Return the sum of the annotators' rankers, with the scores it gives to the items of the judgments.

        Parameters
        ----------
        judgments
            Grades, preferences or rankings of items.
        features
            Features of items, judged or not.
        progress
            Called with the annotators done.
        """
        from ...rankers.foreign_ranker import as_ranker
        from .added_scores import AddedScores

        template = as_ranker(self.ranker, "RankSVM")
        expect(judgments, self)
        row = features.match(judgments)
        features.expect_numbers(row[row >= 0], missing=takes_missing(template))
        learned = self._fit_rankers(judgments, features, row, progress)
        added = AddedScores.of(list(learned.values()), np.full(len(learned), 1.0 / len(learned)))
        annotator_scores = _AnnotatorScores.of(judgments, features, learned)
        if self.strength != 0 and len(learned) > 1:
            added = self._draw_together(judgments, features, row, learned)
            annotator_scores = replace(annotator_scores, added=added)
        scores = annotator_scores.all_scores()
        added.feature_names_in_ = np.array(features.names, object)
        quality = annotator_scores.quality if judgments.n_annotators else None
        used = row >= 0
        return JointFit(
            method="independent_annotators",
            ranker=added,
            consensus=Consensus.of(self, judgments, scores, quality=quality),
            n_items=int(used.sum()),
            n_queries=len(np.unique(judgments.items.query[used])),
            n_unjudged=len(features) - int(used.sum()),
        )

    def _draw_together(
        self, judgments: Judgments, features: Features, row: Ints, learned: dict[int, Ranker]
    ) -> AddedScores:
        """The annotators' rankers and the common one, each with its share."""
        from ...rankers.estimator import Watch
        from ...rankers.training_rows import Lists, Matrix
        from .added_scores import AddedScores

        rows = _training_lists(judgments, row)
        new = np.append(True, (np.diff(rows.number) != 0) | (np.diff(rows.annotator) != 0))
        # targets start at 0, as gains do
        target = rows.target - min(float(rows.target.min()), 0.0)
        lists = Lists.of(len(new), target, np.cumsum(new), None, rows.weight)
        matrix = Matrix(features.matrix[row[rows.item]])

        def fit(matrix: Matrix, lists: Lists) -> Ranker:
            ranker: Ranker = self._copy(judgments)
            ranker.learn(matrix, lists, Watch(None))
            return ranker

        everything = AnnotatorLists(matrix, lists, rows.annotator[new].astype(np.int64), np.cumsum(new))
        common, shares = shrink(fit, everything, learned, self.strength)
        used = np.flatnonzero(shares > 0)
        parts = [common, *learned.values()]
        return AddedScores.of([parts[number] for number in used.tolist()], shares[used])

    def _copy(self, judgments: Judgments) -> Any:
        """A copy of the ranker to be fitted."""
        expect_package("sklearn")
        from sklearn.base import clone

        from ...rankers.foreign_ranker import as_ranker

        ranker = clone(as_ranker(self.ranker))
        if judgments.kind == "ranking" and "gain" in ranker.get_params():
            # places are no grades, for which gains would double from each to the next
            ranker.set_params(gain="linear")
        return ranker

    def _fit_rankers(
        self, judgments: Judgments, features: Features, row: Ints, progress: Progress | None
    ) -> dict[int, Ranker]:
        """The ranker of each annotator who orders items, by annotator."""
        lists, rankers = _training_lists(judgments, row), {}
        bounds = np.searchsorted(lists.annotator, np.arange(max(judgments.n_annotators, 1) + 1))
        silent = np.diff(bounds) == 0
        for k in np.flatnonzero(~silent).tolist():
            part = lists.where(slice(bounds[k], bounds[k + 1]))
            ranker = self._copy(judgments)
            ranker.fit(features.matrix[row[part.item]], part.target, qid=part.number, sample_weight=part.weight)
            rankers[k] = ranker
            if progress is not None:
                progress(k + 1, len(silent), "independent_annotators")
        if not rankers:
            raise JudgmentError(
                "no annotator orders two items with features: nothing to learn from; add features of judged items"
            )
        if judgments.n_annotators and silent.any():
            names = ", ".join(map(repr, judgments.annotators.ids.filter(pl.Series(silent)).head(5).to_list()))
            warn(
                f"{int(silent.sum()):,} of {len(silent):,} annotators order no two items with features and have "
                f"no ranker: {names}"
            )
        return rankers


class _TrainingLists(NamedTuple):
    """Items to be ranked, list after list and annotator after annotator: number of the list, target and weight."""

    annotator: Ints
    number: Counts
    item: Ints
    target: Floats
    weight: Floats | None

    def where(self, chosen: Counts | Bools | slice) -> _TrainingLists:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[chosen]
        return _TrainingLists(
            self.annotator[chosen], self.number[chosen], self.item[chosen], self.target[chosen], weight
        )


def _training_lists(judgments: Judgments, row: Ints) -> _TrainingLists:
    """Annotators' judgments as lists to learn from, without items that lack features and lists of equal targets."""
    lists = _all_lists(judgments)
    lists = lists.where(row[lists.item] >= 0)
    lists = lists.where(np.lexsort((lists.item, lists.number, lists.annotator)))
    if not len(lists.item):
        return lists
    new = np.flatnonzero(np.append(True, (np.diff(lists.number) != 0) | (np.diff(lists.annotator) != 0)))
    low, high = np.minimum.reduceat(lists.target, new), np.maximum.reduceat(lists.target, new)
    return lists.where(np.repeat(low < high, np.diff(np.append(new, len(lists.item)))))


def _all_lists(judgments: Judgments) -> _TrainingLists:
    """The lists of preferences, one for each; of grades, one for each query; or of rankings."""
    by = judgments.annotator if judgments.n_annotators else np.zeros(judgments.n_judgments, np.int32)
    weight = judgments.weight
    if isinstance(judgments, Preferences):
        item = np.stack([judgments.left, judgments.right], axis=1).ravel()
        # the better item has 1, the other one 0, and so have both of a tie
        target = np.stack([judgments.outcome > 0, judgments.outcome < 0], axis=1).ravel().astype(np.float64)
        number = np.repeat(np.arange(judgments.n_judgments), 2)
        return _TrainingLists(np.repeat(by, 2), number, item, target, None if weight is None else np.repeat(weight, 2))
    if isinstance(judgments, Grades):
        query = judgments.query.astype(np.int64)
        return _TrainingLists(by, query, judgments.item, judgments.grade, weight)
    number = judgments.ranking.astype(np.int64)
    weight = None if weight is None else weight[judgments.ranking]
    target = (np.diff(judgments.offsets)[number] - judgments.rank).astype(np.float64)
    return _TrainingLists(by[judgments.ranking], number, judgments.item, target, weight)


@dataclass(frozen=True, eq=False)
class _AnnotatorScores:
    """Scores of the items by each annotator's ranker.

    Parameters
    ----------
    judgments
        What they were learned from.
    matrix, known
        Features of the items that have any, and which these are.
    learned
        The ranker of each annotator who has one.
    total
        Sum of all their scores, for the items that have features.
    added
        The rankers drawn together, where they are.
    """

    judgments: Judgments
    matrix: Any
    known: Counts
    learned: dict[int, Ranker]
    total: Floats
    added: Ranker | None = None

    @classmethod
    def of(cls, judgments: Judgments, features: Features, learned: dict[int, Ranker]) -> _AnnotatorScores:
        """Return the scores of the items of the judgments."""
        row = features.items.codes_of(judgments.items, "features", "judgments")
        known = np.flatnonzero(row >= 0)
        annotator_scores = cls(judgments, features.matrix[row[known]], known, learned, np.zeros(len(known)))
        for ranker in learned.values():
            annotator_scores.total[:] += annotator_scores._of(ranker)
        return annotator_scores

    def quality(self) -> Quality | None:
        """Return how well annotators agree with the others' rankers."""
        method: Any = self
        return held_out_quality(method, self.judgments)

    def all_scores(self) -> Floats:
        """Return the score of each item, centred in each query."""
        return self.scores(self.judgments) if self.added is None else self._centre(self._of(self.added))

    def scores(self, judgments: Judgments) -> Floats:
        """Return the mean score of each item by those whose judgments are among these, centred in each query."""
        here = set(np.unique(judgments.annotator).tolist() if judgments.n_annotators else [0])
        absent = [ranker for k, ranker in self.learned.items() if k not in here]
        total = self.total - sum(map(self._of, absent))
        return self._centre(total / max(len(self.learned) - len(absent), 1))

    def _centre(self, values: Floats) -> Floats:
        """Scores of all items, 0 without features, from those of items with features less the mean of their query."""
        items, scores = self.judgments.items, np.zeros(len(self.judgments.items))
        scores[self.known] = values
        query = items.query[self.known]
        sums = np.bincount(query, scores[self.known], items.n_queries)
        scores[self.known] -= (sums / np.maximum(np.bincount(query, minlength=items.n_queries), 1))[query]
        return scores

    def _of(self, ranker: Ranker) -> Floats:
        """Scores by one ranker."""
        query = self.judgments.items.query[self.known]
        return ranker.predict(self.matrix, query).astype(np.float64, copy=False)


STRENGTHS = (np.inf, 1024.0, 256.0, 64.0, 16.0, 4.0, 1.0, 0.0)
"""Lists that the common ranker counts as, the strongest pull first."""

_MIN_SPREAD = 1e-12


@dataclass(frozen=True, eq=False)
class AnnotatorLists:
    """Lists to learn from with the annotator of each.

    Parameters
    ----------
    matrix, lists
        Features of the rows, and the rows list after list.
    annotator
        Code of the annotator of each list.
    number
        Number of the list of each row.
    """

    matrix: Matrix
    lists: Lists
    annotator: Counts
    number: Counts

    def take(self, chosen: Counts) -> AnnotatorLists:
        """Return some of the lists."""
        return replace(self, lists=self.lists.take(chosen), annotator=self.annotator[chosen])

    def scores(self, ranker: Ranker) -> Floats:
        """Return a ranker's score of each row."""
        return ranker._score_rows(self.matrix, self.number)

    def of(self, annotator: int) -> Lists:
        """Return the lists of one annotator."""
        return self.lists.take(np.flatnonzero(self.annotator == annotator))

    def halves(self) -> tuple[Counts, Counts]:
        """Return half of each annotator's lists and the others; neither names nor the order of rows play a part."""
        from ...rankers.estimator import query_parts

        one: list[Counts] = []
        for annotator in np.unique(self.annotator).tolist():
            own = np.flatnonzero(self.annotator == annotator)
            if len(own) > 1:
                one.append(own[query_parts(self.matrix, self.lists.take(own), 2, 0)[0]])
        first = np.sort(np.concatenate(one)) if one else np.empty(0, np.int64)
        return first, np.setdiff1d(np.arange(len(self.annotator)), first)


def shrink(
    fit: Callable[[Matrix, Lists], Ranker], everything: AnnotatorLists, own: dict[int, Ranker], strength: float | None
) -> tuple[Ranker, Floats]:
    """Return the common ranker, and the shares of it and of annotators' own ones in the mean of their scores.

    Own rankers count by shares that bring their scores to the spread of those of the common one. An annotator with
    ``n`` lists has the share ``n / (n + strength)``. ``None`` learns the strength: halves of everyone's lists are
    learned from, and the strength is taken at which annotators' other lists are ranked best.
    """
    with warnings.catch_warnings(action="ignore", category=DataWarning):
        common = fit(everything.matrix, everything.lists)
        if strength is None:
            # at which rankers that learned from half of the lists rank the others best; of equal ones the largest
            first, second = everything.halves()
            strength = STRENGTHS[0]
            if len(first) and len(second):
                measured = [_held_out_ndcg(fit, everything, *pair) for pair in ((first, second), (second, first))]
                means = np.round(np.concatenate(measured, axis=1).mean(axis=1), 9)
                strength = STRENGTHS[int(np.argmax(means))]
    counts = np.bincount(everything.annotator, everything.lists.item_weights(), max(own) + 1)
    spread = float(everything.scores(common).std())
    if spread <= _MIN_SPREAD:
        # nothing was learned from all together
        share = scale = np.ones(len(own))
    else:
        share = np.array([own_share(float(counts[k]), strength) for k in own])
        scale = np.array([spread / max(float(everything.scores(one).std()), _MIN_SPREAD) for one in own.values()])
    return common, np.append((1.0 - share).sum(), share * scale) / len(own)


def own_share(n_lists: float, strength: float) -> float:
    """Return the share of an annotator's own ranker."""
    return 0.0 if np.isinf(strength) or not n_lists else n_lists / (n_lists + strength)


def _held_out_ndcg(
    fit: Callable[[Matrix, Lists], Ranker], everything: AnnotatorLists, learned: Counts, held: Counts
) -> Floats:
    """The nDCG of each held-out list at each strength, (n_strengths, n_lists)."""
    from ...rankers.estimator import ItemGain

    part = everything.take(learned)
    common = everything.scores(fit(part.matrix, part.lists))
    columns = []
    for annotator in np.unique(everything.annotator[held]).tolist():
        lists = everything.take(held).of(annotator)
        rows = slice(None) if lists.rows is None else lists.rows
        measure, shared = ItemGain(lists, None, "linear"), common[rows]
        learned_lists = part.of(annotator)
        n_own, own = float(learned_lists.item_weights().sum()) if learned_lists.n_queries else 0.0, shared
        if n_own:
            scores = everything.scores(fit(part.matrix, learned_lists))
            own = scores[rows] * (common.std() / max(float(scores.std()), _MIN_SPREAD))
        shares = [own_share(n_own, strength) for strength in STRENGTHS]
        columns.append(np.stack([measure.by_query(share * own + (1.0 - share) * shared) for share in shares]))
    return np.concatenate(columns, axis=1)
