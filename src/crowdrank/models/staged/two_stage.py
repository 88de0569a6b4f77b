"""A ranker trained on the consensus of judgments, or on every grade by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...data.consensus import Consensus
from ...data.features import Features
from ...data.joint_fit import JointFit, takes_missing
from ...data.judgments import Grades, Judgments, Mixed, parts_of
from ...errors import JudgmentError, ParameterError, expect_package, warn
from ...protocols import Aggregator, AnyFloats, Bools, Counts, Floats, Ints, Progress, expect_arguments, method_name
from ...wording import option

_INSTEAD = {"preference": "bradley_terry", "ranking": "plackett_luce", "mixed": "latent_score"}


@dataclass(frozen=True, kw_only=True)
class TwoStage:
    r"""Two stages: an aggregator first, then any ranker on its consensus.

    The aggregator gives each judged item a score; items with features and a score are what the ranker learns from,
    and it scores any item that has features. With ``mallows`` and ``list_mle`` this is LTRMA-D [Wu11]_. Without an
    aggregator each grade is a training row of its own, with the features of its item [Yang10]_.

    When to use
    -----------
    Use it by default to train a ranker: any aggregator goes with any ranker, and both can be inspected. Where judgments
    are so few that features should help the consensus, use a joint method.

    Parameters
    ----------
    aggregator
        An aggregator; ``None`` to learn from every grade.
    ranker
        A ranker; what is fitted is a copy.
    gain
        The ranker's ``gain``, if it has one, in place of its own. ``None`` leaves it, but takes ``"linear"`` where the
        level of scores is free, see the notes.
    seed
        Which queries are held out, where a share of them is.

    Notes
    -----
    Targets are on the scale of the grades if the aggregator takes grades alone: the expected grade of a class method,
    the mean of ``mean_grade``; a score of ``mean_gain`` comes as :math:`\log_2(1 + s)`, the grade of that gain, so
    :math:`2^y - 1` is the mean gain itself. Where the lowest is negative they are moved up to start at 0, as gains do.

    Scores from preferences and rankings have no level of their own, and say how far items are apart at best. They are
    moved so that the lowest learned item of each query has 0, and taken for gains as they are (``gain="linear"``):
    :math:`2^y - 1` would hold a log-odds for a grade. ``list_mle`` and ``rank_svm`` use nothing but their order, and
    ``list_net`` reads them as log-odds, which those of ``bradley_terry`` and ``plackett_luce`` are.

    Without an aggregator equal grades of an item are one row with their number, or the sum of their weights, as its
    weight. Every ranker counts places by items then, and forms no pair within one.

    Annotators' quality comes from all judgments, also those of items without features and of held-out queries. An
    unjudged item is not learned from, though a consensus has a score for it.

    Examples
    --------
    >>> from crowdrank.aggregators import MeanGrade
    >>> from crowdrank.rankers import ListNet
    >>> grades = Grades.from_rows([("ann", "q", "x", 2), ("bob", "q", "x", 1), ("ann", "q", "y", 0)])
    >>> features = Features.from_frame({"query": ["q"] * 3, "item": ["x", "y", "z"], "length": [3, 1, 5]})
    >>> fit = TwoStage(aggregator=MeanGrade(), ranker=ListNet()).fit(grades, features)
    >>> fit.predict(features).sort("score")["item"].to_list()
    ['y', 'x', 'z']
    """

    kinds: ClassVar[tuple[str, ...]] = ("grade", "preference", "ranking")
    aggregator: Aggregator | None
    ranker: Any
    gain: str | None = None
    seed: int = 0

    def fit(
        self,
        judgments: Judgments | Mixed,
        features: Features,
        *,
        known: Any | None = None,
        trusted: Any | None = None,
        validation: float | Features | None = None,
        progress: Progress | None = None,
    ) -> JointFit:
        """Return the ranker that was trained, with the consensus.

        Parameters
        ----------
        judgments
            Grades, preferences or rankings of items.
        features
            Features of items, judged or not.
        known, trusted
            For aggregators that take them: what is known to be true, and annotators known to be good.
        validation
            What the learning curve is measured on, and where rankers with patience stop: a share of the queries, which
            are held out, or features with grades.
        progress
            Told of the ranker's steps.
        """
        expect_package("sklearn")
        from sklearn.base import clone

        from ...rankers.foreign_ranker import as_ranker

        ranker = clone(as_ranker(self.ranker))
        of_items = features.match(judgments)
        consensus = self._consensus(judgments, known=known, trusted=trusted)
        rows = _grade_rows(judgments, of_items) if consensus is None else _consensus_rows(consensus, of_items)
        features.expect_numbers(rows.row, missing=takes_missing(ranker))
        free = self.aggregator is not None and tuple(self.aggregator.kinds) != ("grade",)
        self._set_gain(ranker, free)
        rows = rows._replace(target=_as_read(rows.target, self.aggregator, ranker))
        rows = rows._replace(target=_from_zero(rows, features, free, "gain" in ranker.get_params()))
        learned, held = _split(rows, features, validation, self.seed, ranker, free)
        query = features.items.query[learned.row]
        ranker.fit(
            _matrix_rows(features, learned.row), learned.target, qid=query, item=learned.row,
            sample_weight=learned.weight, progress=progress, **held,
        )  # fmt: skip
        reason = getattr(ranker, "reason_", None)
        if reason is not None and ranker.choice_["chosen"].any() and not isinstance(validation, Features):
            # queries that are held out, in turn or as a share, have no other targets than those that are learned
            whose = (
                "the grades that are learned" if consensus is None else "the crowd's own consensus, not against a truth"
            )
            reason += f"; these figures are against {whose}"
        fitted = ranker.scorer
        fitted.feature_names_in_ = np.array(features.names, object)
        return JointFit(
            method=method_name(self), ranker=fitted, consensus=consensus, n_items=len(np.unique(learned.row)),
            n_queries=len(np.unique(query)),
            n_unjudged=len(features) - int((of_items >= 0).sum()), choice=getattr(ranker, "choice_", None),
            reason=reason,
        )  # fmt: skip

    def _consensus(self, judgments: Judgments | Mixed, **extra: Any) -> Consensus | None:
        """The consensus that is learned; ``None`` where every grade is."""
        given = {name: value for name, value in extra.items() if value is not None}
        if self.aggregator is None:
            if given:
                raise ParameterError(
                    f"{next(iter(given))}= is for an aggregator, and there is none; leave it out or name one"
                )
            return None
        expect_arguments(self.aggregator, given)
        return self.aggregator.fit(judgments, **given)

    def _set_gain(self, ranker: Any, free: bool) -> None:
        """Give the ranker the gain that fits the targets, if it has any."""
        if "gain" in ranker.get_params():
            if self.gain is not None or free:
                ranker.set_params(gain=self.gain or "linear")
        elif self.gain is not None:
            raise ParameterError(f"{type(ranker).__name__} has no gain; leave gain={self.gain!r} out")


class _Rows(NamedTuple):
    """Training rows: the row of the features, the target and the weight of each."""

    row: Ints
    target: Floats
    weight: Floats | None

    def where(self, chosen: Bools) -> _Rows:
        """Return some of the rows."""
        return _Rows(self.row[chosen], self.target[chosen], None if self.weight is None else self.weight[chosen])


def _consensus_rows(consensus: Consensus, of_items: Ints) -> _Rows:
    """One row for each judged item with features, in the order of the features."""
    if consensus.nominal:
        raise JudgmentError(
            f"classes without an order say nothing of which item is better; give {option('levels')} from worst to best"
        )
    with_features = np.flatnonzero(of_items >= 0)
    with_features = with_features[np.argsort(of_items[with_features])]
    return _Rows(of_items[with_features], consensus.scores[with_features], None)


def _grade_rows(judgments: Judgments | Mixed, of_items: Ints) -> _Rows:
    """One row for each item and grade it was given, with the weight of all such grades."""
    if not isinstance(judgments, Grades):
        instead, given = _INSTEAD[judgments.kind], " and ".join(f"{part.kind}s" for part in parts_of(judgments))
        raise JudgmentError(
            f"{given} cannot be learned from one by one, as grades can; "
            f"name an aggregator, as in {option('aggregator', instead)}"
        )
    if judgments.nominal:
        raise JudgmentError(
            f"classes without an order say nothing of which item is better; give {option('levels')} from worst to best"
        )
    row = of_items[judgments.item]
    with_features = np.flatnonzero(row >= 0)
    levels, code = np.unique(judgments.grade[with_features], return_inverse=True)
    cells, place = np.unique(row[with_features].astype(np.int64) * len(levels) + code, return_inverse=True)
    weight: Floats = np.bincount(place, judgments.row_weight[with_features], len(cells)).astype(np.float64, copy=False)
    same = bool((weight == weight[0]).all())
    return _Rows((cells // len(levels)).astype(np.int32), levels[cells % len(levels)], None if same else weight)


def _as_read(target: Floats, aggregator: Aggregator | None, ranker: Any) -> Floats:
    """Targets as the ranker reads them: mean gains as the grades of these gains, unless it takes gains as they are."""
    by_grade = ranker.get_params().get("gain", "exponential") == "exponential"
    if getattr(aggregator, "scale", "grade") != "gain" or not by_grade:
        return target
    return np.log2(1 + target)


def _from_zero(rows: _Rows, features: Features, free: bool, by_gain: bool) -> Floats:
    """Targets that start at 0: in each query where their level is free, otherwise overall if they are negative."""
    if free:
        lowest = np.full(features.items.n_queries, np.inf)
        query = features.items.query[rows.row]
        np.minimum.at(lowest, query, rows.target)
        return rows.target - lowest[query]
    bottom = float(rows.target.min())
    if bottom >= 0:
        return rows.target
    if by_gain:
        warn(f"grades are negative, which no gain is: targets were moved up by {-bottom:g} to start at 0")
    return rows.target - bottom


def _split(
    rows: _Rows, features: Features, validation: float | Features | None, seed: int, ranker: Any, free: bool
) -> tuple[_Rows, dict[str, Any]]:
    """Rows to learn from, and the arguments that give the ranker validation rows."""
    if validation is None:
        return rows, {}
    if isinstance(validation, Features):
        return rows, _graded_rows(validation, features, ranker)
    query = features.items.query[rows.row]
    queries = np.unique(query)
    if not 0 < validation < 1:
        raise ParameterError(f"validation={validation} must lie between 0 and 1; it is the share of queries held out")
    if len(queries) < 2:
        raise ParameterError(f"validation={validation} holds out whole queries, but there is only one; leave it out")
    n_held = min(max(1, round(validation * len(queries))), len(queries) - 1)
    chosen = np.random.default_rng(seed).permutation(queries)[:n_held]
    held = rows.where(np.isin(query, chosen))
    target = held.target
    if free and "gain" not in ranker.get_params():
        # these measure validation rows by 2 ** y - 1, which gives the scores back
        target = np.log2(1 + target)
    arguments = {"eval_set": (_matrix_rows(features, held.row), target), "eval_item": held.row}
    return rows.where(~np.isin(query, chosen)), {**arguments, "eval_qid": features.items.query[held.row]}


def _graded_rows(validation: Features, features: Features, ranker: Any) -> dict[str, Any]:
    """Validation rows from features with grades, those without one left out."""
    validation = validation.select(features.names)
    row = np.flatnonzero(np.isfinite(validation.grade)) if validation.grade is not None else np.empty(0, np.int64)
    if validation.grade is None or not len(row):
        raise JudgmentError(
            "the validation features have no grades to be measured by: no number in a column named grade, label or the "
            "like; add one, or give a truth (--truth)"
        )
    validation.expect_numbers(row, missing=takes_missing(ranker))
    return {"eval_set": (_matrix_rows(validation, row), validation.grade[row]), "eval_qid": validation.items.query[row]}


def _matrix_rows(features: Features, row: Ints | Counts) -> AnyFloats:
    """Some rows of the matrix; the matrix itself where they are all of it."""
    whole = len(row) == len(features) and bool((np.diff(row) == 1).all())
    return features.matrix if whole else features.matrix[row]
