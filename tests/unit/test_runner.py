"""One flow: its deadline, its commit point, and what is concluded behind it. Virtual time."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trio
from PIL import Image

from bridge.apps.base import Found, Verdict
from bridge.clock import VirtualWallClock
from bridge.config import Limits
from bridge.errors import BridgeError, LostFence
from bridge.flow import RetryLater
from bridge.model import Lane, NewAction, Priority
from bridge.outcome import Fail, Retry, Success, Unknowable
from bridge.runner import Runner
from bridge.scheduler import Running
from bridge.store import open_store
from tests.support.virtual import KINDS


class Backend:
    """A backend that only counts; `chord` may be told to fail."""

    name = "counting"

    def __init__(self) -> None:
        self.pressed: list[str] = []
        self.pointer = (0, 0)
        self.failure: Exception | None = None

    async def chord(self, *keys, window=None) -> None:
        await trio.sleep(0.01)
        self.pressed.append("+".join(keys))
        if self.failure is not None:
            raise self.failure

    async def pointer_position(self) -> tuple[int, int]:
        await trio.lowlevel.checkpoint()
        return self.pointer

    async def release_all(self) -> list[str]:
        await trio.sleep(0.01)
        return []

    async def capture(self, window=None, region=None) -> Image.Image:
        await trio.sleep(0.01)
        return Image.new("RGB", (4, 4))


class Pictures:
    """Evidence in memory: no thread, so that virtual time works."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Image.Image] = {}

    async def save(self, action_id, name, picture) -> str:
        await trio.lowlevel.checkpoint()
        self.kept[action_id, name] = picture
        return name

    async def load(self, action_id, name):
        await trio.lowlevel.checkpoint()
        return self.kept.get((action_id, name))


class Adapter:
    def __init__(self, seat) -> None:
        self.seat = seat
        self.cleaned = 0

    async def clean_screen(self, hands) -> None:
        await trio.sleep(0.01)
        self.cleaned += 1


@dataclass
class Seat:
    """Everything a runner asks; what it tells is kept."""

    a11y = None

    name: str = "s0"
    needs_clean: bool = False
    closing: bool = False
    launch_id: str | None = "launch-1"
    well: bool = True
    lease_lost: bool = False
    backend: Backend = field(default_factory=Backend)
    told: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.adapter = Adapter(self)

    async def app_gone(self) -> None:
        if self.launch_id is not None:
            await trio.sleep_forever()

    def healthy(self) -> bool:
        return self.well

    def lease_check(self) -> None:
        if self.lease_lost:
            raise LostFence("gone")

    def step(self, action, step) -> None:
        self.told.append(step.name)

    async def stuck(self, action) -> None:
        self.told.append("stuck")

    def give_up(self) -> None:
        self.told.append("gave up")


class Script:
    """A flow that does what the test says."""

    def __init__(self) -> None:
        self.body = self.send
        self.recheck_error: BaseException | None = None
        self.verdict = Verdict(Found.UNKNOWN, evidence={"looked": True})
        self.verified_with = None
        self.before_act = None

    async def send(self, ctx):
        async def recheck() -> None:
            if self.recheck_error is not None:
                raise self.recheck_error

        async def act() -> None:
            if self.before_act is not None:
                await self.before_act()
            await ctx.hands.chord("Return")

        await ctx.commit({"position": 7}, recheck=recheck, act=act)
        return {"message": "m1"}

    async def run(self, ctx):
        return await self.body(ctx)

    async def verify(self, ctx):
        self.verified_with = ctx
        await trio.lowlevel.checkpoint()
        return self.verdict


@dataclass
class Scene:
    runner: Runner
    seat: Seat
    script: Script
    store: object
    running: Running
    pictures: Pictures

    async def row(self):
        return await self.store.get(self.running.action.id)


@asynccontextmanager
async def scene(kind: str = "send_text", *, dry_run: bool = False, **seat_facts):
    clock = VirtualWallClock()
    seat, script, pictures = Seat(**seat_facts), Script(), Pictures()
    params = {"to": "Alice", "text": "x"} if kind == "send_text" else {"text": "x"}
    if dry_run:
        params["dry_run"] = True
    async with open_store(":memory:", on_commit=lambda events: None, executor="inline") as store:
        fence = await store.acquire("demo", "w", clock.now_ms())
        new = NewAction(
            id="a1",
            seat="s0",
            owner="demo",
            kind=kind,
            params=params,
            request_hash="h",
            priority=Priority.NORMAL,
            effect=KINDS[kind].effect,
            trace_id="t",
        )
        await store.submit(new, now=clock.now_ms(), limits=Limits())
        action = await store.claim(
            now=clock.now_ms(),
            fence_of={"demo": fence},
            lanes=[Lane("demo")],
            choose=lambda found: found[0].id,
        )
        runner = Runner(
            seat=seat,
            kinds=KINDS,
            flows={kind: script},
            store=store,
            clock=clock,
            evidence=pictures,
        )
        yield Scene(runner, seat, script, store, Running(action, fence), pictures)


