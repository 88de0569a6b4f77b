"""What the service answers when it cannot do what was asked, or what was sent does not fit: a type, and a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, WrapValidator
from pydantic_core import PydanticCustomError

from ..errors import CrowdrankError

STATUSES = {
    "bad_request": 400, "not_json": 400, "unauthorized": 401, "forbidden": 403, "cross_site": 403,
    "consent_needed": 403, "not_found": 404, "already_answered": 409, "submission_conflict": 409, "name_taken": 409,
    "closed": 409, "not_yours_to_undo": 409, "lease_over": 409, "too_large": 413, "invalid": 422, "too_many": 429,
    "internal": 500, "busy": 503, "stopping": 503, "storage_full": 507,
}  # fmt: skip
"""Every type of fault and its HTTP status."""


class Fault(CrowdrankError):
    """Something that was asked for and cannot be done.

    Parameters
    ----------
    kind
        One of :data:`STATUSES`.
    message
        What is wrong and what to do, in one sentence; never a token, never an item's content.
    detail
        What else the answer holds.
    retry_after
        Seconds after which to try again, where that helps.
    """

    def __init__(self, kind: str, message: str, *, retry_after: float | None = None, **detail: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = STATUSES[kind]
        self.detail = detail
        self.retry_after = retry_after

    def plain(self) -> dict[str, Any]:
        """Return the fault as the body of an answer."""
        return {"error": {"type": self.kind, "message": str(self), **self.detail}}


def must_be(words: str) -> WrapValidator:
    """Say in these words what a field must be, where it is not."""

    def check(value: Any, validate: Callable[[Any], Any]) -> Any:
        try:
            return validate(value)
        except ValidationError:
            raise PydanticCustomError("refused", "{words}", {"words": words}) from None

    return WrapValidator(check)


def refusal(error: Mapping[str, Any]) -> Fault:
    """Return what to answer where something that was sent does not fit: one of the errors that pydantic lists."""
    place = [str(part) for part in error["loc"] if part not in ("body", "query")]
    if place and place[0] == "path":
        return Fault("not_found", f"{place[-1]} must be a number")
    name = place[0] if place else ""
    return Fault("invalid", f"{name or 'a judgment'} must be {error['msg']}", field=name)


class Body(BaseModel):
    """What a call sends; other keys are passed over."""

    model_config = ConfigDict(strict=True, frozen=True)
