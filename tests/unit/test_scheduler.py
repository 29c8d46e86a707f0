"""The scheduler's rules, in virtual time. Each test stands under the name of its rule."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import trio

from bridge.config import Limits, Pace
from bridge.errors import BridgeError
from bridge.model import LoginState, Priority, State
from bridge.outcome import Fail, Retry, Success, Unknowable
from tests.support.virtual import stage

LONG = 10_000.0


async def test_one_flow_at_a_time(autojump_clock):
    async with stage() as it:
        for n in range(20):
            await it.enqueue(f"m{n}")
        await it.quiet()
    assert [ran.label for ran in it.ran] == [f"m{n}" for n in range(20)]
    for before, after in itertools.pairwise(it.ran):
        assert before.ended <= after.started


async def test_priority_order(autojump_clock):
    """A CRITICAL one overtakes everything that waits, HIGH overtakes NORMAL, LOW comes last."""
    async with stage() as it:
        await it.enqueue("first")
        await trio.sleep(0.5)
        for label, kind in (
            ("low", "low"),
            ("normal", "send_text"),
            ("high", "high"),
            ("critical", "critical"),
        ):
            await it.enqueue(label, kind)
        await it.quiet()
    assert it.order() == ["first", "critical", "high", "normal", "low"]


async def test_critical_starts_before_ten_waiting_texts(autojump_clock):
    async with stage(pace=Pace(send_delay_ms=3000)) as it:
        for n in range(10):
            await it.enqueue(f"m{n}")
        await trio.sleep(0.5)
        caller = it.waited("restart", "critical")
        await caller.done.wait()
        assert it.order()[:2] == ["m0", "restart"]
        # it waits for neither gap nor window: it starts when the running flow ends
        assert it.ran[1].started == pytest.approx(it.ran[0].ended, abs=0.05)


async def test_no_preemption(autojump_clock):
    async with stage() as it:
        it.seconds["slow"] = 20
        await it.enqueue("slow")
        await trio.sleep(1)
        await it.enqueue("urgent", "critical")
        await it.quiet()
    assert it.ran[0].ended - it.ran[0].started == pytest.approx(20)


async def test_ageing_lets_low_through(autojump_clock):
    """After 300 s a LOW action counts as NORMAL, and being older it comes first."""
    async with stage(pace=Pace(send_delay_ms=0, max_per_second=100)) as it:
        it.set_view(account=None)
        await it.enqueue("old low", "low")
        await trio.sleep(301)
        await it.enqueue("normal")
        it.set_view(account="demo")
        await it.quiet()
    assert it.order() == ["old low", "normal"]


async def test_without_ageing_normal_goes_first(autojump_clock):
    async with stage() as it:
        it.set_view(account=None)
        await it.enqueue("young low", "low")
        await trio.sleep(250)
        await it.enqueue("normal")
        it.set_view(account="demo")
        await it.quiet()
    assert it.order() == ["normal", "young low"]


@pytest.mark.parametrize(
    ("first", "second", "gap"),
    [
        ({"to": "Alice"}, {"to": "Alice"}, 1.0),
        ({"to": "Alice"}, {"to": "Bob"}, 3.0),
        ({"to": "Alice", "delay_ms": 7000}, {"to": "Alice"}, 7.0),
        ({"to": "Alice", "delay_ms": 0}, {"to": "Bob"}, 0.0),
    ],
)
async def test_gap(autojump_clock, first, second, gap):
    async with stage(pace=Pace(send_delay_ms=3000)) as it:
        begun = trio.current_time()
        await it.enqueue("a", **first)
        await it.enqueue("b", **second)
        await it.quiet()
    assert it.ran[0].started == pytest.approx(begun, abs=0.05)  # the first starts at once
    assert it.ran[1].started - it.ran[0].ended == pytest.approx(gap, abs=0.05)


async def test_no_gap_after_critical(autojump_clock):
    async with stage(pace=Pace(send_delay_ms=3000)) as it:
        await it.enqueue("restart", "critical")
        await it.enqueue("text")
        await it.quiet()
    assert it.ran[1].started - it.ran[0].ended == pytest.approx(0, abs=0.05)


async def test_same_contact_gap_is_never_longer_than_the_usual(autojump_clock):
    async with stage(pace=Pace(send_delay_ms=200)) as it:
        await it.enqueue("a")
        await it.enqueue("b")
        await it.quiet()
    assert it.ran[1].started - it.ran[0].ended == pytest.approx(0.2, abs=0.05)


async def test_window_delays_and_fails_nobody(autojump_clock):
    async with stage() as it:
        for n in range(25):
            it.seconds[f"m{n}"] = 0.001
            await it.enqueue(f"m{n}")
        await it.quiet()
    starts = [ran.started for ran in it.ran]
    assert len(starts) == 25
    for n, start in enumerate(starts):
        assert sum(1 for other in starts if start <= other < start + 1.0 - 1e-9) <= 10, n


async def test_critical_ignores_a_full_window(autojump_clock):
    async with stage() as it:
        for n in range(10):
            it.seconds[f"m{n}"] = 0
            await it.enqueue(f"m{n}")
        await it.quiet()
        begun = trio.current_time()
        await it.enqueue("urgent", "critical")
        await it.quiet()
    assert it.ran[-1].started == pytest.approx(begun, abs=0.05)


async def test_capacity_of_waiting_callers(autojump_clock):
    async with stage(limits=Limits(max_waiting=2)) as it:
        it.seconds["running"] = 5
        it.waited("running")
        await trio.sleep(0.1)
        callers = []
        for n in range(3):
            callers.append(it.waited(f"w{n}", wait=60))
            await trio.sleep(0.1)  # new tasks start in any order
        await callers[2].done.wait()
        error = callers[2].error
        assert isinstance(error, BridgeError)
        assert (error.code, error.retry_after, error.executed) == ("RATE_LIMITED", 3, False)
        assert it.stats.rate_limited_total == 1
        critical = it.waited("urgent", "critical", wait=60)  # exempt
        await it.quiet()
        await critical.done.wait()
        assert critical.error is None
        assert [caller.error for caller in callers[:2]] == [None, None]


async def test_a_left_place_is_free_at_once(autojump_clock):
    async with stage(limits=Limits(max_waiting=1)) as it:
        it.seconds["running"] = 5
        it.waited("running")
        await trio.sleep(0.1)
        left = it.waited("left", wait=60)
        await trio.sleep(0.1)
        left.scope.cancel()
        await left.done.wait()
        taken = it.waited("taken", wait=60)
        await taken.done.wait()
        assert taken.error is None
    assert it.order() == ["running", "taken"]


async def test_capacity_of_stored_actions(autojump_clock):
    async with stage(limits=Limits(max_pending=2)) as it:
        it.set_view(account=None)
        await it.enqueue("a")
        await it.enqueue("b")
        with pytest.raises(BridgeError) as raised:
            await it.enqueue("c")
        assert raised.value.code == "RATE_LIMITED"
        await it.enqueue("urgent", "critical")
        it.set_view(account="demo")
        await it.quiet()


async def test_waited_not_started_in_time_never_runs(autojump_clock):
    async with stage() as it:
        it.seconds["slow"] = 20
        await it.enqueue("slow")
        await trio.sleep(0.1)
        caller = it.waited("late", wait=5, idempotency_key="k")
        begun = trio.current_time()
        await caller.done.wait()
        error = caller.error
        assert isinstance(error, BridgeError)
        assert (error.code, error.executed) == ("TIMEOUT", False)
        assert error.retry_after == 1
        assert caller.answered_at - begun == pytest.approx(5, abs=0.1)
        await it.quiet()
        assert it.order() == ["slow"]
        assert it.stats.timeout_total == 1
        # its key works again
        again = it.waited("late", wait=5, idempotency_key="k")
        await again.done.wait()
        assert again.error is None
    assert it.order() == ["slow", "late"]


async def test_retry_after_of_a_timeout_follows_the_gap(autojump_clock):
    async with stage(pace=Pace(send_delay_ms=4000)) as it:
        it.seconds["slow"] = 20
        await it.enqueue("slow")
        caller = it.waited("late", wait=2)
        await caller.done.wait()
        assert isinstance(caller.error, BridgeError)
        assert caller.error.retry_after == 4


async def test_running_at_the_end_of_the_wait(autojump_clock):
    async with stage() as it:
        it.seconds["slow"] = 20
        caller = it.waited("slow", wait=5, idempotency_key="k")
        await caller.done.wait()
        error = caller.error
        assert isinstance(error, BridgeError)
        assert (error.code, error.executed) == ("TIMEOUT", "running")
        assert error.action_id is not None
        await it.quiet()
        row = await it.store.get(error.action_id)
        assert row.state is State.SUCCEEDED
        found = await it.submitter.execute(it.new("slow", idempotency_key="k"), 5)
        assert found.id == error.action_id
    assert it.order() == ["slow"]


async def test_a_result_in_the_same_instant_wins(autojump_clock):
    async with stage() as it:
        it.seconds["exact"] = 5.0
        caller = it.waited("exact", wait=5.0)
        await caller.done.wait()
    assert caller.error is None
    assert caller.result is not None
    assert caller.result.state is State.SUCCEEDED


async def test_a_caller_who_hangs_up_takes_a_pending_action_along(autojump_clock):
    async with stage() as it:
        it.seconds["slow"] = 5
        await it.enqueue("slow")
        await trio.sleep(0.1)
        caller = it.waited("gone", wait=60, idempotency_key="k")
        await trio.sleep(0.1)
        caller.scope.cancel()
        await caller.done.wait()
        await it.quiet()
        assert it.order() == ["slow"]
        assert await it.store.by_key("demo", "k") is None


async def test_only_the_last_waiter_takes_it_along(autojump_clock):
    async with stage() as it:
        it.seconds["slow"] = 5
        await it.enqueue("slow")
        await trio.sleep(0.1)
        one = it.waited("shared", wait=60, idempotency_key="k")
        two = it.waited("shared", wait=60, idempotency_key="k")
        await trio.sleep(0.1)
        one.scope.cancel()
        await two.done.wait()
        assert two.error is None
    assert it.order() == ["slow", "shared"]


async def test_the_first_of_two_waiters_to_time_out_cancels_nothing(autojump_clock):
    async with stage() as it:
        it.seconds["slow"] = 10
        await it.enqueue("slow")
        await trio.sleep(0.1)
        short = it.waited("shared", wait=2, idempotency_key="k")
        long = it.waited("shared", wait=60, idempotency_key="k")
        await short.done.wait()
        assert isinstance(short.error, BridgeError)
        assert (short.error.code, short.error.executed) == ("TIMEOUT", None)
        await long.done.wait()
        assert long.error is None


async def test_waited_gets_one_attempt(autojump_clock):
    problem = BridgeError("FOCUS_LOST", "moved")
    async with stage() as it:
        it.script["once"] = [Retry(problem)]
        caller = it.waited("once")
        await caller.done.wait()
        assert caller.result is not None
        assert caller.result.state is State.FAILED
        assert caller.result.error is not None
        assert caller.result.error["executed"] is False
    assert it.order() == ["once"]


async def test_async_is_tried_again_within_its_budget(autojump_clock):
    problem = BridgeError("UI_ERROR", "odd")
    async with stage() as it:
        it.script["always"] = [Retry(problem)] * 9
        action = await it.enqueue("always")
        await it.quiet()
        row = await it.store.get(action.id)
    assert it.order() == ["always"] * 5
    assert (row.state, row.attempt) == (State.FAILED, 5)


async def test_uncounted_failures_use_nothing_up(autojump_clock):
    problem = BridgeError("APP_NOT_READY", "restarting")
    async with stage() as it:
        it.script["unlucky"] = [Retry(problem, after=1.0, counts=False)] * 12
        action = await it.enqueue("unlucky")
        await it.quiet()
        row = await it.store.get(action.id)
    assert (row.state, row.attempt) == (State.SUCCEEDED, 0)
    assert len(it.ran) == 13


async def test_a_retried_action_keeps_its_place(autojump_clock):
    problem = BridgeError("UI_ERROR", "odd")
    async with stage() as it:
        it.script["a"] = [Retry(problem, after=0.0)]
        for label in "abc":
            await it.enqueue(label)
        await it.quiet()
    assert it.order() == ["a", "a", "b", "c"]


async def test_uncertain_is_left_to_a_person(autojump_clock):
    async with stage() as it:
        it.script["who knows"] = [Unknowable(BridgeError("UNCERTAIN", "?"), {"seen": "nothing"})]
        action = await it.enqueue("who knows")
        await it.quiet()
        row = await it.store.get(action.id)
    assert row.state is State.UNCERTAIN
    assert row.evidence["seen"] == "nothing"
    assert it.order() == ["who knows"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"display_alive": False}, "DISPLAY_DEAD"),
        ({"app_up": False}, "APP_NOT_READY"),
        ({"login": LoginState.STARTING}, "APP_NOT_READY"),
        ({"login": LoginState.OFFLINE}, "APP_NOT_READY"),
        ({"login": LoginState.QR}, "NOT_LOGGED_IN"),
        ({"login": LoginState.CONFIRM}, "NOT_LOGGED_IN"),
        ({"login": LoginState.LOGGED_OUT}, "NOT_LOGGED_IN"),
        ({"account": "somebody else"}, "NOT_LOGGED_IN"),
        ({"login": LoginState.BLOCKED}, "PAUSED"),
        ({"hands_on": True}, "HANDS_ON"),
        ({"paused": True}, "PAUSED"),
        ({"cooldown_until_ms": 4_000_000_000_000}, "COOLDOWN"),
    ],
)
async def test_needs_refuse_a_waited_action_at_once(autojump_clock, change, code):
    async with stage() as it:
        it.set_view(**change)
        begun = trio.current_time()
        caller = it.waited("no")
        await caller.done.wait()
        assert isinstance(caller.error, BridgeError)
        assert (caller.error.code, caller.error.executed) == (code, False)
        assert caller.answered_at == pytest.approx(begun, abs=0.05)
        assert (await it.store.counts()).by_state.get(State.PENDING, 0) == 0


async def test_refusals_come_in_their_order(autojump_clock):
    everything = {
        "display_alive": False,
        "app_up": False,
        "login": LoginState.LOGGED_OUT,
        "hands_on": True,
        "paused": True,
        "cooldown_until_ms": 4_000_000_000_000,
    }
    cures = [
        ("DISPLAY_DEAD", {"display_alive": True}),
        ("APP_NOT_READY", {"app_up": True}),
        ("NOT_LOGGED_IN", {"login": LoginState.LOGGED_IN}),
        ("HANDS_ON", {"hands_on": False}),
        ("PAUSED", {"paused": False}),
        ("COOLDOWN", {"cooldown_until_ms": None}),
    ]
    async with stage() as it:
        it.set_view(**everything)
        for code, cure in cures:
            caller = it.waited("no")
            await caller.done.wait()
            assert isinstance(caller.error, BridgeError)
            assert caller.error.code == code
            it.set_view(**cure)
        caller = it.waited("yes")
        await caller.done.wait()
        assert caller.error is None


async def test_an_async_action_waits_for_what_it_needs(autojump_clock):
    async with stage() as it:
        it.set_view(login=LoginState.LOGGED_OUT)
        await it.enqueue("later")
        await trio.sleep(60)
        assert it.order() == []
        it.set_view(login=LoginState.LOGGED_IN)
        await it.quiet()
    assert it.order() == ["later"]


async def test_another_account_does_not_send_it(autojump_clock):
    async with stage() as it:
        it.set_view(login=LoginState.LOGGED_OUT)
        await it.enqueue("for demo")
        it.set_view(login=LoginState.LOGGED_IN, account="other", owner="other")
        await trio.sleep(60)
        assert it.order() == []
        it.set_view(account="demo", owner="demo")
        await it.quiet()
    assert it.order() == ["for demo"]


async def test_reads_and_critical_run_while_paused(autojump_clock):
    async with stage() as it:
        it.set_view(paused=True, hands_on=True)
        await it.enqueue("text")
        await it.enqueue("picture", "look")
        await it.enqueue("restart", "critical")
        await trio.sleep(30)
        assert it.order() == ["restart", "picture"]


async def test_signed_out_seat_still_takes_pictures(autojump_clock):
    async with stage() as it:
        it.set_view(login=LoginState.QR, account=None, owner=None)
        caller = it.waited("picture", "look")
        await caller.done.wait()
        assert caller.error is None


async def test_dead_window_fails_waiting_callers_and_new_ones(autojump_clock):
    async with stage() as it:
        it.seconds["slow"] = 4
        await it.enqueue("slow")
        await trio.sleep(0.1)
        waiting = it.waited("waiting", wait=60, idempotency_key="k")
        await it.enqueue("async")
        await trio.sleep(0.1)
        await it.scheduler.mark_app_dead(15)
        await waiting.done.wait()
        row = waiting.result
        assert row is not None
        assert (row.state, row.idempotency_key) == (State.FAILED, None)
        assert row.error is not None
        assert (row.error["code"], row.error["retry_after"]) == ("APP_NOT_READY", 5)
        new = it.waited("new")
        await new.done.wait()
        assert isinstance(new.error, BridgeError)
        assert (new.error.code, new.error.retry_after) == ("APP_NOT_READY", 5)
        assert it.stats.fast_fail_total == 2
        urgent = it.waited("urgent", "critical", wait=60)
        await urgent.done.wait()
        assert urgent.error is None
        await trio.sleep(5)
        assert it.order() == ["slow", "urgent"]  # the async one is held
        await it.quiet()
        assert it.order() == ["slow", "urgent", "async"]
        assert trio.current_time() >= 15


async def test_dead_window_ends_when_a_newer_app_is_ready(autojump_clock):
    async with stage() as it:
        launched_before = trio.current_time()
        await trio.sleep(1)
        await it.scheduler.mark_app_dead(15)
        it.scheduler.app_ready(launched_before)
        caller = it.waited("too early")
        await caller.done.wait()
        assert isinstance(caller.error, BridgeError)
        await trio.sleep(2)
        it.scheduler.app_ready(trio.current_time())
        caller = it.waited("in time")
        await caller.done.wait()
        assert caller.error is None


async def test_drain_of_an_empty_queue(autojump_clock):
    async with stage() as it:
        assert await it.scheduler.drain(1.0) is True


async def test_drain_waits_for_what_was_there(autojump_clock):
    async with stage() as it:
        await it.enqueue("running")
        await it.enqueue("pending")
        await trio.sleep(0.1)
        begun = trio.current_time()
        assert await it.scheduler.drain(5.0) is True
        assert trio.current_time() - begun == pytest.approx(1.9, abs=0.1)


async def test_drain_gives_up(autojump_clock):
    async with stage() as it:
        it.seconds["slow"] = 10
        await it.enqueue("slow")
        await trio.sleep(0.1)
        begun = trio.current_time()
        assert await it.scheduler.drain(2.0) is False
        assert trio.current_time() - begun == pytest.approx(2.0, abs=0.05)


async def test_drain_leaves_what_comes_meanwhile_pending(autojump_clock):
    async with stage() as it:
        it.seconds["there"] = 3
        await it.enqueue("there")
        await trio.sleep(0.1)
        drained = trio.Event()

        async def drain() -> None:
            assert await it.scheduler.drain(60.0)
            assert it.order() == ["there"]
            drained.set()

        it.nursery.start_soon(drain)
        await trio.sleep(0.1)
        await it.enqueue("new")
        await drained.wait()
        await it.quiet()
    assert it.order() == ["there", "new"]


async def test_drain_with_the_app_away_waits_for_the_running_flow_only(autojump_clock):
    async with stage() as it:
        it.seconds["running"] = 3
        await it.enqueue("running")
        await it.enqueue("pending")
        await trio.sleep(0.1)
        it.set_view(app_up=False)
        assert await it.scheduler.drain(60.0) is True
        assert it.order() == ["running"]


async def test_figures(autojump_clock):
    async with stage(pace=Pace(send_delay_ms=0)) as it:
        for label, kind in (("c", "critical"), ("h", "high"), ("n", "send_text"), ("l", "low")):
            caller = it.waited(label, kind)
            await caller.done.wait()
        figures = it.stats.snapshot(0)
    assert figures["executed_total"] == 4
    assert figures["executed_by_priority"] == {p.name: 1 for p in Priority}
    assert figures["exec_duration_ms_sum"] == pytest.approx(4000, abs=50)
    assert figures["wait_duration_ms_sum"] == pytest.approx(0, abs=50)


async def test_wait_figure_is_queue_time_only(autojump_clock):
    async with stage() as it:
        it.seconds["a"] = 10
        await it.enqueue("a")
        await it.enqueue("b")
        await it.quiet()
        assert it.stats.wait_duration_ms_sum == pytest.approx(10_000, abs=100)


async def test_a_failing_flow_does_not_end_the_worker(autojump_clock):
    async def explode(running):
        raise RuntimeError("a defect in the runner")

    async with stage() as it:
        it.script["bad"] = [explode]
        bad = it.waited("bad")
        await trio.sleep(0.1)
        await it.enqueue("good")
        await it.quiet()
        await bad.done.wait()
        assert it.order() == ["bad", "good"]
        assert bad.result is not None
        assert bad.result.state is State.FAILED


async def test_a_permanent_failure_blocks_nobody(autojump_clock):
    async with stage() as it:
        it.script["nobody"] = [Fail(BridgeError("CONTACT_NOT_FOUND", "no such contact"))]
        action = await it.enqueue("nobody")
        await it.enqueue("next")
        await it.quiet()
        row = await it.store.get(action.id)
    assert row.state is State.FAILED
    assert it.order() == ["nobody", "next"]


async def test_recovery_runs_a_reset_row_again_and_judges_a_marked_one(autojump_clock, tmp_path):
    """A process dies with flows running; the next one judges them before it starts anything."""
    url = str(tmp_path / "q.db")
    async with stage(url=url) as it:
        it.seconds["running"] = LONG
        await it.enqueue("running")
        await it.enqueue("pending")
        # a waited action whose caller dies with the process, so that nobody takes it back
        orphan = it.new("orphan", waited=True, start_by=it.clock.now_ms() + 10**9)
        orphan = replace(orphan, idempotency_key="k")
        await it.store.submit(orphan, now=it.clock.now_ms(), limits=Limits())
        await trio.sleep(1)
        assert it.order() == ["running"]
    async with stage(url=url, start=False) as it:
        it.verdicts["running"] = Success({"found": True})
        await it.nursery.start(it.scheduler.run)
        await it.quiet()
        assert it.judged == ["running"]
        row = await it.store.get(orphan.id)
        assert (row.state, row.idempotency_key) == (State.CANCELLED, None)
    assert it.order() == ["pending"]


async def test_a_row_whose_process_died_before_its_mark_runs_again(autojump_clock, tmp_path):
    url = str(tmp_path / "q.db")
    problem = BridgeError("APP_NOT_READY", "the bridge stopped while this ran")
    async with stage(url=url) as it:
        it.seconds["running"] = LONG
        action = await it.enqueue("running")
        await it.enqueue("next")
        await trio.sleep(1)
    async with stage(url=url, start=False) as it:
        it.verdicts["running"] = Retry(problem, after=0.0, counts=False, crashed=True)
        await it.nursery.start(it.scheduler.run)
        await it.quiet()
        row = await it.store.get(action.id)
    assert it.order() == ["running", "next"]  # it kept its place
    assert (row.state, row.attempt, row.crashes) == (State.SUCCEEDED, 0, 1)


async def test_an_account_that_is_seen_later_is_recovered_too(autojump_clock, tmp_path):
    url = str(tmp_path / "q.db")
    async with stage(url=url) as it:
        it.seconds["running"] = LONG
        await it.enqueue("running")
        await trio.sleep(1)
    async with stage(url=url, start=False) as it:
        it.verdicts["running"] = Success({"found": True})
        it.view = replace(it.view, account=None, owner=None)  # nobody known at this seat
        await it.nursery.start(it.scheduler.run)
        await trio.sleep(10)
        assert it.judged == []
        it.set_view(account="demo", owner="demo")
        await it.quiet()
        assert it.judged == ["running"]


async def test_a_row_that_kills_its_process_is_given_up(autojump_clock, tmp_path):
    url = str(tmp_path / "q.db")
    problem = BridgeError("APP_NOT_READY", "the bridge stopped while this ran")
    for life in range(30):
        async with stage(url=url, start=False) as it:
            it.seconds["deadly"] = LONG
            it.verdicts["deadly"] = Retry(problem, after=0.0, counts=False, crashed=True)
            if not life:
                deadly = await it.enqueue("deadly")
            await it.nursery.start(it.scheduler.run)
            await trio.sleep(1)
            row = await it.store.get(deadly.id)
            if row.final:
                break
    assert (row.state, life) == (State.FAILED, 20)


async def test_shutdown_starts_nothing_new_and_keeps_async_work(autojump_clock):
    async with stage() as it:
        it.seconds["running"] = 3
        await it.enqueue("running")
        await it.enqueue("kept")
        await trio.sleep(0.1)
        it.set_view(closing=True)
        with pytest.raises(BridgeError) as raised:
            await it.enqueue("refused")
        assert raised.value.code == "SHUTTING_DOWN"
        await it.scheduler.stop_claiming()
        assert it.order() == ["running"]
        await trio.sleep(60)
        assert it.order() == ["running"]
        assert (await it.store.counts()).by_state[State.PENDING] == 1


async def test_a_throttle_cools_the_account_and_costs_nobody_an_attempt(autojump_clock):
    problem = BridgeError("UI_ERROR", "too frequent")
    async with stage() as it:
        it.script["limited"] = [Retry(problem, queue=True, counts=False)] * 3
        action = await it.enqueue("limited")
        await it.enqueue("behind")
        await trio.sleep(10)
        assert it.order() == ["limited"]
        assert it.scheduler.view().cooldown_until_ms is not None
        picture = it.waited("picture", "look")  # a read goes on
        await picture.done.wait()
        assert picture.error is None
        refused = it.waited("refused")
        await refused.done.wait()
        assert isinstance(refused.error, BridgeError)
        assert refused.error.code == "COOLDOWN"
        await it.quiet()
        row = await it.store.get(action.id)
    assert [label for label in it.order() if label != "picture"] == ["limited"] * 4 + ["behind"]
    times = [ran.started for ran in it.ran if ran.label == "limited"]
    waits = [after - before for before, after in itertools.pairwise(times)]
    for wait, usual in zip(waits, (30, 60, 120), strict=True):
        assert usual * 0.8 <= wait - 1 <= usual * 1.2 + 1
    assert row.attempt == 0


async def test_a_service_that_names_its_pause_is_believed_up_to_half_an_hour(autojump_clock):
    problem = BridgeError("UI_ERROR", "too frequent")
    async with stage() as it:
        it.script["limited"] = [Retry(problem, after=86_400, queue=True, counts=False)]
        await it.enqueue("limited", expires_at=None)
        await it.quiet()
    assert it.ran[1].started - it.ran[0].ended == pytest.approx(1800, abs=6)
