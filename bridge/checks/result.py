"""What a check answers, and the frame that each runs in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import structlog
import trio

from bridge.errors import BridgeError
from bridge.model import Json
from ui_backends.base import UiError

log = structlog.get_logger(__name__)

Status = Literal["ok", "warning", "failed"]

DEADLINE = 5.0
"""Seconds that one check may take."""

_GRAVITY: Sequence[Status] = ("ok", "warning", "failed")


@dataclass(frozen=True, slots=True)
class Result:
    """The answer of one check. `advice` says what to do, and is None when all is well."""

    check: str
    status: Status
    detail: str
    advice: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    ms: float = 0.0

    def to_json(self) -> dict[str, Json]:
        """As the API and `doctor --json` show it."""
        return {
            "check": self.check,
            "status": self.status,
            "detail": self.detail,
            "advice": self.advice,
            "data": dict(self.data),
            "ms": self.ms,
        }


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is not as it should be."""

    status: Status
    detail: str
    advice: str


def worst(statuses: Sequence[Status]) -> Status:
    """The gravest of them; ok when there are none."""
    return max(statuses, key=_GRAVITY.index, default="ok")


def judged(check: str, faults: Sequence[Fault], well: str, data: Mapping[str, Json]) -> Result:
    """The result of a check that may find several faults; `well` is what to say of none."""
    if not faults:
        return Result(check, "ok", well, None, data)
    return Result(
        check,
        worst([fault.status for fault in faults]),
        "; ".join(fault.detail for fault in faults),
        "; ".join(fault.advice for fault in faults),
        data,
    )


async def checked(
    check: str, look: Callable[[], Awaitable[Result]], *, deadline: float = DEADLINE
) -> Result:
    """Run one check: measured, bounded, and never raising but for cancellation."""
    begun = trio.current_time()
    try:
        with trio.fail_after(deadline):
            result = await look()
    except trio.TooSlowError:
        result = Result(
            check,
            "warning",
            f"no answer within {deadline:g} s",
            "try again: the display may be busy, or what was asked hangs; see the other checks",
        )
    except UiError as error:
        result = Result(check, "failed", f"cannot be seen: {error}", "see the check `display`")
    except BridgeError as error:
        advice = "see the check `display`" if error.code == "DISPLAY_DEAD" else "try again"
        result = Result(check, "failed", f"cannot be seen: {error.detail}", advice)
    except Exception as error:  # one check that breaks must not hide the others
        log.exception("check broke", check=check)
        result = Result(
            check,
            "failed",
            f"the check itself broke: {type(error).__name__}: {error}",
            "this is a defect of deskbridge: report it with the log",
        )
    return replace(result, ms=round((trio.current_time() - begun) * 1000, 1))
