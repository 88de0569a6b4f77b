"""Judgments of three kinds: grades of items, preferences between two items, rankings of several."""

from __future__ import annotations

from typing import Any, TypeAlias

from ..errors import JudgmentError
from .grades import Grades
from .preferences import Preferences
from .rankings import Rankings

Judgments: TypeAlias = Grades | Preferences | Rankings

KINDS: dict[str, type[Grades] | type[Preferences] | type[Rankings]] = {
    "grade": Grades,
    "preference": Preferences,
    "ranking": Rankings,
}

__all__ = ["KINDS", "Grades", "Judgments", "Preferences", "Rankings", "expect"]


def expect(judgments: Any, method: Any) -> Any:
    """Return the judgments if the method takes their kind; otherwise say which call to make."""
    name = type(method).__name__
    if not isinstance(judgments, Grades | Preferences | Rankings):
        raise JudgmentError(
            f"{name} takes judgments, not a {type(judgments).__name__}; "
            "make them with Grades.from_frame, Preferences.from_frame, Rankings.from_frame or read_judgments"
        )
    if judgments.kind not in method.kinds:
        takes = " or ".join(f"{kind}s" for kind in method.kinds)
        convert = "preference" in method.kinds and judgments.kind != "preference"
        remedy = (
            "call .as_preferences() on them first (--as-preferences)" if convert else "choose a method for that kind"
        )
        raise JudgmentError(f"{name} takes {takes}, not {judgments.kind}s; {remedy}")
    if isinstance(judgments, Grades) and judgments.nominal and not getattr(method, "nominal", False):
        raise JudgmentError(
            f"{name} needs an order and nominal grades have none; "
            "use a class method such as majority_vote, or give levels="
        )
    return judgments
