"""Judgments of three kinds: grades of items, preferences between two items, rankings of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..errors import JudgmentError
from ..wording import call, method_label, option
from .grades import Grades
from .mixed import Mixed
from .preferences import Preferences
from .rankings import Rankings

Judgments: TypeAlias = Grades | Preferences | Rankings

KINDS: dict[str, type[Grades] | type[Preferences] | type[Rankings]] = {
    "grade": Grades,
    "preference": Preferences,
    "ranking": Rankings,
}

__all__ = ["KINDS", "Grades", "Judgments", "Mixed", "Preferences", "Rankings", "expect"]


def expect(judgments: Any, method: Any, *, instead: Sequence[str] = (), what: str = "method") -> Any:
    """Return the judgments if the method takes their kind; otherwise say which call to make, or which methods do.

    ``what`` is the word for the method and those ``instead`` of it.
    """
    name = method_label(method)
    others = f", or choose a {what} that takes {_kinds_in_words(judgments)}: {', '.join(instead)}" if instead else ""
    if isinstance(judgments, Mixed):
        return _expect_mixed(judgments, method, name, others)
    if not isinstance(judgments, Grades | Preferences | Rankings):
        raise JudgmentError(
            f"{name} takes judgments, not a {type(judgments).__name__}; "
            "make them with Grades.from_frame, Preferences.from_frame, Rankings.from_frame or read_judgments"
        )
    if judgments.kind not in method.kinds:
        takes = " or ".join(f"{kind}s" for kind in method.kinds)
        # to rankings only where nothing else is taken: what every pair of a ranking says may also be preferences
        goal = next((kind for kind in ("preference", "ranking") if kind in method.kinds), None)
        remedy = f"turn them into {goal}s first with {call(f'as_{goal}s')}{others}" if goal else others[5:]
        raise JudgmentError(
            f"{name} takes {takes}, not {judgments.kind}s; {remedy or f'choose a {what} for {judgments.kind}s'}"
        )
    if isinstance(judgments, Grades) and judgments.nominal and not getattr(method, "nominal", False):
        raise JudgmentError(
            f"{name} needs an order and nominal grades have none; "
            f"give {option('levels')} from worst to best{others or ', or use a class method such as majority_vote'}"
        )
    return judgments


def _kinds_in_words(judgments: Any) -> str:
    """What a method would have to take, in words."""
    if isinstance(judgments, Mixed):
        return "them together"
    return "classes" if getattr(judgments, "nominal", False) else f"{judgments.kind}s"


def _expect_mixed(judgments: Mixed, method: Any, name: str, others: str) -> Mixed:
    """The judgments of several kinds if the method takes them together."""
    given = " and ".join(f"{kind}s" for kind in judgments.kinds)
    if not getattr(method, "mixes", False):
        raise JudgmentError(
            f"{name} takes one kind of judgment, not {given} together; "
            f"give it one kind{others or ', or use latent_score, which takes them'}"
        )
    lacking = [kind for kind in judgments.kinds if kind not in method.kinds]
    if lacking:
        raise JudgmentError(f"{name} takes no {lacking[0]}s; leave them out{others or ', or choose another method'}")
    return judgments
