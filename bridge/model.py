"""The words of the queue as types: what an action is, which states it has, what an event says."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = Any
"""Anything that `json.dumps` takes."""


class Priority(enum.IntEnum):
    """The class of an action; a smaller number starts first."""

    CRITICAL = 0
    HIGH = 1
    NORMAL = 2
    LOW = 3


class State(enum.StrEnum):
    """Where an action is in its life. One column of its row; the only truth."""

    HELD = "held"
    SCHEDULED = "scheduled"
    PENDING = "pending"
    PAUSED = "paused"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNCERTAIN = "uncertain"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"


FINAL: frozenset[State] = frozenset(
    {
        State.SUCCEEDED,
        State.FAILED,
        State.UNCERTAIN,
        State.CANCELLED,
        State.EXPIRED,
        State.SUPERSEDED,
    }
)
"""States in which the bridge does nothing more by itself."""


class Effect(enum.StrEnum):
    """What carrying out an action twice would do."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


class Need(enum.StrEnum):
    """What must be there before an action of a kind may start."""

    DISPLAY = "display"
    APP = "app"
    SIGNED_IN = "signed_in"


class LoginState(enum.StrEnum):
    """What the probe reads off the app."""

    UNKNOWN = "unknown"
    STARTING = "starting"
    QR = "qr"
    CONFIRM = "confirm"
    LOGGED_IN = "logged_in"
    LOGGED_OUT = "logged_out"
    OFFLINE = "offline"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class Step:
    """One UI command of a flow, as it was carried out.

    `at` is UTC milliseconds, `ms` the duration; `detail` never holds private text.
    """

    name: str
    at: int
    ms: float
    ok: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class NewAction:
    """An action as it is handed to the store; times are UTC milliseconds."""

    id: str
    seat: str
    owner: str
    kind: str
    params: Mapping[str, Json]
    request_hash: str
    priority: Priority
    effect: Effect
    trace_id: str
    waited: bool = False
    start_by: int | None = None
    idempotency_key: str | None = None
    coalesce_key: str | None = None
    batch_id: str | None = None
    delay_ms: int | None = None
    not_before: int | None = None
    expires_at: int | None = None
    hold: bool = False
    max_attempts: int = 5


@dataclass(frozen=True, slots=True)
class Action:
    """One row of the queue; times are UTC milliseconds.

    `ord` is the order of arrival and never changes. `fence` is the lease generation of the
    worker that runs it. `mark` is set from the commit point on. `mark["launch"]` names the
    app launch that was pressed.
    """

    id: str
    ord: int
    seat: str
    owner: str
    kind: str
    params: Mapping[str, Json]
    request_hash: str
    priority: Priority
    state: State
    effect: Effect
    trace_id: str
    waited: bool
    start_by: int | None
    attempt: int
    max_attempts: int
    crashes: int
    idempotency_key: str | None
    coalesce_key: str | None
    batch_id: str | None
    delay_ms: int | None
    not_before: int | None
    expires_at: int | None
    created_at: int
    started_at: int | None
    finished_at: int | None
    revision: int
    fence: int | None
    cancel_requested: bool
    mark: Mapping[str, Json] | None
    steps: Sequence[Step]
    evidence: Mapping[str, Json]
    result: Mapping[str, Json] | None
    error: Mapping[str, Json] | None

    @property
    def final(self) -> bool:
        """True when the bridge does nothing more with it by itself."""
        return self.state in FINAL


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the order looks at of a pending action; `created_at` is UTC milliseconds."""

    id: str
    ord: int
    priority: Priority
    kind: str
    params: Mapping[str, Json]
    created_at: int
    delay_ms: int | None = None
    waited: bool = False


@dataclass(frozen=True, slots=True)
class Lane:
    """An owner whose actions may start now, and which kinds of them (None: all)."""

    owner: str
    kinds: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One committed transition, or (`action.step`) a live notice that is not stored.

    A stored event has a `seq` of its own; a live one repeats the last stored `seq`.
    """

    seq: int
    ts: int
    type: str
    seat: str
    owner: str
    action: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)
    trace_id: str = ""
