"""What `watch` knows: built from lists that the bridge gives and from events. Pure.

Lists say what waits and why; events say at once what starts, which step was made, what ended.
Times are UTC milliseconds. A list carries the seq it was made at, and what is older than what
is already known changes nothing.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

ENDED: Mapping[str, str] = {
    "action.succeeded": "succeeded",
    "action.failed": "failed",
    "action.uncertain": "uncertain",
    "action.cancelled": "cancelled",
    "action.expired": "expired",
    "action.superseded": "superseded",
    "action.resolved": "resolved",
}
"""The outcome by the type of the event that tells it."""

FINAL = ("succeeded", "failed", "uncertain", "cancelled", "expired", "superseded")
WAITING = ("pending", "scheduled", "paused", "held")
KEEP_DONE = 50
KEEP_NAMES = 500
KEEP_STEPS = 200

_PRIORITIES = ("CRITICAL", "HIGH", "NORMAL", "LOW")
_LEAVES_SEAT = frozenset(ENDED) | {"action.retrying", "action.released"}


def ms_of(text: Any) -> int | None:
    """RFC 3339 to UTC milliseconds; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return None


def title_of(row: Mapping[str, Any]) -> str:
    """An action for people: its kind, and whom it is for when that may be shown."""
    params = row.get("params") or {}
    whom = params.get("to") or params.get("contact")
    return f"{row.get('kind', '?')} → {whom}" if whom else str(row.get("kind", "?"))


@dataclass(frozen=True, slots=True)
class StepSeen:
    """One UI command of the running flow."""

    name: str
    ms: float
    ok: bool
    detail: str


@dataclass
class Running:
    """The action at work now."""

    id: str
    kind: str
    started: int | None
    attempt: int
    steps: deque[StepSeen] = field(default_factory=lambda: deque(maxlen=KEEP_STEPS))
    steps_made: int = 0


@dataclass(frozen=True, slots=True)
class Wait:
    """An action that waits, and why. `until` and `eta` may be None."""

    id: str
    title: str
    priority: str
    since: int | None
    reason: str
    until: int | None
    eta: int | None


@dataclass(frozen=True, slots=True)
class Done:
    """An action that ended. `took` is milliseconds of work, None when it never started."""

    id: str
    title: str
    outcome: str
    at: int | None
    took: int | None
    why: str


