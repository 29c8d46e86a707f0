"""What crosses the border between the HTTP layer and the core: requests, answers, lists, feeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from bridge.model import Action, Event, Json, Priority, State


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """A wish to have something done.

    `params` are validated and canonical (a JSON object with every default filled in). `wait`
    is in seconds, None for the kind's default; `respond_async` answers once the action is
    stored, or after `wait` seconds if that is given. Times are UTC milliseconds.
    """

    kind: str
    params: Mapping[str, Json]
    idempotency_key: str | None
    respond_async: bool
    wait: float | None
    trace_id: str
    priority: Priority | None = None
    delay_ms: int | None = None
    not_before: int | None = None
    expires_at: int | None = None
    coalesce_key: str | None = None
    hold: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request: the action as it was when its caller was answered."""

    action: Action


@dataclass(frozen=True, slots=True)
class Filter:
    """Which actions a list shows, newest first; an empty set or None means any.

    `text` is looked for in the params; `page` counts from 1.
    """

    states: frozenset[State] = frozenset()
    kinds: frozenset[str] = frozenset()
    owner: str | None = None
    text: str | None = None
    page: int = 1
    per_page: int = 10


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list; `total` counts all that match, `revision` is the last event's seq."""

    actions: Sequence[Action]
    total: int
    page: int
    per_page: int
    epoch: str
    revision: int


class Subscription(Protocol):
    """The feed of one client; bounded, and closed by leaving its context."""

    @property
    def hello(self) -> Mapping[str, Json]:
        """`{"type": "hello", "epoch", "seq", "snapshot"}`, the state that the frames follow."""
        ...

    async def frame(self) -> Sequence[Event] | None:
        """All events since the last call, waiting for at least one; None at the end.

        Cancelling it loses no event.
        """
        ...
