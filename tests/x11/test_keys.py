"""Chords, and keys that must not stay down."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import trio

from tests.support.bounds import bounded, until
from tests.support.textwindow import TextWindow
from tests.support.xserver import XServer
from ui_backends import keyboard
from ui_backends.base import Backend, CommandFailed, StepTimeout, UiError
from ui_backends.display import autorepeat, autorepeat_off, connected
from ui_backends.process import end_leftovers, run
from ui_backends.xconn import XConnection
from ui_backends.xdotool import XdotoolBackend


async def keys_down(server: XServer) -> list[str]:
    async with connected(server.display) as connection:
        return await connection.call(
            lambda d: [keyboard.key_name(d, code) for code in keyboard.keys_down(d)]
        )


async def return_is_down(server: XServer) -> bool:
    return "Return" in await keys_down(server)


async def press_and_hold(server: XServer, key: str) -> None:
    """Another program presses a key and ends without letting go."""
    done = await run(["xdotool", "keydown", key], timeout=10, env=server.env())
    assert done.returncode == 0


@bounded(60)
async def test_chords(server: XServer, backend: Backend, window: TextWindow) -> None:
    await backend.paste_text(window.id, "word")
    await window.shows("word")
    await backend.chord("Home", window=window.id)
    await backend.chord("shift", "Right", window=window.id)
    await backend.chord("ctrl", "x", window=window.id)
    await window.shows("ord")
    await backend.chord("End", window=window.id)
    await backend.chord("BackSpace", window=window.id)
    await window.shows("or")
    assert await backend.release_all() == []


@pytest.mark.parametrize("key", ["Retrun", "ctrl+v", "", "--help", "a b"])
@bounded(60)
async def test_a_key_that_does_not_exist_presses_nothing(
    backend: Backend, window: TextWindow, key: str
) -> None:
    with pytest.raises(CommandFailed) as caught:
        await backend.chord("ctrl", key, window=window.id)
    assert not caught.value.executed
    await window.settle()
    assert window.events("key") == []


@bounded(60)
async def test_a_modifier_left_down_by_someone_else_does_not_turn_text_into_shortcuts(
    backend: Backend, window: TextWindow, server: XServer
) -> None:
    await press_and_hold(server, "alt")
    assert await keys_down(server) == ["Alt_L"]
    await backend.chord("a", window=window.id)
    await window.shows("a")
    assert await keys_down(server) == []


@bounded(60)
async def test_release_all_names_what_was_down(backend: Backend, server: XServer) -> None:
    await press_and_hold(server, "shift")
    done = await run(["xdotool", "mousedown", "3"], timeout=10, env=server.env())
    assert done.returncode == 0
    assert await backend.release_all() == ["Shift_L", "button 3"]
    assert await backend.release_all() == []


@bounded(60)
async def test_the_first_command_releases_what_an_earlier_run_left(
    server: XServer, window: TextWindow
) -> None:
    await press_and_hold(server, "Return")
    async with XdotoolBackend(server.display, state_id="fresh") as fresh:
        await fresh.windows()
    assert await keys_down(server) == []


STUCK_XDOTOOL = """#!/bin/sh
# Presses the key as asked and then hangs, as one that is stopped half-way does.
case "$1" in
  key) echo $$ > "$0.pid"; PATH="$REAL_PATH" xdotool keydown "$5"; exec sleep 1000 ;;
  *) PATH="$REAL_PATH" exec xdotool "$@" ;;
esac
"""


@pytest.fixture
def stuck_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """xdotool that leaves its key down and does not end; the file holds its pid."""
    tool = tmp_path / "bin" / "xdotool"
    tool.parent.mkdir()
    real = os.environ["PATH"]
    tool.write_text(STUCK_XDOTOOL.replace("$REAL_PATH", real))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{real}")
    return tool.with_name("xdotool.pid")


def pid_in(file: Path) -> int:
    return int(file.read_text())


@bounded(60)
async def test_xdotool_killed_with_return_down_leaves_no_key_down_and_nothing_repeats(
    server: XServer, window: TextWindow, stuck_keys: Path
) -> None:
    assert await autorepeat(server.display)
    async with XdotoolBackend(server.display, state_id="stuck", timeout=0.2) as backend:
        with pytest.raises(StepTimeout):
            await backend.chord("Return", window=window.id)
        assert await keys_down(server) == []
        assert not backend.lock.statistics().dirty
        # X starts to repeat after 660 ms; had the key stayed down, it would within this second
        seen = len(window.events("key"))
        await trio.sleep(1)
        await window.settle()
        assert len(window.events("key")) == seen == 1
        assert window.text == "\n"


@bounded(60)
async def test_a_cancelled_chord_leaves_no_key_down(
    server: XServer, window: TextWindow, stuck_keys: Path
) -> None:
    async with XdotoolBackend(server.display, state_id="stuck") as backend:
        await backend.windows()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: backend.chord("Return", window=window.id))
            await window.seen("key")
            nursery.cancel_scope.cancel()
        assert await keys_down(server) == []


@bounded(60)
async def test_a_killed_xdotool_fails_the_command_and_releases(
    server: XServer, window: TextWindow, stuck_keys: Path
) -> None:
    async with (
        XdotoolBackend(server.display, state_id="to-be-ended") as backend,
        trio.open_nursery() as nursery,
    ):
        failures: list[UiError] = []

        async def press() -> None:
            try:
                await backend.chord("Return", window=window.id)
            except UiError as error:
                failures.append(error)

        nursery.start_soon(press)
        await window.seen("key")
        os.kill(pid_in(stuck_keys), signal.SIGKILL)
        await until(lambda: failures)
        assert isinstance(failures[0], CommandFailed)
        assert await keys_down(server) == []


@bounded(60)
async def test_left_over_commands_are_ended_and_only_ours(server: XServer) -> None:
    mine = f"left-{os.getpid()}"

    async def start(argv: list[str], state_id: str) -> trio.Process:
        env = server.env(DESKBRIDGE_STATE_ID=state_id)
        return await trio.lowlevel.open_process(argv, env=env)

    ours = await start(["xdotool", "keydown", "Return", "sleep", "1000"], mine)
    others = await start(["xdotool", "sleep", "1000"], f"{mine}-too")
    program = await start(["sleep", "1000"], mine)
    try:
        await until(lambda: return_is_down(server))
        assert await end_leftovers(mine) == [ours.pid]
        assert await ours.wait() == -signal.SIGKILL
        assert others.poll() is None
        assert program.poll() is None
        assert await end_leftovers(mine) == []
    finally:
        for process in (ours, others, program):
            process.kill()
            await process.wait()


@bounded(60)
async def test_autorepeat_is_switched_off_for_all_clients(server: XServer) -> None:
    await autorepeat_off(server.display)
    assert not await autorepeat(server.display)


@bounded(60)
async def test_a_key_held_by_the_connection_of_a_dead_client_is_seen(server: XServer) -> None:
    connection = XConnection(server.display)
    await press_and_hold(server, "Control_L")
    assert await connection.call(keyboard.release_everything) == ["Control_L"]
    await connection.aclose()
