"""Pictures are fresh, of the right place, or there is none."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

import pytest
import trio

from tests.support.bounds import bounded, until
from tests.support.textwindow import TextWindow
from tests.support.xserver import XServer
from tests.x11.conftest import World
from ui_backends import vision
from ui_backends.base import Backend, CommandFailed, OutOfBounds, Region, StepTimeout
from ui_backends.xdotool import XdotoolBackend


@bounded(60)
async def test_the_screen_a_window_and_a_region_agree(backend: Backend, window: TextWindow) -> None:
    await backend.move(0, 0)
    await backend.paste_text(window.id, "something to see")
    await window.shows("something to see")
    await window.settle()
    screen = await backend.capture()
    region = (await backend.window(window.id)).region
    whole = await backend.capture(window.id)
    part = await backend.capture(window.id, Region(20, 10, 100, 50))
    assert screen.size == (1280, 800)
    assert screen.mode == "RGB"
    assert whole.size == (region.width, region.height)
    assert not vision.changed(vision.cut(screen, region), whole)
    assert not vision.changed(vision.cut(whole, Region(20, 10, 100, 50)), part)
    assert not vision.blank(whole)


@bounded(60)
async def test_a_picture_is_fresh(backend: Backend, window: TextWindow) -> None:
    before = await backend.capture(window.id)
    await backend.paste_text(window.id, "new text")
    await window.shows("new text")
    await window.settle()
    assert vision.changed(before, await backend.capture(window.id))


@pytest.mark.parametrize(
    "region", [Region(-1, 0, 5, 5), Region(0, 0, 0, 5), Region(399, 0, 2, 5), Region(0, 299, 5, 2)]
)
@bounded(60)
async def test_a_region_outside_is_refused(
    backend: Backend, window: TextWindow, region: Region
) -> None:
    with pytest.raises(OutOfBounds):
        await backend.capture(window.id, region)


@bounded(60)
async def test_no_file_is_written(
    backend: Backend, window: TextWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "cwd"
    empty.mkdir()
    monkeypatch.chdir(empty)
    await backend.capture()
    assert list(empty.iterdir()) == []


@bounded(60)
async def test_scrot_that_is_stopped_ends_at_five_seconds(
    server: XServer, windows: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = tmp_path / "scrot.pid"
    fake_tool(
        tmp_path, monkeypatch, "scrot", f"echo $$ > {pid_file}; kill -STOP $$; exec sleep 1000"
    )
    async with XdotoolBackend(server.display, state_id="stopped") as backend:
        await backend.windows()
        begun = trio.current_time()
        with pytest.raises(StepTimeout):
            await backend.capture()
        assert 4.9 < trio.current_time() - begun < 5.6
        pid = int(pid_file.read_text())
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        await backend.windows()
        monkeypatch.undo()
    async with XdotoolBackend(server.display, state_id="stopped") as backend:
        assert (await backend.capture()).size == (1280, 800)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo no >&2; exit 3", "ended with 3: no"),
        ("exit 0", "no picture"),
        ("printf '\\211PNG\\r\\n\\032\\n'", "no picture"),
    ],
)
@bounded(60)
async def test_scrot_that_fails_gives_no_picture(
    server: XServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, words: str
) -> None:
    fake_tool(tmp_path, monkeypatch, "scrot", script)
    async with XdotoolBackend(server.display, state_id="failing") as backend:
        with pytest.raises(CommandFailed, match=words):
            await backend.capture()


@bounded(60)
async def test_a_grandchild_that_keeps_the_output_open_is_not_waited_for(
    server: XServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_tool(tmp_path, monkeypatch, "scrot", "sleep 1000 & exit 0")
    async with XdotoolBackend(server.display, state_id="held") as backend:
        await backend.windows()
        begun = trio.current_time()
        with pytest.raises(CommandFailed, match="no picture"):
            await backend.capture()
        assert trio.current_time() - begun < 3


@bounded(60)
async def test_tools_that_are_not_installed(
    server: XServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with XdotoolBackend(server.display, state_id="none") as backend:
        with pytest.raises(CommandFailed, match="scrot cannot be started"):
            await backend.capture()
        with pytest.raises(CommandFailed, match="xdotool cannot be started"):
            await backend.chord("a")


@bounded(60)
async def test_the_process_of_a_cancelled_capture_is_gone(
    server: XServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid_file = tmp_path / "scrot.pid"
    fake_tool(
        tmp_path,
        monkeypatch,
        "scrot",
        f"trap '' TERM; echo $$ > {pid_file}; while :; do sleep 1; done",
    )
    async with XdotoolBackend(server.display, state_id="cancelled") as backend:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(backend.capture)
            await until(lambda: pid_file.exists() and pid_file.read_text().strip())
            begun = trio.current_time()
            nursery.cancel_scope.cancel()
        assert trio.current_time() - begun < 2
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid_file.read_text()), signal.SIGCONT)


def fake_tool(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    """Put a shell script before the real tool on PATH."""
    tool = folder / "bin" / name
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
