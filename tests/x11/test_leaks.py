"""Nothing grows: descriptors, threads, X clients, child processes."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tests.support.bounds import bounded
from tests.support.textwindow import TextWindow
from tests.support.xserver import XServer
from ui_backends.base import Backend, FocusLost, OutOfBounds, Region
from ui_backends.display import connected
from ui_backends.xdotool import XdotoolBackend


async def x_clients(server: XServer) -> int:
    """Connections that the X server counts, without the one that asks."""
    async with connected(server.display) as connection:
        return await connection.call(lambda d: len(d.res_query_clients().clients)) - 1


def resources() -> tuple[int, int, int]:
    """Open descriptors, threads and children of this process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return len(os.listdir("/proc/self/fd")), threading.active_count(), len(children)


async def twenty_commands(backend: Backend, window: TextWindow) -> None:
    for n in range(2):
        await backend.windows()
        await backend.window(window.id)
        await backend.active_window()
        await backend.ping(window.id)
        await backend.capture(window.id, Region(0, 0, 10, 10))
        await backend.click(n, n, window.id)
        await backend.chord("End", window=window.id)
        await backend.paste_text(window.id, "x")
        with pytest.raises(OutOfBounds):
            await backend.click(5000, 0, window.id)
        with pytest.raises(FocusLost):
            await backend.chord("a", window=1)


@bounded(120)
async def test_two_hundred_commands_leave_nothing_behind(
    server: XServer, backend: Backend, window: TextWindow
) -> None:
    await twenty_commands(backend, window)
    before, clients = resources(), await x_clients(server)
    for _ in range(10):
        await twenty_commands(backend, window)
    await window.shows("x" * 22)
    after = resources()
    assert after[0] == before[0]
    assert after[1] <= before[1] + 1  # Trio keeps idle threads for a while
    assert after[2] == before[2]
    assert await x_clients(server) == clients


@bounded(120)
async def test_closed_backends_leave_nothing_behind(server: XServer, window: TextWindow) -> None:
    async def once() -> None:
        async with XdotoolBackend(server.display, state_id="leak") as backend:
            await backend.paste_text(window.id, "y")
            await backend.alive()

    await once()
    before, clients = resources(), await x_clients(server)
    for _ in range(10):
        await once()
    after = resources()
    assert after[0] == before[0]
    assert after[1] <= before[1] + 1
    assert await x_clients(server) == clients


@bounded(120)
async def test_cut_connections_leave_nothing_behind(server: XServer) -> None:
    async def once(backend: XdotoolBackend) -> None:
        server.freeze()
        with pytest.raises(Exception, match="did not answer"):
            await backend.windows()
        server.thaw()
        await backend.windows()

    async with XdotoolBackend(server.display, state_id="cut", timeout=0.3) as backend:
        await backend.windows()
        await once(backend)
        before, clients = resources(), await x_clients(server)
        for _ in range(5):
            await once(backend)
        after = resources()
        assert after[0] == before[0]
        assert after[1] <= before[1] + 1
        assert await x_clients(server) == clients
