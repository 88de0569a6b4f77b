"""The rules by which ``method="auto"`` picks a method and ``scheme="auto"`` a scheme, and say why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..data.grades import MAX_LEVELS
from ..data.judgments import Grades, Judgments, Mixed, Preferences, Rankings
from ..errors import JudgmentError, ParameterError
from ..wording import one_of, option

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


LEARNED = Choice("latent_score", "how well each annotator tells items apart is learned along with the scores")
ANCHORED = Choice("latent_score", "it makes use of annotators or items that are known")
SEVERAL = Choice("latent_score", "it takes several kinds of judgment together")
TARGET = Choice("mean_grade", "a ranker is to learn scores on the scale of the grades")

CLASSES = {
    "no annotators": Choice("majority_vote", "the grades do not say who gave them, so each counts alike"),
    "no overlap": Choice("majority_vote", "no item was graded by two annotators, so nothing tells them apart"),
    "levels": Choice(
        "dawid_skene", "annotators mix up near levels more than far ones, and by how much is learned", {"ordinal": True}
    ),
    "classes": Choice("dawid_skene", "which classes an annotator mixes up is learned"),
}
"""Case -> choice where one of the grades is wanted, or the grades are classes without an order."""


GOOD_FROM = 2.0
"""Grade from which on if-good-3 counts an item as good unless it is told otherwise."""

SCHEMES = {
    "preferences": Choice("information", "these are preferences, and it asks about the pairs that decide most"),
    "classes": Choice("agreement", "these are classes without an order, and it asks until each is sure"),
    "grades": Choice("if-good-3", "these are grades, and an item rated too high costs most: good ones are checked"),
    "none good": Choice("agreement", "no grade is 2 or better, so that if-good-3 would ask nothing"),
    "all good": Choice("agreement", "no grade is below 2, so that if-good-3 would ask about everything"),
    "many levels": Choice("3-overlap", "the grades have too many levels to say how sure each is"),
}
"""Case -> labelling scheme."""


def auto_method(judgments: Judgments | Mixed, want: str = "order", *, anchored: bool = False) -> Choice:
    """Return the method that ``"auto"`` means for these judgments, with its parameters and why.

    ``want`` is what is wanted of it: an ``"order"`` of items, one of the grades (``"grade"``), or a ``"target"`` that a
    ranker learns. ``anchored`` says that annotators known to be good, or known items, are given.

    Examples
    --------
    >>> votes = Grades.from_rows([("ann", "q", "x", 3), ("ann", "q", "y", 1)])
    >>> auto_method(votes).method, auto_method(votes).reason
    ('mean_grade', 'only one annotator: quality cannot be estimated')
    """
    check_want(want)
    if isinstance(judgments, Grades) and (want == "grade" or judgments.nominal):
        return _of_classes(judgments)
    if want == "grade":
        told = "several kinds together" if isinstance(judgments, Mixed) else f"{judgments.kind}s"
        alone = "give the grades alone, or " if isinstance(judgments, Mixed) else ""
        raise ParameterError(f"{told} tell no grade; {alone}use {option('want', 'order')}")
    if isinstance(judgments, Mixed):
        return SEVERAL
    if anchored and want == "order":
        return ANCHORED
    if want == "target" and isinstance(judgments, Grades):
        return TARGET
    against = _against_learning(judgments)
    return LEARNED if against is None else Choice(PLAIN[judgments.kind], against)


def check_want(want: str) -> None:
    """Refuse to choose a method for something that none is chosen for."""
    if want not in WANTS:
        one_of(want, ("order", "grade"), "want", of_verb=True)


def _against_learning(judgments: Judgments) -> str | None:
    """Why it does not pay, or is not possible, to learn who can be relied on; ``None`` where it does."""
    kind = judgments.kind
    if not judgments.n_annotators:
        return f"the {kind}s do not say who gave them, so each counts alike"
    n_annotators = len(np.unique(judgments.annotator))
    if n_annotators == 1:
        return "only one annotator: quality cannot be estimated"
    # a ranking of m items is worth m - 1 choices
    n_answers = len(judgments.item) - len(judgments) if isinstance(judgments, Rankings) else len(judgments)
    if n_answers < FEWEST * n_annotators:
        each = n_answers / max(n_annotators, 1)
        what = "choices" if isinstance(judgments, Rankings) else f"{kind}s"
        return f"annotators gave {each:.1f} {what} each, too few to tell good from bad ones"
    if isinstance(judgments, Grades) and judgments.declared is None and len(judgments.levels) > MAX_LEVELS:
        return f"there are {len(judgments.levels)} distinct grades, too many to learn where each begins"
    return None


def _of_classes(grades: Grades) -> Choice:
    """The choice where one of the grades is wanted."""
    if not grades.n_annotators:
        return CLASSES["no annotators"]
    if not _overlap(grades):
        return CLASSES["no overlap"]
    return CLASSES["classes" if grades.nominal or len(grades.levels) < 3 else "levels"]


def auto_scheme(judgments: Judgments) -> Choice:
    """Return the labelling scheme that ``"auto"`` means for these judgments, and why.

    Examples
    --------
    >>> auto_scheme(Preferences.from_rows([("ann", "q", "x", "y", "left")])).method
    'information'
    """
    if isinstance(judgments, Preferences):
        return SCHEMES["preferences"]
    if not isinstance(judgments, Grades):
        raise JudgmentError(f"no scheme takes {judgments.kind}s; turn them into preferences with as_preferences()")
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
