"""Finding windows, their facts, focus, activation, closing, pings."""

from __future__ import annotations

import os
import signal

import pytest
import trio
from Xlib import X
from Xlib.display import Display

from tests.support.bounds import bounded, until
from tests.support.textwindow import TextWindow, announce_pings, is_gone
from tests.support.xserver import XServer, xvfb
from tests.x11.conftest import World
from ui_backends.base import Backend, Ping, Window, WindowNotFound
from ui_backends.display import wm_running
from ui_backends.xconn import XConnection
from ui_backends.xdotool import XdotoolBackend


@bounded(60)
async def test_facts(backend: Backend, windows: World) -> None:
    opened = await windows.open("--class", "Special", "--geometry", "321x123+50+60", title="名前 é")
    facts = await backend.window(opened.id)
    assert facts.title == "名前 é"
    assert facts.wm_class == ("special", "Special")
    assert facts.pid == opened.process.pid
    assert (facts.region.width, facts.region.height) == (321, 123)
    assert facts.viewable
    assert facts.managed
    assert facts.transient_for is None


@bounded(60)
async def test_twins_are_told_apart_by_process(backend: Backend, windows: World) -> None:
    one, two = await windows.open(title="twin"), await windows.open(title="twin")
    twins = [w for w in await backend.windows() if w.title == "twin"]
    assert {w.pid for w in twins} == {one.process.pid, two.process.pid}
    assert len({w.id for w in twins}) == 2
    await backend.activate(one.id)
    await backend.paste_text(one.id, "for one")
    await one.shows("for one")
    assert two.text == ""


@bounded(60)
async def test_a_hidden_window_is_not_found(backend: Backend, windows: World) -> None:
    hidden = await windows.open("--hidden", title="twin")
    shown = await windows.open(title="twin")
    twins = [w for w in await backend.windows() if w.title == "twin"]
    assert [w.id for w in twins] == [shown.id]
    with pytest.raises(WindowNotFound):
        await backend.activate(hidden.events("ready")[0]["window"])


@bounded(60)
async def test_a_popup_names_its_window(backend: Backend, window: TextWindow) -> None:
    await window.tell("popup")

    async def popup() -> Window | None:
        return next((w for w in await backend.windows() if w.title == "popup"), None)

    found = await until(popup)
    assert isinstance(found, Window)
    assert found.transient_for == window.id
    assert found.pid == window.process.pid


@bounded(60)
async def test_activation_moves_the_focus(backend: Backend, windows: World) -> None:
    one, two = await windows.open(title="one"), await windows.open(title="two")
    assert await backend.active_window() == two.id
    await backend.activate(one.id)
    assert await backend.active_window() == one.id
    await backend.activate(one.id)
    assert await backend.active_window() == one.id


@bounded(60)
async def test_without_a_window_manager(tmp_path: object) -> None:
    async with xvfb() as server, XdotoolBackend(server.display, state_id="bare") as backend:
        assert not await wm_running(server.display)
        assert await backend.windows() == []
        assert await backend.active_window() is None
        with pytest.raises(WindowNotFound):
            await backend.activate(0x200001)


@bounded(60)
async def test_closing(backend: Backend, window: TextWindow) -> None:
    await backend.close_window(window.id)
    await window.seen("closed")
    await until(lambda: is_gone(backend, window.id))
    for ask in (backend.window, backend.close_window, backend.activate, backend.ping):
        with pytest.raises(WindowNotFound):
            await ask(window.id)


@bounded(60)
async def test_ping(server: XServer, backend: Backend, window: TextWindow) -> None:
    assert await backend.ping(window.id) is Ping.ALIVE
    os.kill(window.process.pid, signal.SIGSTOP)
    # Tk does not announce the protocol, so its silence proves nothing
    assert await backend.ping(window.id, timeout=0.3) is Ping.UNSUPPORTED
    os.kill(window.process.pid, signal.SIGCONT)
    assert await backend.ping(window.id) is Ping.ALIVE


@bounded(60)
async def test_a_dialog_says_so_and_has_the_focus(backend: Backend, window: TextWindow) -> None:
    await window.tell("dialog")
    await window.seen("done")
    await until(lambda: dialog_has_focus(backend, window))
    dialog = await backend.active_window()
    assert dialog is not None
    assert (await backend.window(dialog)).dialog


async def dialog_has_focus(backend: Backend, window: TextWindow) -> bool:
    return await backend.active_window() not in (window.id, None)


@bounded(60)
async def test_an_app_that_announces_pings_and_is_stopped_is_silent(
    server: XServer, backend: Backend, windows: World
) -> None:
    window = await windows.open()
    await announce_pings(server, window.id)
    assert await backend.ping(window.id) is Ping.ALIVE
    os.kill(window.process.pid, signal.SIGSTOP)
    begun = trio.current_time()
    assert await backend.ping(window.id, timeout=0.3) is Ping.SILENT
    assert 0.3 <= trio.current_time() - begun < 1
    os.kill(window.process.pid, signal.SIGCONT)
    # the late answer to the first ping is not taken for one to the next
    assert await backend.ping(window.id) is Ping.ALIVE


@bounded(60)
async def test_activation_sets_the_focus_that_a_manager_believes_to_be_there(
    server: XServer, backend: Backend, windows: World
) -> None:
    """As after a restart of the manager: the window counts as active, the focus is elsewhere."""
    opened = await windows.open(title="active")
    await backend.activate(opened.id)
    connection = XConnection(server.display)
    try:
        await connection.call(_take_focus_away)
        await backend.activate(opened.id)
        assert await backend.active_window() == opened.id
    finally:
        await connection.aclose()


def _take_focus_away(display: Display) -> None:
    display.screen().root.set_input_focus(X.RevertToPointerRoot, X.CurrentTime)
    display.sync()
