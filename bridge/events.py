"""Those who watch: every committed event reaches every subscriber, in order, or a gap is told.

A subscriber is bounded. One that does not keep up costs nobody anything: it gets a gap marker
and then the end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import trio

from bridge.clock import WallClock
from bridge.model import Event

QUEUE = 1_024
"""Events that wait for one subscriber at most."""

PAGE = 500
"""Stored events replayed in one frame at most."""

PAUSE = 0.05
"""Seconds between two frames to one subscriber; what comes meanwhile goes into the next."""


class EventLog(Protocol):
    """The stored events."""

    epoch: str

    @property
    def last_seq(self) -> int:
        """The seq of the last committed event."""
        ...

    async def events_since(self, seq: int, limit: int) -> Sequence[Event]:
        """Up to `limit` events after `seq`, in order."""
        ...

    async def oldest_seq(self) -> int | None:
        """The seq of the oldest event still stored; None when none is."""
        ...


def gap(first: int, last: int, now_ms: int) -> Event:
    """The marker for events `first` to `last`, which this subscriber does not get."""
    return Event(last, now_ms, "gap", "", "", None, {"from": first, "to": last})


class Subscription:
    """One watcher's view of the stream. `frame` is called by one task at a time."""

    def __init__(
        self, hub: Hub, log: EventLog, clock: WallClock, cursor: int, first: list[Event]
    ) -> None:
        self.hello: dict[str, Any] = {}
        self._hub = hub
        self._log = log
        self._clock = clock
        self._cursor = cursor
        """The last seq that was handed out or announced as a gap."""
        self._first = first
        self._behind = True
        """Still replaying from the store; the live queue is not fed."""
        self._queue: deque[Event] = deque()
        self._overflowed = False
        self._ended = False
        self._arrived = trio.Event()
        self._not_before = 0.0

    def push(self, event: Event) -> None:
        """Take one live event (called by the hub)."""
        if self._behind or self._overflowed or event.seq < self._cursor:
            return
        if event.seq == self._cursor and event.type != "action.step":
            return
        if len(self._queue) >= QUEUE:
            self._queue.clear()
            self._overflowed = True
        else:
            self._queue.append(event)
        self._arrived.set()

    async def frame(self) -> list[Event] | None:
        """The next events, at least one; None when the stream has ended after a gap."""
        if self._first:
            first, self._first = self._first, []
            return first
        while self._behind:
            page = list(await self._log.events_since(self._cursor, PAGE))
            if page:
                self._cursor = page[-1].seq
                return page
            self._behind = self._hub.last_seq > self._cursor
        if self._ended:
            return None
        await trio.sleep_until(self._not_before)
        await self._arrived.wait()
        self._arrived = trio.Event()
        self._not_before = trio.current_time() + PAUSE
        if self._overflowed:
            self._ended = True
            self._arrived.set()
            return [gap(self._cursor + 1, self._hub.last_seq, self._clock.now_ms())]
        events = list(self._queue)
        self._queue.clear()
        self._cursor = max(self._cursor, events[-1].seq)
        return events


class Hub:
    """Spreads events to its subscribers. `publish` and `live` never wait."""

    def __init__(self, clock: WallClock) -> None:
        self.last_seq = 0
        """The seq of the last published event; what is stored may be ahead for an instant."""
        self._clock = clock
        self._subscriptions: set[Subscription] = set()
        self._listeners: list[Callable[[Sequence[Event]], None]] = []

    def listen(self, listener: Callable[[Sequence[Event]], None]) -> None:
        """Have `listener` called with each batch of committed events; it must not raise."""
        self._listeners.append(listener)

    def publish(self, events: Sequence[Event]) -> None:
        """Spread committed events, in the order of their seq."""
        for event in events:
            self.last_seq = max(self.last_seq, event.seq)
            for subscription in self._subscriptions:
                subscription.push(event)
        for listener in self._listeners:
            listener(events)

    def live(self, event: Event) -> None:
        """Spread a notice that is not stored (it repeats the last seq)."""
        for subscription in self._subscriptions:
            subscription.push(event)

    @property
    def subscribers(self) -> int:
        """How many watch now."""
        return len(self._subscriptions)

    @asynccontextmanager
    async def subscribe(
        self,
        log: EventLog,
        since: tuple[str, int] | None,
        snapshot: Callable[[], Awaitable[dict[str, Any]]],
    ) -> AsyncIterator[Subscription]:
        """Watch from `since` (epoch, seq) on, or from now; the hello carries a snapshot.

        The snapshot may already contain events that come again in the first frames.
        """
        seq = log.last_seq
        cursor: int = seq
        first: list[Event] = []
        if since is not None:
            cursor, first = await self._resume(log, since, seq)
        subscription = Subscription(self, log, self._clock, cursor, first)
        self._subscriptions.add(subscription)
        try:
            subscription.hello = {
                "type": "hello",
                "epoch": log.epoch,
                "seq": seq,
                "snapshot": await snapshot(),
            }
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    async def _resume(
        self, log: EventLog, since: tuple[str, int], seq: int
    ) -> tuple[int, list[Event]]:
        epoch, cursor = since
        now_ms = self._clock.now_ms()
        if epoch != log.epoch or cursor > seq:
            return seq, [gap(0, seq, now_ms)]
        oldest = await log.oldest_seq()
        first_kept = seq + 1 if oldest is None else oldest
        if first_kept > cursor + 1:
            return first_kept - 1, [gap(cursor + 1, first_kept - 1, now_ms)]
        return cursor, []
