"""One bridge per display."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
import trio
from Xlib import X
from Xlib.display import Display

from tests.support.bounds import bounded
from tests.support.xserver import XServer, end, started, xvfb
from ui_backends.base import DisplayDead
from ui_backends.display import connected
from ui_backends.seatlock import SeatBusy, hold_seat

HOLDER = """
import sys, trio
from ui_backends.seatlock import SeatBusy, hold_seat

async def main():
    try:
        async with hold_seat(sys.argv[1], "s0") as seat:
            print("held", flush=True)
            await trio.sleep_forever()
    except SeatBusy as busy:
        print("busy", busy.pid, flush=True)

trio.run(main)
"""


@bounded(60)
async def test_a_second_holder_is_refused_and_told_the_pid() -> None:
    async with xvfb() as server, hold_seat(server.display, "s0") as seat:
        assert seat.held
        with pytest.raises(SeatBusy) as caught:
            async with hold_seat(server.display, "s0"):
                pass
        assert caught.value.pid == os.getpid()
        async with hold_seat(server.display, "s1"):
            pass
    assert seat.held


@bounded(60)
async def test_a_seat_is_free_again_after_its_end() -> None:
    async with xvfb() as server:
        for _ in range(5):
            async with hold_seat(server.display, "s0") as seat:
                assert seat.held


async def first_line(process: trio.Process) -> str:
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        chunk = await process.stdout.receive_some()
        assert chunk, f"ended with {process.returncode}"
        line += chunk
    return line.decode().strip()


def holder(server: XServer):
    argv = [sys.executable, "-c", HOLDER, server.display]
    return started(argv, env=server.env(), stdout=subprocess.PIPE, stderr=None)


@bounded(60)
async def test_a_seat_is_free_after_kill_9() -> None:
    async with xvfb() as server, holder(server) as process:
        assert await first_line(process) == "held"
        with pytest.raises(SeatBusy) as caught:
            async with hold_seat(server.display, "s0"):
                pass
        assert caught.value.pid == process.pid
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        while True:  # the server notices the closed socket a moment later
            try:
                async with hold_seat(server.display, "s0") as seat:
                    assert seat.held
            except SeatBusy:
                continue
            break


@bounded(60)
async def test_of_several_at_once_one_wins() -> None:
    async with (
        xvfb() as server,
        holder(server) as a,
        holder(server) as b,
        holder(server) as c,
        holder(server) as d,
    ):
        answers = sorted([await first_line(p) for p in (a, b, c, d)])
        assert answers[:3] == [answers[0]] * 3
        assert answers[0].startswith("busy ")
        assert answers[3] == "held"


def steal(display: Display) -> None:
    """Take the selection without asking, as a rude program does."""
    root = display.screen().root
    window = root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
    window.set_selection_owner(display.intern_atom("_DESKBRIDGE_S0"), X.CurrentTime)
    display.sync()


@bounded(60)
async def test_a_robbed_holder_is_told() -> None:
    async with xvfb() as server, hold_seat(server.display, "s0") as seat:
        reasons: list[str] = []

        async def watch() -> None:
            reasons.append(await seat.lost())

        async with trio.open_nursery() as nursery, connected(server.display) as thief:
            nursery.start_soon(watch)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert reasons == []
            await thief.call(steal)
            while not reasons:
                await trio.testing.wait_all_tasks_blocked(0.01)
        assert "another client" in reasons[0]
        assert not seat.held
        assert await seat.lost() == reasons[0]


@bounded(60)
async def test_a_holder_is_told_that_the_display_is_gone() -> None:
    async with xvfb() as server, hold_seat(server.display, "s0") as seat:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(seat.lost)
            await trio.testing.wait_all_tasks_blocked(0.05)
            await end(server.process)
        assert not seat.held


@bounded(60)
async def test_watching_can_be_given_up_and_begun_again() -> None:
    async with xvfb() as server, hold_seat(server.display, "s0") as seat:
        for _ in range(3):
            with trio.move_on_after(0.1) as scope:
                await seat.lost()
            assert scope.cancelled_caught
        assert seat.held


@bounded(60)
async def test_no_display_no_seat() -> None:
    async with xvfb() as server:
        display = server.display
    with pytest.raises(DisplayDead):
        async with hold_seat(display, "s0"):
            pass
