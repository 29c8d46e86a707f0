"""An X server that does not answer, or is gone: bounded, told, and survived."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from tests.support.bounds import bounded, until
from tests.support.textwindow import TextWindow
from tests.support.xserver import XServer, end, xvfb
from ui_backends import windows as x_windows
from ui_backends.base import Backend, DisplayDead, StepTimeout, UiError
from ui_backends.display import autorepeat, display_answers, wm_running
from ui_backends.process import STATE_ID
from ui_backends.xconn import XConnection
from ui_backends.xdotool import XdotoolBackend

Command = Callable[[Backend, int], Awaitable[object]]

COMMANDS: dict[str, Command] = {
    "windows": lambda b, _w: b.windows(),
    "window": lambda b, w: b.window(w),
    "active_window": lambda b, _w: b.active_window(),
    "capture": lambda b, _w: b.capture(),
    "capture window": lambda b, w: b.capture(w),
    "click": lambda b, w: b.click(1, 1, w),
    "chord": lambda b, w: b.chord("a", window=w),
    "paste_text": lambda b, w: b.paste_text(w, "text"),
    "activate": lambda b, w: b.activate(w),
    "ping": lambda b, w: b.ping(w),
    "clipboard": lambda b, _w: b.clipboard(),
    "release_all": lambda b, _w: b.release_all(),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
@bounded(60)
async def test_a_frozen_server_bounds_every_command(
    server: XServer, window: TextWindow, command: Command
) -> None:
    async with XdotoolBackend(server.display, state_id="frozen", timeout=1) as backend:
        await backend.paste_text(window.id, "before ")
        await window.shows("before ")
        server.freeze()
        begun = trio.current_time()
        with pytest.raises((DisplayDead, StepTimeout)):
            await command(backend, window.id)
        # one second for the command, two for the keys that cannot be released
        assert trio.current_time() - begun < 4.5
        server.thaw()
        await backend.activate(window.id)
        await until(lambda: focused(backend, window))
        await window.settle()
        kept = window.text
        await backend.paste_text(window.id, "after")
        await window.shows(kept + "after")
        assert await backend.release_all() == []


async def focused(backend: Backend, window: TextWindow) -> bool:
    return await backend.active_window() == window.id


@bounded(60)
async def test_a_capture_of_a_frozen_display_ends_at_five_seconds_and_its_process_is_gone(
    server: XServer, window: TextWindow
) -> None:
    state_id = f"frozen-capture-{os.getpid()}"
    async with XdotoolBackend(server.display, state_id=state_id) as backend:
        await backend.windows()
        server.freeze()
        begun = trio.current_time()
        with pytest.raises(StepTimeout):
            await backend.capture()
        assert 4.9 < trio.current_time() - begun < 5.6
        assert marked_processes(state_id) == []
        server.thaw()
        assert (await backend.capture()).size == (1280, 800)


def marked_processes(state_id: str) -> list[str]:
    """Names of the processes that carry a state id."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if f"{STATE_ID}={state_id}".encode() in (folder / "environ").read_bytes():
                    found.append((folder / "comm").read_text())
            except OSError:
                continue
    return found


@bounded(60)
async def test_alive_tells_a_frozen_and_a_dead_server_within_its_time(server: XServer) -> None:
    async with XdotoolBackend(server.display, state_id="alive") as backend:
        assert await backend.alive()
        server.freeze()
        begun = trio.current_time()
        assert not await backend.alive()
        assert 1.9 < trio.current_time() - begun < 3
        server.thaw()
        assert await backend.alive()
        await end(server.process)
        assert not await backend.alive()
        with pytest.raises(DisplayDead):
            await backend.windows()
        with pytest.raises(DisplayDead):
            await backend.capture()


@bounded(60)
async def test_alive_does_not_wait_for_a_command_that_holds_the_display(
    server: XServer, backend: Backend
) -> None:
    assert isinstance(backend, XdotoolBackend)
    async with backend.lock.command("held"):
        with trio.fail_after(2):
            assert await backend.alive()


@bounded(60)
async def test_closing_a_backend_on_a_frozen_server_is_bounded(server: XServer) -> None:
    backend = XdotoolBackend(server.display, state_id="close", timeout=0.5)
    await backend.windows()
    server.freeze()
    with pytest.raises(UiError):
        await backend.windows()
    begun = trio.current_time()
    await backend.aclose()
    assert trio.current_time() - begun < 5
    with pytest.raises(DisplayDead):
        await backend.windows()


@bounded(60)
async def test_a_cancelled_read_ends_soon_and_leaves_no_thread() -> None:
    async with xvfb() as server:
        connection = XConnection(server.display)
        await connection.call(x_windows.screen_size)
        server.freeze()
        before = threading.active_count()
        with trio.move_on_after(0.2) as scope:
            await connection.call(x_windows.screen_size, timeout=30)
        assert scope.cancelled_caught
        assert trio.current_time() - scope.deadline < 1.5
        server.thaw()
        for _ in range(3):
            assert await connection.call(x_windows.screen_size) == (1280, 800)
        assert threading.active_count() <= before
        await connection.aclose()


@bounded(60)
async def test_an_unrelated_error_of_the_work_passes_through() -> None:
    async with xvfb() as server:
        connection = XConnection(server.display)
        with pytest.raises(ZeroDivisionError):
            await connection.call(lambda _d: 1 / 0)
        assert await connection.call(x_windows.screen_size) == (1280, 800)
        await connection.aclose()


@bounded(60)
async def test_displays_that_do_not_exist() -> None:
    async with xvfb() as server:
        display = server.display
        assert await display_answers(display)
    assert not await display_answers(display)
    assert not await wm_running(display)
    with pytest.raises(DisplayDead):
        await autorepeat(display)
    with pytest.raises(DisplayDead):
        await XConnection(display).call(x_windows.screen_size)
    with pytest.raises(DisplayDead):
        await XConnection("nonsense").call(x_windows.screen_size)
    assert not await display_answers("nonsense")


@bounded(60)
async def test_the_connection_comes_back_with_a_new_server() -> None:
    async with xvfb() as first:
        connection = XConnection(first.display)
        assert await connection.call(x_windows.screen_size) == (1280, 800)
    async with xvfb() as second:
        # the old connection's socket is known to be closed, whichever display it was
        connection.display = second.display
        assert await connection.call(x_windows.screen_size) == (1280, 800)
        await connection.aclose()
