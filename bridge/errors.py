"""Every error a user can cause: its code, its HTTP status, and the exception that carries it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Executed = Literal[True, False, "running"] | None

STATUS: Mapping[str, int] = {
    "MALFORMED_JSON": 400,
    "INVALID_REQUEST": 422,
    "UNAUTHORIZED": 401,
    "FORBIDDEN": 403,
    "NOT_FOUND": 404,
    "METHOD_NOT_ALLOWED": 405,
    "CONTACT_NOT_FOUND": 404,
    "IDEMPOTENCY_CONFLICT": 409,
    "NOT_LOGGED_IN": 409,
    "INVALID_STATE": 409,
    "AMBIGUOUS_CONTACT": 409,
    "CANCELLED": 409,
    "SUPERSEDED": 409,
    "EXPIRED": 409,
    "STALE_REVISION": 412,
    "PAYLOAD_TOO_LARGE": 413,
    "REVISION_REQUIRED": 428,
    "RATE_LIMITED": 429,
    "COOLDOWN": 429,
    "UNCERTAIN": 500,
    "INTERNAL": 500,
    "UNSUPPORTED_BY_APP": 501,
    "WINDOW_NOT_FOUND": 502,
    "FOCUS_LOST": 502,
    "VERIFY_FAILED": 502,
    "UI_ERROR": 502,
    "APP_NOT_READY": 503,
    "DISPLAY_DEAD": 503,
    "HANDS_ON": 503,
    "PAUSED": 503,
    "STORE_UNAVAILABLE": 503,
    "SHUTTING_DOWN": 503,
    "TIMEOUT": 504,
    "STEP_TIMEOUT": 504,
}
"""HTTP status by error code. A malformed JSON body is told as INVALID_REQUEST with status 400."""


RETRY_AFTER: Mapping[str, int] = {
    "APP_NOT_READY": 5,
    "DISPLAY_DEAD": 5,
    "HANDS_ON": 5,
    "SHUTTING_DOWN": 5,
    "STORE_UNAVAILABLE": 3,
}
"""Seconds after which another try makes sense, unless the error knows better."""


class BridgeError(Exception):
    """Raised when a request or a flow ends otherwise than asked.

    Args:
        code: a key of `STATUS`.
        detail: one sentence that says what happened and what to do.
        retry_after: seconds after which another try makes sense.
        executed: whether the effect happened; None when that cannot be known.
        action_id: the action this is about.
        extra: further members of the problem document, such as `candidates`.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        retry_after: int | None = None,
        executed: Executed = None,
        action_id: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.retry_after = RETRY_AFTER.get(code) if retry_after is None else retry_after
        self.executed = executed
        self.action_id = action_id
        self.extra = dict(extra or {})

    @property
    def status(self) -> int:
        """The HTTP status that goes with the code."""
        return STATUS[self.code]

    def to_json(self) -> dict[str, Any]:
        """The error as it is stored in an action's `error`."""
        return {
            "code": self.code,
            "detail": self.detail,
            "retry_after": self.retry_after,
            "executed": self.executed,
            **self.extra,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, action_id: str | None = None) -> BridgeError:
        """The inverse of `to_json`."""
        known = {"code", "detail", "retry_after", "executed"}
        return cls(
            data["code"],
            data["detail"],
            retry_after=data.get("retry_after"),
            executed=data.get("executed"),
            action_id=action_id,
            extra={k: v for k, v in data.items() if k not in known},
        )


class LostFence(Exception):
    """Raised when a worker's write is refused since its lease generation is no longer the row's."""
