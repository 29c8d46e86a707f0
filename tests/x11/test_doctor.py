"""What the doctor finds on a real display: each trouble is named, and told what to do about."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio
from Xlib import XK, X
from Xlib.display import Display
from Xlib.ext import xtest

from bridge.checks.result import Result
from bridge.config import Settings
from bridge.machine import look_at_machine
from tests.support import clipmanager
from tests.support.bounds import bounded, until
from tests.support.xserver import XServer, desktop, started, xvfb
from ui_backends.base import DisplayDead
from ui_backends.display import connected
from ui_backends.facts import read_facts, refusal
from ui_backends.lock import DisplayLock
from ui_backends.seatlock import hold_seat


async def look(tmp_path: Path, display: str | None = None, **env: str) -> dict[str, Result]:
    """The machine's checks by name, with an environment of the test's own."""
    given = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        "DESKBRIDGE_STATE_DIR": str(tmp_path / "state"),
        "DESKBRIDGE_PORT": "0",
        **({} if display is None else {"DESKBRIDGE_DISPLAY": display}),
        **env,
    }
    found = await look_at_machine(Settings.from_env(given), bridge_runs=False)
    return {result.check: result for result in found}


async def facts_of(server: XServer):
    return await read_facts(server.display, DisplayLock(server.display))


@bounded(60)
async def test_a_good_machine_is_well(tmp_path: Path):
    async with desktop(tmp_path / "home", autorepeat=False) as server:
        found = await look(tmp_path, server.display)
    assert {name: result.status for name, result in found.items()} == dict.fromkeys(found, "ok")
    assert set(found) == {
        *("programs", "python", "app", "disk", "port", "locale", "fonts", "display"),
        *("window_manager", "keyboard", "clipboard", "x_clients"),
    }
    assert "IceWM" in found["window_manager"].detail


@bounded(60)
async def test_no_window_manager_and_autorepeat(tmp_path: Path):
    async with xvfb() as server:
        found = await look(tmp_path, server.display)
    assert found["window_manager"].status == "warning"
    assert f"icewm --display {server.display}" in str(found["window_manager"].advice)
    assert found["keyboard"].status == "warning"
    assert "autorepeat is on" in found["keyboard"].detail
    assert f"xset -display {server.display} r off" in str(found["keyboard"].advice)


@bounded(60)
async def test_the_advice_against_autorepeat_works(tmp_path: Path):
    async with xvfb() as server:
        advice = str((await look(tmp_path, server.display))["keyboard"].advice)
        command = advice.partition("`")[2].partition("`")[0].split()
        await trio.run_process(command)
        assert (await look(tmp_path, server.display))["keyboard"].status == "ok"


@bounded(60)
async def test_a_key_that_stays_down_is_named_and_not_released(tmp_path: Path):
    async with xvfb(autorepeat=False) as server, connected(server.display) as connection:

        def press(display: Display) -> None:
            code = display.keysym_to_keycode(XK.string_to_keysym("Control_L"))
            xtest.fake_input(display, X.KeyPress, code)
            xtest.fake_input(display, X.ButtonPress, 3)
            display.sync()

        await connection.call(press)
        for _ in range(2):  # looking changes nothing
            result = (await look(tmp_path, server.display))["keyboard"]
            assert result.status == "failed"
            assert "Control_L, button 3" in result.detail
            assert "release" in str(result.advice)


@bounded(60)
async def test_a_layout_without_the_keys_is_named_and_its_advice_works(tmp_path: Path):
    async with xvfb(autorepeat=False) as server:
        await trio.run_process(["setxkbmap", "-display", server.display, "ru"])
        result = (await look(tmp_path, server.display))["keyboard"]
        assert result.status == "failed"
        assert {"a", "f", "v"} <= set(result.data["missing"])
        assert "Return" not in result.data["missing"]
        command = str(result.advice).partition("`")[2].partition("`")[0].split()
        await trio.run_process(command)
        assert (await look(tmp_path, server.display))["keyboard"].status == "ok"


@bounded(60)
async def test_a_clipboard_manager_that_takes_the_clipboard(tmp_path: Path):
    async with xvfb() as server:
        assert (await look(tmp_path, server.display))["clipboard"].status == "ok"
        argv = [sys.executable, clipmanager.__file__, server.display]
        async with started(argv, env=server.env(), stdout=subprocess.PIPE) as manager:
            assert manager.stdout is not None
            said = b""
            while not said.endswith(b"\n"):
                said += await manager.stdout.receive_some()
            async with connected(server.display) as connection:
                await connection.call(take_clipboard)
                # It takes it back at once; then the clipboard is not the other program's.
                await until(lambda: holds_both(server))
                result = (await look(tmp_path, server.display))["clipboard"]
            assert result.status == "failed"
            assert f"pid {manager.pid}" in result.detail
            assert "end " in str(result.advice)


def take_clipboard(display: Display) -> None:
    window = display.screen().root.create_window(0, 0, 1, 1, 0, X.CopyFromParent)
    window.set_selection_owner(display.intern_atom("CLIPBOARD"), X.CurrentTime)
    display.sync()


async def holds_both(server: XServer) -> bool:
    facts = await facts_of(server)
    assert facts.clipboard_manager is not None
    return facts.clipboard == facts.clipboard_manager


@bounded(60)
async def test_connections_up_to_the_last(tmp_path: Path):
    async with xvfb("-maxclients", "64") as server:
        with ExitStack() as stack:

            def take(count: int) -> None:
                for _ in range(count):
                    stack.callback(Display(server.display).close)

            few = await facts_of(server)
            assert (few.clients, few.limit) == (1, 63)
            take(48)
            result = (await look(tmp_path, server.display))["x_clients"]
            assert result.status == "warning"
            assert result.data["most"][0]["pid"] == os.getpid()
            assert f"pid {os.getpid()}" in str(result.advice)
            take(12)
            assert (await look(tmp_path, server.display))["x_clients"].status == "failed"
            take(3)
            assert "aximum number of clients" in str(await refusal(server.display))
            found = await look(tmp_path, server.display)
            assert found["display"].status == "failed"
            assert "maximum number of clients" in found["display"].detail
            assert "-maxclients" in str(found["display"].advice)


@bounded(60)
async def test_a_frozen_server_is_told_within_seconds(tmp_path: Path):
    async with xvfb() as server:
        server.freeze()
        begun = trio.current_time()
        found = await look(tmp_path, server.display)
        assert trio.current_time() - begun < 8
        assert found["display"].status == "failed"
        assert "kill -CONT" in str(found["display"].advice)
        server.thaw()
        await until(lambda: answers(server))
        assert (await look(tmp_path, server.display))["display"].status == "ok"


async def answers(server: XServer) -> bool:
    try:
        return await refusal(server.display) is None
    except DisplayDead:
        return False


@bounded(60)
async def test_a_display_that_another_bridge_works(tmp_path: Path):
    async with xvfb() as server:
        async with hold_seat(server.display, "s0"):
            result = (await look(tmp_path, server.display))["display"]
            assert result.status == "failed"
            assert f"pid {os.getpid()}" in result.detail
            assert "DESKBRIDGE_DISPLAY" in str(result.advice)
        assert (await look(tmp_path, server.display))["display"].status == "ok"


@bounded(60)
async def test_a_free_display_is_no_fault(tmp_path: Path):
    # Servers that look for a number themselves take the lowest; these are never reached.
    numbers = (n for n in range(9000, 9999) if not Path(f"/tmp/.X{n}-lock").exists())
    found = await look(tmp_path, f":{next(numbers)}")
    assert found["display"].status == "ok"
    assert "window_manager" not in found
    assert (await look(tmp_path))["display"].status == "ok"


@bounded(60)
async def test_the_c_locale_and_missing_fonts(tmp_path: Path):
    fake = tmp_path / "bin" / "fc-list"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexit 0\n")
    fake.chmod(0o755)
    path = f"{fake.parent}:{os.environ['PATH']}"
    found = await look(tmp_path, PATH=path, LC_ALL="C")
    assert found["fonts"].status == "warning"
    assert "apt-get install fonts-noto-cjk" in str(found["fonts"].advice)
    assert "apt-get install fonts-noto-color-emoji" in str(found["fonts"].advice)
    assert found["locale"].status == "warning"
    assert "LC_ALL=C.UTF-8" in str(found["locale"].advice)


@bounded(60)
async def test_programs_that_are_missing_or_broken(tmp_path: Path):
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("Xvfb", "icewm", "locale"):
        real = shutil.which(name)
        assert real is not None
        (folder / name).symlink_to(real)
    broken = folder / "scrot"
    broken.write_text("#!/bin/sh\necho no library >&2\nexit 127\n")
    broken.chmod(0o755)
    found = await look(tmp_path, PATH=str(folder))
    result = found["programs"]
    assert result.status == "failed"
    assert "xdotool is not installed" in result.detail
    assert "apt-get install xdotool" in str(result.advice)
    assert "scrot does not run: status 127, no library" in result.detail
    assert found["fonts"].status == "warning"
    assert "apt-get install fontconfig" in str(found["fonts"].advice)


@bounded(60)
async def test_an_unknown_app_and_a_port_in_use(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        found = await look(tmp_path, DESKBRIDGE_PORT=str(port), DESKBRIDGE_APP="nobodys")
    assert found["port"].status == "failed"
    assert str(port) in found["port"].detail
    assert found["app"].status == "failed"
    assert "demo" in found["app"].detail


@pytest.mark.parametrize("file", ["folder", "file"])
@bounded(60)
async def test_a_state_directory_that_cannot_be_one(tmp_path: Path, file: str):
    place = tmp_path / "state"
    if file == "file":
        place.write_text("in the way")
    else:
        (tmp_path / "deeper").mkdir()
        place = tmp_path / "deeper" / "state"
    found = await look(tmp_path, DESKBRIDGE_STATE_DIR=str(place))
    assert found["disk"].status == ("failed" if file == "file" else "ok")
