"""The rules by which ``method="auto"`` picks a method and ``scheme="auto"`` a scheme, and say why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data.features import Features
from ..data.grades import MAX_LEVELS
from ..data.judgments import Grades, Judgments, Mixed, Preferences, Rankings, parts_of
from ..errors import JudgmentError, ParameterError
from ..wording import call, counted, one_of, option

FEWEST = 5.0
"""Judgments of an annotator, on average, from which on it pays to learn how far each can be relied on."""

WANTS = ("order", "grade", "target")

PLAIN = {"grade": "mean_grade", "preference": "bradley_terry", "ranking": "borda"}
"""Kind -> method that takes every annotator for the same."""


@dataclass(frozen=True)
class Choice:
    """What ``method="auto"`` takes, and why."""

    method: str
    reason: str
    params: Mapping[str, Any] = field(default_factory=dict)


LEARNED = Choice("latent_score", "how well each annotator distinguishes items is learned along with the scores")
SEVERITY = Choice(
    "latent_score", "no item was graded by two annotators, so it learns how severe each of them is, not how good"
)
ANCHORED = Choice("latent_score", "it makes use of annotators or items that are known")
SEVERAL = Choice("latent_score", "it takes several kinds of judgment together")
TARGET = Choice("mean_grade", "a ranker is to learn scores on the scale of the grades")

CLASSES = {
    "no annotators": Choice("majority_vote", "the grades do not say who gave them, so all count the same"),
    "no overlap": Choice(
        "naive_bayes", "no item was graded by two annotators, so nothing shows who is right, and all count the same"
    ),
    "levels": Choice(
        "dawid_skene", "annotators mix up near levels more than far ones, and by how much is learned", {"ordinal": True}
    ),
    "classes": Choice("dawid_skene", "which classes an annotator mixes up is learned"),
}
"""Case -> choice where one of the grades is wanted, or the grades are classes without an order."""


RIVALS = ("naive_bayes", "glad", "mace", "majority_vote")
"""Class methods that are tried beside ``dawid_skene``."""

GOOD_FROM = 2.0
"""Grade from which on if-good-3 counts an item as good unless it is told otherwise."""

SCHEMES = {
    "nothing yet": Choice("single", "nothing is judged yet, and it asks about each item or pair once"),
    "preferences": Choice("information", "these are preferences, and it asks about the pairs that decide most"),
    "classes": Choice("agreement", "these are classes without an order, and it asks until each is sure"),
    "grades": Choice("if-good-3", "these are grades, and an item rated too high costs most: good ones are checked"),
    "none good": Choice("agreement", "no grade is 2 or better, so if-good-3 would ask nothing"),
    "all good": Choice("agreement", "no grade is below 2, so if-good-3 would ask about everything"),
    "many levels": Choice("3-overlap", "the grades have too many levels to say how sure each is"),
}
"""Case -> labelling scheme."""


def auto_method(
    judgments: Judgments | Mixed,
    want: str = "order",
    *,
    anchored: bool = False,
    resumed: bool = False,
    controlled: bool = False,
    features: Features | None = None,
) -> Choice:
    """Return the method that ``"auto"`` means for these judgments, with its parameters and why.

    ``want`` is what is wanted of it: an ``"order"`` of items, one of the grades (``"grade"``), or a ``"target"`` that a
    ranker learns. ``anchored`` says that annotators known to be good, or known items, are given, ``resumed`` that a
    former consensus is, ``controlled`` that covariates are to be controlled for. With ``features`` that a ranker is to
    learn from, the class method of ``"grade"`` is taken as its target where that pays on held-out queries.

    Examples
    --------
    >>> votes = Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 1)])
    >>> auto_method(votes).method, auto_method(votes).reason
    ('mean_grade', 'only one annotator: quality cannot be estimated')
    """
    check_want(want)
    if controlled:
        return _with_control(judgments, anchored=anchored)
    if isinstance(judgments, Grades) and (want == "grade" or judgments.nominal):
        return _of_classes(judgments, anchored=anchored or resumed)
    if want == "grade":
        kinds = "several kinds together" if isinstance(judgments, Mixed) else f"{judgments.kind}s"
        alone = "give the grades alone, or " if isinstance(judgments, Mixed) else ""
        raise ParameterError(f"{kinds} give no grade; {alone}use {option('want', 'order')}")
    if isinstance(judgments, Mixed):
        return SEVERAL
    if anchored and want == "order":
        return ANCHORED
    if want == "target" and isinstance(judgments, Grades):
        return TARGET if features is None else _of_target(judgments, features)
    against = _against_learning(judgments)
    if against is not None:
        return Choice(PLAIN[judgments.kind], against)
    return SEVERITY if isinstance(judgments, Grades) and not _overlap(judgments) else LEARNED


def _with_control(judgments: Judgments | Mixed, *, anchored: bool) -> Choice:
    """The choice where covariates are controlled for."""
    if not isinstance(judgments, Preferences):
        kinds = " and ".join(f"{part.kind}s" for part in parts_of(judgments))
        raise JudgmentError(
            f"only preferences have covariates to control for, not {kinds}; leave {option('control')} out"
        )
    against = None if anchored else _against_learning(judgments)
    if against is None:
        return Choice("latent_score", "it controls for covariates, with coefficients of each annotator")
    return Choice("bradley_terry", f"it controls for covariates; {against}")


def check_want(want: str) -> None:
    """Refuse to choose a method for something that none is chosen for."""
    if want not in WANTS:
        one_of(want, ("order", "grade"), "want", of_verb=True)


def _against_learning(judgments: Judgments) -> str | None:
    """Why it does not pay, or is not possible, to learn who can be relied on; ``None`` where it does."""
    kind = judgments.kind
    if not judgments.n_annotators:
        return f"the {kind}s do not say who gave them, so all count the same"
    n_annotators = len(np.unique(judgments.annotator))
    if n_annotators == 1:
        return "only one annotator: quality cannot be estimated"
    # a ranking of m items is worth m - 1 choices
    n_answers = len(judgments.item) - len(judgments) if isinstance(judgments, Rankings) else len(judgments)
    if n_answers < FEWEST * n_annotators:
        each = counted(float(f"{n_answers / n_annotators:.2g}"), "choice" if isinstance(judgments, Rankings) else kind)
        return f"annotators gave {each.replace('.0 ', ' ')} each, too few to distinguish good from bad ones"
    if isinstance(judgments, Grades) and judgments.declared is None and len(judgments.levels) > MAX_LEVELS:
        return f"there are {len(judgments.levels)} distinct grades, too many to learn where each begins"
    return None


def _of_classes(grades: Grades, *, anchored: bool) -> Choice:
    """The choice where one of the grades is wanted: by held-out grades where there are enough and none are known."""
    from ..validation.class_choice import Candidate, best_class_method

    if not grades.n_annotators:
        return CLASSES["no annotators"]
    if not _overlap(grades):
        return CLASSES["no overlap"]
    usual = CLASSES["classes" if grades.nominal or len(grades.levels) < 3 else "levels"]
    too_many = grades.declared is None and len(grades.levels) > MAX_LEVELS
    if anchored or len(grades.levels) < 2 or too_many:
        return usual
    first = Candidate(usual.method, usual.params)
    others = [Candidate(usual.method, {})] if usual.params else []
    candidates = [first, *others, *(Candidate(name, {}) for name in RIVALS)]
    best = best_class_method(grades, candidates)
    if best is None:
        return usual
    if best.best == first:
        others_said = f"none of {len(candidates) - 1} others predicts held-out grades clearly better"
        return Choice(usual.method, f"{usual.reason}, and {others_said}", usual.params)
    loss = best.losses[candidates.index(best.best)]
    reason = (
        f"it predicts held-out grades best of {len(candidates)} methods (log-loss {loss:.3f} against "
        f"{best.losses[0]:.3f} of {usual.method})"
    )
    return Choice(best.best.name, reason, best.best.params)


def _of_target(grades: Grades, features: Features) -> Choice:
    """The choice where a ranker learns from features: the class method if it is better by a standard error."""
    from ..validation.class_choice import Candidate, QueryHalves

    n_levels = len(grades.levels)
    halves = None
    if n_levels > 1 and (grades.declared is not None or n_levels <= MAX_LEVELS):
        halves = QueryHalves.of(grades, features)
    if halves is None:
        return TARGET
    rival = _of_classes(grades, anchored=False)
    usual, other = (halves.ndcg(Candidate(choice.method, choice.params)) for choice in (TARGET, rival))
    if usual is None or other is None:
        return TARGET
    gain = other - usual
    figures = f"(nDCG@10 {other.mean():.3f} against {usual.mean():.3f} on {counted(len(gain), 'query')})"
    # by one standard error, as the ranker itself is chosen: two would keep the mean in most crowds where it costs .02
    if len(gain) > 1 and gain.mean() > gain.std(ddof=1) / len(gain) ** 0.5:
        reason = f"a ranker that learns from it does better on held-out queries than from {TARGET.method} {figures}"
        return Choice(rival.method, reason, rival.params)
    return Choice(
        TARGET.method,
        f"{TARGET.reason}, and one that learns from {rival.method} is not clearly better on held-out queries {figures}",
    )


def auto_scheme(judgments: Judgments) -> Choice:
    """Return the labelling scheme that ``"auto"`` means for these judgments, and why.

    Examples
    --------
    >>> auto_scheme(Preferences.from_rows([("ann", "q", "x", "y", "left")])).method
    'information'
    """
    if isinstance(judgments, Grades | Preferences) and not judgments.n_judgments:
        return SCHEMES["nothing yet"]
    if isinstance(judgments, Preferences):
        return SCHEMES["preferences"]
    if not isinstance(judgments, Grades):
        remedy = f"turn them into preferences with {call('as_preferences')}"
        raise JudgmentError(f"no scheme takes {judgments.kind}s; {remedy}")
    if judgments.nominal:
        return SCHEMES["classes"]
    good = judgments.level_values >= GOOD_FROM
    if good.any() and not good.all():
        return SCHEMES["grades"]
    if judgments.declared is None and len(good) > MAX_LEVELS:
        return SCHEMES["many levels"]
    return SCHEMES["all good" if good.any() else "none good"]


def _overlap(grades: Grades) -> bool:
    """Whether some item was graded by two annotators."""
    first = np.full(grades.n_items, -1, np.int32)
    first[grades.item] = grades.annotator
    return bool((first[grades.item] != grades.annotator).any())
