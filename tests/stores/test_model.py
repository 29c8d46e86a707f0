"""Random work against a simple model, with restarts in between.

The model knows each action's state and the rules in a few plain lines; after every step the
store has to say the same, its events have to be an unbroken list of allowed transitions, and
its counts have to add up.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from bridge import lifecycle
from bridge.config import Limits
from bridge.errors import BridgeError, LostFence
from bridge.kinds import request_hash
from bridge.model import FINAL, Action, Effect, Event, Lane, NewAction, Priority, State
from bridge.store import Filter, Store, open_store

OWNER = "me"
WAITABLE = {State.PENDING, State.SCHEDULED, State.PAUSED}
TIMES = st.sampled_from([None, None, None, None, 0, 5, 40])
KEYS = st.sampled_from([None, None, "k", "l"])
SELDOM = st.sampled_from([False, False, False, False, False, True])
LIMITS = st.sampled_from([Limits()] * 5 + [Limits(max_waiting=1), Limits(max_pending=4)])


class Host:
    """Trio in a thread of its own, for a machine whose rules are ordinary functions."""

    def __init__(self) -> None:
        self._token: trio.lowlevel.TrioToken
        self._ready = threading.Event()
        self._over: trio.Event
        self._thread = threading.Thread(target=trio.run, args=(self._main,))
        self._thread.start()
        assert self._ready.wait(10)

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._over = trio.Event()
        self._ready.set()
        await self._over.wait()

    def run(self, call: Callable[[], Awaitable[Any]]) -> Any:
        async def bounded() -> Any:
            with trio.fail_after(20):
                return await call()

        return trio.from_thread.run(bounded, trio_token=self._token)

    def close(self) -> None:
        self._token.run_sync_soon(self._over.set)
        self._thread.join(10)


@dataclass
class Row:
    """What the model knows of an action; list position is the order of arrival."""

    id: str
    priority: Priority
    state: State
    hash: str
    waited: bool
    start_by: int | None
    key: str | None
    coalesce: str | None
    not_before: int | None
    expires_at: int | None
    attempt: int = 0
    crashes: int = 0
    fence: int | None = None
    marked: bool = False
    flagged: bool = False

    def end(self, state: State) -> None:
        """It ended without having begun: a waited one gives its key free."""
        self.state = state
        if self.waited:
            self.key = None


def seen(a: Action) -> tuple[object, ...]:
    """What is compared of a stored action, with `known`."""
    flagged = a.cancel_requested and not a.final
    place = (a.state, a.waited, a.start_by, a.idempotency_key, a.not_before)
    return (a.id, *place, a.attempt, a.crashes, flagged)


def known(r: Row) -> tuple[object, ...]:
    """The model's side of `seen`."""
    flagged = r.flagged and r.state not in FINAL
    place = (r.state, r.waited, r.start_by, r.key, r.not_before)
    return (r.id, *place, r.attempt, r.crashes, flagged)


