"""What the service answers when it cannot do what was asked: a type for programs, a sentence for people."""

from __future__ import annotations

from typing import Any

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
