"""Why an action waits, and until when: the words of `bridge.policy` told to people."""

from __future__ import annotations

from collections.abc import Mapping

import trio

from bridge.clock import WallClock, rfc3339
from bridge.kinds import Kind
from bridge.model import Action, Json, Priority, State
from bridge.policy import refusal
from bridge.seat import Seat
from bridge.stats import SchedulerStats
from bridge.store import Store

USUAL_FLOW_MS = 1_000.0
"""What a flow is taken to last before any has run."""


class Waiting:
    """Answers for one seat. `until` and `eta` are UTC milliseconds or None."""

    def __init__(
        self,
        *,
        seat: Seat,
        store: Store,
        kinds: Mapping[str, Kind],
        clock: WallClock,
        stats: SchedulerStats,
        send_delay_ms: int = 0,
    ) -> None:
        self._seat = seat
        self._store = store
        self._kinds = kinds
        self._clock = clock
        self._stats = stats
        self._send_delay_ms = send_delay_ms

    async def of_action(self, action: Action) -> Mapping[str, Json] | None:
        """{reason, until, ahead, eta}; None unless the action waits."""
        if action.state in {State.PAUSED, State.HELD}:
            return {"reason": "paused", "until": None, "ahead": 0, "eta": None}
        if action.state is State.SCHEDULED:
            due = action.not_before
            return {"reason": "not_due", "until": due, "ahead": 0, "eta": due}
        if action.state is not State.PENDING:
            return None
        ahead = await self._store.ahead(action)
        reason, until = self._reason(action, ahead)
        return {
            "reason": reason,
            "until": until,
            "ahead": ahead,
            "eta": self._eta(ahead, reason, until),
        }

    async def of_queue(self) -> Mapping[str, Json]:
        """The queue as a whole: counts, what holds it, when the next action starts."""
        counts = await self._store.counts()
        pending = counts.by_state.get(State.PENDING, 0)
        reason, until = self._hold(
            next((k for k in self._kinds.values() if k.signed_in), None), self._seat.known.owner
        )
        if reason is None and pending:
            reason, until = self._next_choice()
        return {
            "counts": {state.value: counts.by_state.get(state, 0) for state in State},
            "pending": pending,
            "pending_by_priority": {
                priority.name: counts.pending_by_priority.get(priority, 0) for priority in Priority
            },
            "waiting_callers": counts.waiting,
            "held_by": None if reason is None else {"reason": reason, "until": rfc3339(until)},
            "cooldown": rfc3339(self._seat.view().cooldown_until_ms),
            "next_start": rfc3339(until),
            "eta": rfc3339(self._eta(pending, reason, until)) if pending else None,
            "running": None
            if self._seat.scheduler.running is None
            else self._seat.scheduler.running.action.id,
        }

    def _reason(self, action: Action, ahead: int) -> tuple[str, int | None]:
        account = self._seat.view().account
        kind = self._kinds.get(action.kind)
        if kind is not None and kind.signed_in and account not in {None, action.owner}:
            return "other_owner", None
        reason, until = self._hold(kind, action.owner)
        if reason is not None:
            return reason, until
        if ahead or self._seat.scheduler.running is not None:
            return "behind", None
        reason, until = self._next_choice()
        return reason or "behind", until

    def _hold(self, kind: Kind | None, owner: str | None) -> tuple[str | None, int | None]:
        if kind is None:
            return None, None
        view, now, now_ms = self._seat.view(), trio.current_time(), self._clock.now_ms()
        why = refusal(kind, kind.priority, owner or "", view, now=now, now_ms=now_ms)
        if why is None:
            return None, None
        until = None
        if why[0] == "cooldown":
            until = view.cooldown_until_ms
        elif why[0] == "app" and view.dead_until > now:
            until = now_ms + round((view.dead_until - now) * 1000)
        return why[0], until

    def _next_choice(self) -> tuple[str | None, int | None]:
        choice = self._seat.scheduler.last_choice
        if choice.until is None:
            return choice.reason, None
        ahead = max(0.0, choice.until - trio.current_time())
        return choice.reason, self._clock.now_ms() + round(ahead * 1000)

    def _eta(self, ahead: int, reason: str | None, until: int | None) -> int | None:
        """When the action behind `ahead` others starts; None where nobody can know."""
        if until is None and reason not in {None, "behind", "gap", "window"}:
            return None
        ran = self._stats.executed_total
        usual = self._stats.exec_duration_ms_sum / ran if ran else USUAL_FLOW_MS
        start = self._clock.now_ms() if until is None else until
        return start + round(ahead * (usual + self._send_delay_ms))