class QueueMachine(RuleBasedStateMachine):
    executor = "inline"

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.host = Host()
        self.rows: list[Row] = []
        self.told: list[Event] = []
        self.now = 1_000
        self.fence = 0
        self.made = 0
        self.open()

    # --- the store

    def open(self) -> None:
        self.stack = contextlib.AsyncExitStack()
        self.store: Store = self.host.run(
            lambda: self.stack.enter_async_context(
                open_store(
                    Path(self.folder.name) / "queue.db",
                    on_commit=self.told.extend,
                    executor=self.executor,
                )
            )
        )

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        return self.host.run(lambda: getattr(self.store, name)(*args, **options))

    def attempt(self, name: str, *args: Any, **options: Any) -> tuple[Any, str | None]:
        """The call's value, or the code of its error."""
        try:
            return self.call(name, *args, **options), None
        except BridgeError as error:
            return None, error.code

    def teardown(self) -> None:
        self.host.run(self.stack.aclose)
        self.host.close()
        self.folder.cleanup()

    @initialize()
    def first_lease(self) -> None:
        self.fence = self.call("acquire", OWNER, "w", self.now)

    # --- the model's own words

    def among(self, data: st.DataObject, *states: State) -> Row:
        return data.draw(st.sampled_from([r for r in self.rows if r.state in states]))

    def any_in(self, *states: State) -> bool:
        return any(row.state in states for row in self.rows)

    def newer(self, old: Row, states: set[State]) -> bool:
        after = self.rows[self.rows.index(old) + 1 :]
        return old.coalesce is not None and any(
            row.coalesce == old.coalesce and row.state in states for row in after
        )

    # --- callers

    @rule(
        priority=st.sampled_from(Priority),
        key=KEYS,
        text=st.sampled_from("xy"),
        coalesce=KEYS,
        start_by=TIMES,
        not_before=TIMES,
        expires_at=TIMES,
        hold=SELDOM,
        refused=SELDOM,
        limits=LIMITS,
    )
    def submit(
        self, priority, key, text, coalesce, start_by, not_before, expires_at, hold, refused, limits
    ) -> None:
        self.made += 1
        params = {"to": "Alice", "text": text}
        absolute = [None if t is None else self.now + t for t in (start_by, not_before, expires_at)]
        start_by, not_before, expires_at = absolute
        waited = start_by is not None
        hold = hold and not waited
        new = NewAction(
            id=f"a{self.made}",
            seat="s0",
            owner=OWNER,
            kind="send_text",
            params=params,
            request_hash=request_hash("send_text", params),
            priority=priority,
            effect=Effect.ONCE,
            trace_id="t",
            waited=waited,
            start_by=start_by,
            idempotency_key=key,
            coalesce_key=coalesce,
            not_before=not_before,
            expires_at=expires_at,
            hold=hold,
        )
        refusal = BridgeError("PAUSED", "not now", executed=False) if refused else None
        got, code = self.attempt("submit", new, now=self.now, limits=limits, refusal=refusal)
        assert code == self.expected_error(new, refused, limits)
        if code is not None:
            return
        known = next((row for row in self.rows if key is not None and row.key == key), None)
        assert got.created is (known is None)
        if known is None:
            self.insert(new)
            return
        assert got.action.id == known.id
        if known.waited and known.state in WAITABLE:
            if not waited:
                known.waited, known.start_by = False, None
            else:
                known.start_by = max(known.start_by, start_by)

    def expected_error(self, new: NewAction, refused: bool, limits: Limits) -> str | None:
        key = new.idempotency_key
        known = next((row for row in self.rows if key is not None and row.key == key), None)
        if known is not None:
            return None if known.hash == new.request_hash else "IDEMPOTENCY_CONFLICT"
        if refused:
            return "PAUSED"
        if new.priority is Priority.CRITICAL:
            return None
        waiting = sum(row.waited and row.state in WAITABLE for row in self.rows)
        stored = sum(row.state in WAITABLE | {State.HELD} for row in self.rows)
        full = (new.waited and waiting >= limits.max_waiting) or stored >= limits.max_pending
        return "RATE_LIMITED" if full else None

    def insert(self, new: NewAction) -> None:
        replaced = [
            row
            for row in self.rows
            if new.coalesce_key is not None
            and row.coalesce == new.coalesce_key
            and row.state in WAITABLE
        ]
        for row in replaced:
            row.state = State.SUPERSEDED
        due = [row.not_before for row in replaced if row.not_before is not None]
        due += [] if new.not_before is None else [new.not_before]
        not_before = max(due, default=None)
        state = State.SCHEDULED if not_before is not None and not_before > self.now else None
        self.rows.append(
            Row(
                id=new.id,
                priority=new.priority,
                state=State.HELD if new.hold else state or State.PENDING,
                hash=new.request_hash,
                waited=new.waited,
                start_by=new.start_by,
                key=new.idempotency_key,
                coalesce=new.coalesce_key,
                not_before=not_before,
                expires_at=new.expires_at,
                attempt=max((row.attempt for row in replaced), default=0),
            )
        )

    @rule(coalesce=KEYS, waited=st.booleans())
    def submit_urgently_and_start(self, coalesce, waited) -> None:
        """The short way to something that runs, from which most of the rest begins."""
        self.submit(
            priority=Priority.CRITICAL,
            key=None,
            text="x",
            coalesce=coalesce,
            start_by=5 if waited else None,
            not_before=None,
            expires_at=None,
            hold=False,
            refused=False,
            limits=Limits(),
        )
        self.claim(upto=False)

    @precondition(lambda self: self.rows)
    @rule(data=st.data())
    def leave(self, data) -> None:
        row = data.draw(st.sampled_from(self.rows))
        error = BridgeError("TIMEOUT", "left", executed=False)
        self.call("leave_waited", row.id, now=self.now, error=error)
        if row.waited and row.state in WAITABLE:
            row.end(State.CANCELLED)

    # --- the worker

    @rule(upto=SELDOM)
    def claim(self, upto) -> None:
        limit = len(self.rows) // 2 if upto else len(self.rows)
        ready = [
            row
            for row in self.rows[:limit]
            if row.state is State.PENDING
            and (row.expires_at is None or row.expires_at > self.now)
            and (row.start_by is None or row.start_by > self.now)
        ]
        expected = min(ready, key=lambda row: (row.priority, self.rows.index(row)), default=None)
        ords = {a.id: a.ord for a in self.page().actions}
        got = self.call(
            "claim",
            now=self.now,
            fence_of={OWNER: self.fence},
            lanes=[Lane(OWNER)],
            choose=lambda found: (
                min(found, key=lambda c: (c.priority, c.ord), default=None).id if found else None
            ),
            upto=ords[self.rows[limit - 1].id] if limit else 0,
        )
        assert (got and got.id) == (expected and expected.id)
        if expected is not None:
            expected.state, expected.fence = State.RUNNING, self.fence
            expected.marked = expected.flagged = False

    @precondition(lambda self: self.any_in(State.RUNNING))
    @rule(data=st.data(), marked=st.booleans())
    def mark(self, data, marked) -> None:
        row = self.among(data, State.RUNNING)
        if marked:
            self.call("set_mark", row.id, self.fence, {"last": 1}, (), self.now)
        else:
            self.call("withdraw_mark", row.id, self.fence, self.now)
        row.marked = marked

    @precondition(lambda self: self.any_in(State.RUNNING))
    @rule(
        data=st.data(),
        state=st.sampled_from([State.SUCCEEDED, State.FAILED, State.UNCERTAIN, State.CANCELLED]),
        counted=st.booleans(),
        free_key=st.booleans(),
        executed=st.sampled_from([False, None]),
    )
    def finish(self, data, state, counted, free_key, executed) -> None:
        row = self.among(data, State.RUNNING)
        error = None
        if state is not State.SUCCEEDED:
            error = BridgeError("UI_ERROR", "seen", executed=executed).to_json()
        self.call(
            "finish",
            row.id,
            self.fence,
            state,
            now=self.now,
            error=error,
            counted=counted,
            free_key=free_key,
        )
        row.state = state
        row.attempt += counted
        undone = error is not None and executed is False
        if free_key and undone and (state is State.FAILED or row.waited):
            row.key = None

    @precondition(lambda self: self.any_in(State.RUNNING))
    @rule(data=st.data())
    def cancel_what_runs(self, data) -> None:
        row = self.among(data, State.RUNNING)
        self.call("cancel", row.id, revision=None, now=self.now, who="ops")
        row.flagged = True

    @precondition(lambda self: self.any_in(State.RUNNING))
    @rule(data=st.data(), after=TIMES, counted=st.booleans(), crashed=st.booleans())
    def requeue(self, data, after, counted, crashed) -> None:
        row = self.among(data, State.RUNNING)
        not_before = None if after is None else self.now + after
        self.call(
            "requeue",
            row.id,
            self.fence,
            now=self.now,
            not_before=not_before,
            counted=counted,
            crashed=crashed,
        )
        row.attempt += counted
        row.crashes += crashed
        row.marked = False
        if row.flagged:
            row.end(State.CANCELLED)
        elif self.newer(row, WAITABLE | {State.RUNNING, State.UNCERTAIN, State.SUCCEEDED}):
            row.state = State.SUPERSEDED
        else:
            row.not_before, row.fence = not_before, None
            row.state = State.SCHEDULED if after else State.PENDING

    @precondition(lambda self: self.any_in(State.RUNNING))
    @rule(data=st.data())
    def write_under_an_old_fence(self, data) -> None:
        row = self.among(data, State.RUNNING)
        with pytest.raises(LostFence):
            self.call("finish", row.id, self.fence - 1, State.SUCCEEDED, now=self.now)

    # --- people and upkeep

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), stale=SELDOM)
    def cancel(self, data, stale) -> None:
        row = data.draw(st.sampled_from(self.rows))
        revision = self.call("get", row.id).revision - stale
        _, code = self.attempt("cancel", row.id, revision=revision, now=self.now, who="ops")
        if stale:
            assert code == "STALE_REVISION"
        elif row.state in FINAL:
            assert code == "INVALID_STATE"
        elif row.state is State.RUNNING:
            row.flagged = True
        else:
            row.end(State.CANCELLED)

    @precondition(lambda self: any(row.waited for row in self.rows))
    @rule()
    def fail_fast(self) -> None:
        error = BridgeError("APP_NOT_READY", "restarting", executed=False)
        failed = self.call("fail_waiting", [OWNER], now=self.now, error=error)
        expected = [
            row
            for row in self.rows
            if row.waited and row.state in WAITABLE and row.priority is not Priority.CRITICAL
        ]
        assert [action.id for action in failed] == [row.id for row in expected]
        for row in expected:
            row.end(State.FAILED)

    @rule(later=st.sampled_from([0, 1, 5, 5, 40, -20]))
    def time_passes_and_is_swept(self, later) -> None:
        self.now += later  # a clock can also be set back
        swept = self.call("sweep", self.now)
        for row in self.rows:
            unstarted = row.state in WAITABLE | {State.HELD}
            if unstarted and row.expires_at is not None and row.expires_at <= self.now:
                row.end(State.EXPIRED)
            elif row.waited and row.state in WAITABLE and row.start_by <= self.now:
                row.end(State.CANCELLED)
            elif row.state is State.SCHEDULED and row.not_before <= self.now:
                row.state = State.PENDING
        assert swept.next_due is None or swept.next_due > self.now

    @rule(really=SELDOM)
    def restart(self, really) -> None:
        if not really:
            return
        self.host.run(self.stack.aclose)
        self.open()
        self.fence = self.call("acquire", OWNER, "w", self.now)
        taken = self.call("recover", [OWNER], {OWNER: self.fence}, self.now)
        running = [row for row in self.rows if row.state is State.RUNNING]
        assert [action.id for action in taken] == [row.id for row in running]
        for row in self.rows:
            if row.state is State.RUNNING:
                row.fence = self.fence
            elif row.waited and row.state in WAITABLE:
                row.end(State.CANCELLED)

    # --- what always holds

    def page(self) -> Any:
        return self.call("list_actions", Filter(per_page=10_000))

    @invariant()
    def the_store_says_what_the_model_says(self) -> None:
        page = self.page()
        assert [seen(action) for action in reversed(page.actions)] == [
            known(row) for row in self.rows
        ]
        for action, row in zip(reversed(page.actions), self.rows, strict=True):
            if action.state is State.RUNNING:
                assert (action.fence, action.mark is not None) == (row.fence, row.marked)
        assert page.revision == self.store.last_seq == (self.told[-1].seq if self.told else 0)

    @invariant()
    def counts_add_up(self) -> None:
        counts = self.call("counts")
        expected = Counter(row.state for row in self.rows)
        assert {s: n for s, n in counts.by_state.items() if n} == dict(expected)
        pending = Counter(r.priority for r in self.rows if r.state is State.PENDING)
        assert {p: n for p, n in counts.pending_by_priority.items() if n} == dict(pending)
        assert counts.waiting == sum(r.waited and r.state in WAITABLE for r in self.rows)

    @invariant()
    def every_transition_was_told_once_and_was_allowed(self) -> None:
        stored = self.call("events_since", 0, 10_000)
        assert stored == self.told
        assert [event.seq for event in stored] == list(range(1, len(stored) + 1))
        states: dict[str, State | None] = {}
        for event in stored:
            before, after = states.get(event.action), State(event.data["state"])
            assert any(
                (r.before, r.after, r.event) == (before, after, event.type) for r in lifecycle.RULES
            )
            states[event.action] = after
        assert states == {row.id: row.state for row in self.rows}

    @invariant()
    def a_key_has_one_holder(self) -> None:
        keys = [row.key for row in self.rows if row.key is not None]
        assert len(keys) == len(set(keys))


class ThreadedQueueMachine(QueueMachine):
    executor = "thread"


def run(machine: type[RuleBasedStateMachine], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def test_random_work_agrees_with_the_model():
    run(QueueMachine, 40)


def test_random_work_through_the_writer_thread_agrees_with_the_model():
    run(ThreadedQueueMachine, 10)
