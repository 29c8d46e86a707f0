"""The display lock under virtual time."""

from __future__ import annotations

import pytest
import structlog
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.support.bounds import bounded
from ui_backends.base import CommandFailed, DisplayDead, FocusLost, StepTimeout
from ui_backends.lock import DisplayLock


class Cleaner:
    """Counts; fails or hangs as long as it is told to."""

    def __init__(self) -> None:
        self.calls = 0
        self.fails = False
        self.hangs = False

    async def __call__(self) -> None:
        self.calls += 1
        if self.hangs:
            await trio.sleep_forever()
        if self.fails:
            raise DisplayDead("no answer")
        await trio.sleep(0.1)


async def fail_with(lock: DisplayLock, error: BaseException, *, presses: bool = True) -> None:
    async with lock.command("failing", presses=presses):
        raise error


@bounded(60)
async def test_commands_never_overlap_and_keep_their_order(autojump_clock: MockClock) -> None:
    lock = DisplayLock(":0")
    log: list[str] = []

    async def command(name: str) -> None:
        async with lock.command(name):
            assert lock.statistics().holder == name
            log.append(f"{name} begins")
            await trio.sleep(1)
            log.append(f"{name} ends")

    async with trio.open_nursery() as nursery:
        for name in "abc":
            nursery.start_soon(command, name)
            await wait_all_tasks_blocked()
    assert log == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]
    assert lock.statistics().holder is None
    assert lock.statistics().commands == 3
    assert lock.statistics().wait_seconds_sum == pytest.approx(3.0)


@bounded(60)
async def test_a_wait_above_two_seconds_is_counted_and_logged(autojump_clock: MockClock) -> None:
    lock = DisplayLock(":0")

    async def hold(seconds: float) -> None:
        async with lock.command("slow"):
            await trio.sleep(seconds)

    with structlog.testing.capture_logs() as logs:
        for seconds in (1.9, 2.1):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(hold, seconds)
                await wait_all_tasks_blocked()
                async with lock.command("waiting"):
                    pass
    assert lock.statistics().waits_over_2s == 1
    assert [(entry["command"], entry["waited"]) for entry in logs] == [("waiting", 2.1)]


@bounded(60)
async def test_a_waiter_that_gives_up_is_counted_and_takes_nothing(
    autojump_clock: MockClock,
) -> None:
    lock = DisplayLock(":0")
    async with lock.command("holder"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_with, lock, AssertionError("must not run"))
            await trio.sleep(3)
            nursery.cancel_scope.cancel()
        assert lock.statistics().holder == "holder"
    assert lock.statistics().waits_over_2s == 1
    async with lock.command("next"):
        pass


@pytest.mark.parametrize("error", [StepTimeout("t"), CommandFailed("c"), ValueError("v")])
@bounded(60)
async def test_a_failed_command_is_cleaned_up_before_the_next(
    autojump_clock: MockClock, error: Exception
) -> None:
    cleaner = Cleaner()
    lock = DisplayLock(":0", cleaner=cleaner)
    with pytest.raises(type(error)):
        await fail_with(lock, error)
    assert cleaner.calls == 1
    async with lock.command("next"):
        assert cleaner.calls == 1
    assert not lock.statistics().dirty


@bounded(60)
async def test_what_pressed_nothing_needs_no_cleaning(autojump_clock: MockClock) -> None:
    cleaner = Cleaner()
    lock = DisplayLock(":0", cleaner=cleaner)
    with pytest.raises(FocusLost):
        await fail_with(lock, FocusLost("f"))
    with pytest.raises(StepTimeout):
        await fail_with(lock, StepTimeout("t"), presses=False)
    assert cleaner.calls == 0


@bounded(60)
async def test_a_cancelled_command_is_cleaned_up_all_the_same(autojump_clock: MockClock) -> None:
    cleaner = Cleaner()
    lock = DisplayLock(":0", cleaner=cleaner)
    with trio.move_on_after(1) as scope:
        async with lock.command("endless"):
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert (cleaner.calls, lock.statistics().dirty) == (1, False)


@bounded(60)
async def test_a_cleaner_that_hangs_is_bounded_and_the_next_holder_cleans_first(
    autojump_clock: MockClock,
) -> None:
    cleaner = Cleaner()
    cleaner.hangs = True
    lock = DisplayLock(":0", cleaner=cleaner)
    begun = trio.current_time()
    with pytest.raises(StepTimeout):
        await fail_with(lock, StepTimeout("t"))
    assert trio.current_time() - begun == pytest.approx(2.0)
    assert lock.statistics().dirty
    cleaner.hangs = False
    async with lock.command("next"):
        assert cleaner.calls == 2
        assert not lock.statistics().dirty


@bounded(60)
async def test_a_command_does_not_run_while_keys_cannot_be_released(
    autojump_clock: MockClock,
) -> None:
    cleaner = Cleaner()
    cleaner.fails = True
    lock = DisplayLock(":0", cleaner=cleaner, dirty=True)
    for _ in range(2):
        with pytest.raises(DisplayDead):
            await fail_with(lock, AssertionError("must not run"))
    assert lock.statistics().cleanings_failed == 2
    cleaner.fails = False
    async with lock.command("works"):
        pass


@bounded(60)
async def test_it_starts_dirty_when_asked(autojump_clock: MockClock) -> None:
    cleaner = Cleaner()
    lock = DisplayLock(":0", dirty=True)
    lock.use_cleaner(cleaner)
    async with lock.command("first"):
        assert cleaner.calls == 1