async def test_success(autojump_clock):
    async with scene() as it:
        outcome = await it.runner.carry_out(it.running)
        assert outcome == Success({"message": "m1"}, {})
        assert it.seat.backend.pressed == ["Return"]
        assert [step.name for step in it.running.steps] == ["chord"]
        assert it.seat.told == ["chord"]


async def test_the_mark_is_on_disk_before_the_key(autojump_clock):
    async with scene() as it:
        seen = {}

        async def look() -> None:
            seen.update((await it.row()).mark)
            assert it.seat.backend.pressed == []

        it.script.before_act = look
        await it.runner.carry_out(it.running)
        assert seen == {"position": 7, "launch": "launch-1"}


async def test_a_dry_run_looks_again_and_ends_before_the_key(autojump_clock):
    async with scene(dry_run=True) as it:
        outcome = await it.runner.carry_out(it.running)
        assert outcome == Success({"dry_run": True}, {})
        assert it.seat.backend.pressed == []
        assert (await it.row()).mark is None
        assert it.seat.needs_clean  # the draft is still there


async def test_a_dry_run_fails_as_the_real_one_would(autojump_clock):
    async with scene(dry_run=True) as it:
        it.script.recheck_error = BridgeError("FOCUS_LOST", "moved", executed=False)
        outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Retry)
        assert outcome.error.code == "FOCUS_LOST"


async def test_a_failure_before_the_key_withdraws_the_mark(autojump_clock):
    async with scene() as it:
        it.script.recheck_error = BridgeError("FOCUS_LOST", "a popup")
        outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Retry)
        assert (outcome.error.code, outcome.counts) == ("FOCUS_LOST", True)
        assert it.seat.backend.pressed == []
        assert (await it.row()).mark is None
        assert it.script.verified_with is None
        assert it.seat.needs_clean
        assert ("a1", "failure") in it.pictures.kept


@pytest.mark.parametrize(
    ("found", "kind"),
    [(Found.DONE, Success), (Found.NOT_DONE, Retry), (Found.UNKNOWN, Unknowable)],
)
async def test_after_the_key_only_the_verifier_decides(autojump_clock, found, kind):
    async with scene() as it:
        it.seat.backend.failure = RuntimeError("the tool died")
        it.script.verdict = Verdict(found, {"message": "m1"}, {"looked": True})
        outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, kind)
        assert outcome.evidence["looked"] is True
        assert it.script.verified_with.mark["position"] == 7
        assert it.script.verified_with.app_ended is False
        assert it.seat.needs_clean


async def test_a_verifier_that_fails_leaves_it_uncertain(autojump_clock):
    async with scene() as it:

        async def broken(ctx):
            raise OSError("the history is gone")

        it.seat.backend.failure = RuntimeError("the tool died")
        it.script.verify = broken
        outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Unknowable)
        assert "history is gone" in outcome.evidence["verifier"]


async def test_a_verifier_that_hangs_is_bounded(autojump_clock):
    async with scene() as it:

        async def hangs(ctx):
            await trio.sleep_forever()

        it.seat.backend.failure = RuntimeError("the tool died")
        it.script.verify = hangs
        begun = trio.current_time()
        assert isinstance(await it.runner.carry_out(it.running), Unknowable)
        assert trio.current_time() - begun < 12


async def test_the_verifier_is_told_that_the_app_ended(autojump_clock):
    async with scene() as it:

        async def die() -> None:
            it.seat.launch_id = None
            raise BridgeError("WINDOW_NOT_FOUND", "gone")

        it.script.before_act = die
        it.script.verdict = Verdict(Found.NOT_DONE)
        outcome = await it.runner.carry_out(it.running)
        assert it.script.verified_with.app_ended is True
        assert isinstance(outcome, Retry)
        assert outcome.counts is False


async def test_cancel_is_obeyed_before_the_commit_point(autojump_clock):
    async with scene() as it:
        it.running.cancel_requested = True
        outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Fail)
        assert outcome.error.code == "CANCELLED"
        assert it.seat.backend.pressed == []
        assert (await it.row()).mark is None


async def test_a_cancel_in_the_store_is_seen_at_the_commit_point(autojump_clock):
    async with scene() as it:
        await it.store.cancel("a1", revision=None, now=0, who="test")
        outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Fail)
        assert it.seat.backend.pressed == []


async def test_cancel_after_the_key_changes_nothing(autojump_clock):
    async with scene() as it:

        async def late() -> None:
            it.running.cancel_requested = True

        it.script.before_act = late
        assert isinstance(await it.runner.carry_out(it.running), Success)
        assert it.seat.backend.pressed == ["Return"]


async def test_the_deadline_of_a_flow(autojump_clock):
    async with scene() as it:

        async def slow(ctx):
            await trio.sleep(100)

        it.script.body = slow
        begun = trio.current_time()
        outcome = await it.runner.carry_out(it.running)
        assert trio.current_time() - begun == pytest.approx(30, abs=1)
        assert isinstance(outcome, Retry)
        assert (outcome.error.code, outcome.counts) == ("STEP_TIMEOUT", True)


