"""What the bridge stands on goes away: window manager, X server, lock file."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import trio

from bridge.polling import poll
from tests.support.bridge import BridgeProcess, bridge_process


async def ended(it: BridgeProcess) -> int:
    """The exit status of a bridge that ends by itself."""

    async def status() -> int | None:
        assert it.popen is not None
        return it.popen.poll()

    found = await poll(status, 30)
    assert found is not None, it.log()
    return found


async def test_a_window_manager_that_ends_is_started_again(tmp_path):
    with trio.fail_after(90):
        async with bridge_process(tmp_path / "state") as it:
            before = it.record("wm")
            os.kill(before, signal.SIGKILL)

            async def another() -> bool | None:
                return it.record("wm") != before or None

            assert await poll(another, 20)
            # async, so that a flow which the manager's start disturbed is tried again
            assert (await it.send("Alice", "hello", Prefer="respond-async")).status_code == 202
            await it.settled(60)
            assert it.sent() == [("alice", "hello")]


async def test_an_x_server_that_ends_ends_the_bridge_and_the_next_start_works(tmp_path):
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state") as it:
            assert (await it.send("Alice", "before")).status_code == 200
            os.kill(it.record("xvfb"), signal.SIGKILL)
            assert await ended(it) == 1
            assert "the X server has ended" in it.log()
            await it.start()
            assert (await it.send("Alice", "after")).status_code == 200
            assert [text for _, text in it.sent()] == ["before", "after"]


async def test_a_lock_file_that_is_replaced_ends_the_bridge(tmp_path):
    """Another bridge may hold the new one: this one presses nothing more."""
    with trio.fail_after(90):
        async with bridge_process(tmp_path / "state") as it:
            assert (await it.send("Alice", "before")).status_code == 200
            lock = Path(it.state_dir / "deskbridge.db.lock")
            lock.unlink()
            lock.touch()
            assert await ended(it) == 1
            assert "lock" in it.log()
            assert [text for _, text in it.sent()] == ["before"]