@dataclass
class Board:
    """The whole picture."""

    base: str
    live: bool = False
    lost_since: int | None = None
    """When the connection was lost; None before the first one."""
    trouble: str = ""
    tries: int = 0
    seats: Sequence[Mapping[str, Any]] = ()
    queue: Mapping[str, Any] = field(default_factory=dict)
    running: Running | None = None
    waiting: Sequence[Wait] = ()
    waiting_total: int = 0
    done: deque[Done] = field(default_factory=lambda: deque(maxlen=KEEP_DONE))
    """The last one first."""
    notice: str = ""
    epoch: str = ""
    seq: int = 0
    """The last event that is in the picture."""
    _names: OrderedDict[str, str] = field(default_factory=OrderedDict)

    # -- the connection

    def connected(self, hello: Mapping[str, Any]) -> None:
        """A connection stands; `hello` tells the present state."""
        if hello.get("epoch") != self.epoch:
            self.running, self.waiting, self.waiting_total, self.seq = None, (), 0, 0
            self.done.clear()
        self.live, self.trouble, self.tries, self.lost_since = True, "", 0, None
        self.epoch = str(hello.get("epoch", ""))
        snapshot = hello.get("snapshot") or {}
        self.see_status(snapshot.get("status") or {})
        self.see_queue(snapshot.get("queue") or {})

    def lost(self, why: str, now: int) -> None:
        """There is no connection; what is shown is what was known."""
        if self.live:
            self.lost_since = now
        self.live = False
        self.trouble = why
        self.tries += 1

    # -- lists

    def see_status(self, status: Mapping[str, Any]) -> None:
        """Take over `GET /api/status`."""
        seats = status.get("seats")
        if isinstance(seats, list):
            self.seats = seats

    def see_queue(self, queue: Mapping[str, Any]) -> None:
        """Take over `GET /api/queue`."""
        self.queue = queue

    def see_waiting(self, rows: Sequence[Mapping[str, Any]], total: int) -> None:
        """Take over the actions that wait, in the order in which they may start."""
        for row in rows:
            self._name(row)
        self.waiting = sorted(map(_wait, rows), key=_start_order)
        self.waiting_total = total

    def see_running(self, rows: Sequence[Mapping[str, Any]], seq: int) -> None:
        """Take over the list of running actions, made at `seq`: none or one."""
        for row in rows:
            self._name(row)
        if seq < self.seq:
            return
        if not rows:
            self.running = None
        elif self.running is None or self.running.id != rows[0]["id"]:
            self.running = _running(rows[0])

    def see_done(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take over actions that ended before we came; what is known already stays."""
        known = {one.id for one in self.done}
        for row in rows:
            self._name(row)
        older = [_done(row) for row in rows if row["id"] not in known]
        older.sort(key=lambda one: one.at or 0, reverse=True)
        self.done.extend(older[: KEEP_DONE - len(self.done)])

    # -- events

    def see_event(self, event: Mapping[str, Any]) -> None:
        """Take in one event, in the order of the stream."""
        kind = str(event.get("type", ""))
        seq = int(event.get("seq", 0))
        if kind == "action.step":
            self._step(event)
            return
        if seq <= self.seq and kind != "gap":
            return
        self.seq = max(self.seq, seq)
        if kind == "action.started":
            self._started(event)
        elif kind in _LEAVES_SEAT:
            self._ended(event, kind)
        elif not kind.startswith("action."):
            self.notice = told(event)

    def name(self, action: str | None, kind: str = "") -> str:
        """What to call an action: its title when a list told it, else its kind."""
        return self._names.get(action or "") or kind or "?"

    def _name(self, row: Mapping[str, Any]) -> None:
        self._names[row["id"]] = title_of(row)
        self._names.move_to_end(row["id"])
        while len(self._names) > KEEP_NAMES:
            self._names.popitem(last=False)

    def _started(self, event: Mapping[str, Any]) -> None:
        data = event.get("data") or {}
        action = str(event.get("action"))
        self.running = Running(
            action, str(data.get("kind", "?")), ms_of(event.get("ts")), int(data.get("attempt", 0))
        )
        self.waiting = [one for one in self.waiting if one.id != action]

    def _step(self, event: Mapping[str, Any]) -> None:
        if self.running is not None and self.running.id == event.get("action"):
            self.running.steps.append(_step_seen(event.get("data") or {}))
            self.running.steps_made += 1

    def _ended(self, event: Mapping[str, Any], kind: str) -> None:
        action = str(event.get("action"))
        at, took = ms_of(event.get("ts")), None
        if self.running is not None and self.running.id == action:
            if at is not None and self.running.started is not None:
                took = at - self.running.started
            self.running = None
        self.waiting = [one for one in self.waiting if one.id != action]
        if kind in ENDED:
            data = event.get("data") or {}
            title = self.name(action, str(data.get("kind", "")))
            self._forget(action)
            self.done.appendleft(
                Done(action, title, ENDED[kind], at, took, _why(data.get("error") or data))
            )

    def _forget(self, action: str) -> None:
        """An uncertain action that was resolved is shown once, by its last outcome."""
        kept = [one for one in self.done if one.id != action]
        self.done.clear()
        self.done.extend(kept)


def told(event: Mapping[str, Any]) -> str:
    """An event as a short sentence, its private parts left out."""
    data = event.get("data") or {}
    words = [f"{name}={data[name]}" for name in sorted(data) if _telling(data[name])]
    return " ".join([str(event.get("type", "?")), *words])


def _telling(value: Any) -> bool:
    return isinstance(value, (str, int, float, bool)) and value != ""


def _why(source: Mapping[str, Any]) -> str:
    return str(source.get("code") or source.get("reason") or "")


def _wait(row: Mapping[str, Any]) -> Wait:
    waiting = row.get("waiting") or {}
    return Wait(
        id=row["id"],
        title=title_of(row),
        priority=str(row.get("priority", "?")),
        since=ms_of(row.get("created_at")),
        reason=str(waiting.get("reason") or row.get("state", "?")),
        until=ms_of(waiting.get("until")),
        eta=ms_of(waiting.get("eta")),
    )


def _start_order(one: Wait) -> tuple[int, int]:
    rank = _PRIORITIES.index(one.priority) if one.priority in _PRIORITIES else len(_PRIORITIES)
    return rank, one.since or 0


def _running(row: Mapping[str, Any]) -> Running:
    now = Running(
        row["id"], str(row.get("kind", "?")), ms_of(row.get("started_at")), row.get("attempt") or 0
    )
    for step in row.get("steps") or ():
        now.steps.append(_step_seen(step))
        now.steps_made += 1
    return now


def _step_seen(data: Mapping[str, Any]) -> StepSeen:
    return StepSeen(
        name=str(data.get("name", "?")),
        ms=float(data.get("ms") or 0),
        ok=bool(data.get("ok", True)),
        detail=str(data.get("detail") or ""),
    )


def _done(row: Mapping[str, Any]) -> Done:
    begun, ended = ms_of(row.get("started_at")), ms_of(row.get("finished_at"))
    took = None if begun is None or ended is None else ended - begun
    why = _why(row.get("error") or {})
    return Done(row["id"], title_of(row), str(row.get("state", "?")), ended, took, why)