async def test_an_unhealthy_app_costs_no_attempt(autojump_clock):
    async with scene() as it:

        async def fails(ctx):
            it.seat.launch_id = "launch-2"  # it was restarted under the flow
            raise BridgeError("WINDOW_NOT_FOUND", "gone")

        it.script.body = fails
        outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Retry)
        assert outcome.counts is False


async def test_a_throttle_after_the_key_cools_the_queue(autojump_clock):
    async with scene() as it:

        async def throttled() -> None:
            raise RetryLater("too frequent", queue=True, counts=False)

        it.script.before_act = throttled
        it.script.verdict = Verdict(Found.NOT_DONE)
        outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Retry)
        assert (outcome.queue, outcome.counts) == (True, False)


async def test_a_lost_lease_presses_and_writes_nothing(autojump_clock):
    async with scene() as it:
        it.seat.lease_lost = True
        with pytest.raises(LostFence):
            await it.runner.carry_out(it.running)
        assert it.seat.backend.pressed == []


async def test_a_newer_fence_presses_nothing(autojump_clock):
    async with scene() as it:
        it.running.fence -= 1
        with pytest.raises(LostFence):
            await it.runner.carry_out(it.running)
        assert it.seat.backend.pressed == []


async def test_a_pointer_that_moves_by_itself_stops_the_flow(autojump_clock):
    async with scene() as it:

        async def disturbed(ctx):
            await ctx.hands.chord("ctrl", "f")
            it.seat.backend.pointer = (7, 7)  # a person at the remote viewer
            await ctx.hands.chord("Return")

        it.script.body = disturbed
        outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Retry)
        assert outcome.error.code == "FOCUS_LOST"
        assert it.seat.backend.pressed == ["ctrl+f"]


async def test_shutdown_before_the_key_is_no_attempt(autojump_clock):
    async with scene() as it:

        async def slow(ctx):
            await trio.sleep(100)

        it.script.body = slow
        with trio.move_on_after(1):
            outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Retry)
        assert outcome.counts is False


async def test_shutdown_after_the_key_is_judged(autojump_clock):
    async with scene() as it:

        async def slow() -> None:
            await trio.sleep(100)

        it.script.before_act = slow
        it.script.verdict = Verdict(Found.DONE, {"message": "m1"})
        with trio.move_on_after(1):
            outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Success)


async def test_a_flow_that_ignores_cancellation_makes_the_seat_stuck(autojump_clock):
    async with scene() as it:

        async def deaf(ctx):
            with trio.CancelScope(shield=True):
                await trio.sleep(1000)

        it.script.body = deaf
        async with trio.open_nursery() as nursery:
            nursery.start_soon(it.runner.carry_out, it.running)
            await trio.sleep(300)
            assert it.seat.told == ["stuck", "gave up"]


async def test_clean_screen_first_and_again_after_a_failure(autojump_clock):
    async with scene(needs_clean=True) as it:
        assert isinstance(await it.runner.carry_out(it.running), Success)
        assert it.seat.adapter.cleaned == 1
        assert not it.seat.needs_clean


async def test_a_screen_that_stays_messy_presses_nothing(autojump_clock):
    async with scene(needs_clean=True) as it:

        async def hopeless(hands) -> None:
            raise BridgeError("UI_ERROR", "a dialog stays")

        it.seat.adapter.clean_screen = hopeless
        outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Retry)
        assert it.seat.backend.pressed == []


async def test_left_over_without_a_mark_runs_again(autojump_clock):
    async with scene() as it:
        outcome = await it.runner.judge_left_over(it.running)
        assert isinstance(outcome, Retry)
        assert (outcome.counts, outcome.crashed) == (False, True)
        assert it.script.verified_with is None


@pytest.mark.parametrize(
    ("found", "kind"),
    [(Found.DONE, Success), (Found.NOT_DONE, Retry), (Found.UNKNOWN, Unknowable)],
)
async def test_left_over_with_a_mark_is_verified(autojump_clock, found, kind):
    async with scene() as it:
        it.running.action = await it.store.set_mark(
            "a1", it.running.fence, {"position": 7, "launch": "launch-0"}, [], 0
        )
        it.script.verdict = Verdict(found, {"message": "m1"})
        outcome = await it.runner.judge_left_over(it.running)
        assert isinstance(outcome, kind)
        assert it.script.verified_with.app_ended is True
        assert it.seat.backend.pressed == []


async def test_unknown_kinds_and_bad_rows_fail_and_block_nobody(autojump_clock):
    async with scene() as it:
        it.runner._flows = {}
        outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Fail)
        assert outcome.error.code == "UNSUPPORTED_BY_APP"


async def test_idempotent_kinds_are_tried_again_when_unknown(autojump_clock):
    async with scene("high") as it:
        it.seat.backend.failure = RuntimeError("the tool died")
        outcome = await it.runner.carry_out(it.running)
        assert isinstance(outcome, Retry)
