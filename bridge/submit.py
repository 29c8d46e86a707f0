"""Handing actions in: `execute` waits for the end, `enqueue` does not.

A waited action never runs once its caller was told that it did not: its `start_by` is on disk,
and whoever stops waiting last takes a pending one back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import trio

from bridge.clock import WallClock
from bridge.config import Limits, Pace
from bridge.errors import BridgeError, Executed
from bridge.kinds import Kind
from bridge.model import Action, NewAction, State
from bridge.policy import SeatView, refusal
from bridge.stats import SchedulerStats
from bridge.store import Store
from bridge.waiters import Waiters

STORE_PATIENCE = 10.0
"""Seconds that a caller who hung up is still cleaned up after."""

_TIMEOUT_DETAIL: Mapping[Executed, str] = {
    False: "it did not start in time and will not run; try again later",
    "running": "it is still running and will not be run again; read it at its address",
    None: "others still wait for it; read it at its address",
}


class Submitter:
    """Accepts actions for one seat and keeps their callers company."""

    def __init__(
        self,
        *,
        store: Store,
        waiters: Waiters,
        kinds: Mapping[str, Kind],
        view: Callable[[], SeatView],
        clock: WallClock,
        pace: Pace,
        limits: Limits,
        stats: SchedulerStats,
    ) -> None:
        self._store = store
        self._waiters = waiters
        self._kinds = kinds
        self._view = view
        self._clock = clock
        self._pace = pace
        self._limits = limits
        self._stats = stats

    async def enqueue(self, new: NewAction) -> Action:
        """Accept an action and return its row. Raises RATE_LIMITED and the like."""
        return await self._submit(replace(new, waited=False, start_by=None), None)

    async def execute(self, new: NewAction, wait: float) -> Action:
        """Accept an action and wait up to `wait` seconds for its end; returns its final row.

        Raises the refusal when it cannot start, TIMEOUT when the wait ends first. A caller who
        is cancelled takes a pending action with him.
        """
        deadline = trio.current_time() + wait
        start_by = self._clock.now_ms() + round(wait * 1000)
        action = await self._submit(
            replace(new, waited=True, start_by=start_by), self._refusal(new)
        )
        if action.final:
            return action
        try:
            with self._waiters.hold(action.id) as ended:
                return await self._outwait(action, ended, deadline)
        except trio.Cancelled:
            await self._caller_left(action.id)
            raise

    def _refusal(self, new: NewAction) -> BridgeError | None:
        view = self._view()
        if view.closing:
            return shutting_down()
        why = refusal(
            self._kinds[new.kind],
            new.priority,
            new.owner,
            view,
            now=trio.current_time(),
            now_ms=self._clock.now_ms(),
        )
        return None if why is None else why[1]

    async def _submit(self, new: NewAction, why_not: BridgeError | None) -> Action:
        if self._view().closing:
            raise shutting_down()
        # Shielded: once the row may be on disk, the caller must learn of it or clean it up.
        with trio.CancelScope(shield=True):
            try:
                submitted = await self._store.submit(
                    new, now=self._clock.now_ms(), limits=self._limits, refusal=why_not
                )
            except BridgeError as error:
                self._count(error)
                raise
        return submitted.action

    def _count(self, error: BridgeError) -> None:
        if error.code == "RATE_LIMITED":
            self._stats.rate_limited()
        elif error.code == "APP_NOT_READY":
            self._stats.fast_failed()

    async def _outwait(self, action: Action, ended: trio.Event, deadline: float) -> Action:
        row = await self._store.get(action.id)  # it may have ended before we were counted
        if not row.final:
            with trio.move_on_at(deadline):
                await ended.wait()
            row = await self._store.get(action.id)
        if row.final:
            return row
        return await self._wait_ended(row)

    async def _wait_ended(self, row: Action) -> Action:
        error = self.timeout_error(executed=False, action_id=row.id)
        if row.state is not State.RUNNING and self._waiters.callers(row.id) <= 1:
            row = await self._store.leave_waited(row.id, now=self._clock.now_ms(), error=error)
            if row.final and row.state is not State.CANCELLED:
                return row  # a result that came in the same instant wins
        self._stats.timed_out()
        if row.state is State.RUNNING:
            error = self.timeout_error(executed="running", action_id=row.id)
        elif not row.final:
            error = self.timeout_error(executed=None, action_id=row.id)
        raise error

    def timeout_error(self, *, executed: Executed, action_id: str) -> BridgeError:
        """The answer to a caller whose wait ended."""
        return BridgeError(
            "TIMEOUT",
            _TIMEOUT_DETAIL[executed],
            retry_after=max(1, math.ceil(self._pace.send_delay_ms / 1000)),
            executed=executed,
            action_id=action_id,
        )

    async def _caller_left(self, action_id: str) -> None:
        with trio.move_on_after(STORE_PATIENCE, shield=True):
            if self._waiters.callers(action_id):
                return
            error = BridgeError("CANCELLED", "the caller hung up before it started", executed=False)
            await self._store.leave_waited(action_id, now=self._clock.now_ms(), error=error)


def shutting_down() -> BridgeError:
    """The answer to new work once the bridge is ending."""
    return BridgeError(
        "SHUTTING_DOWN",
        "the bridge is shutting down; try again soon",
        retry_after=5,
        executed=False,
    )
