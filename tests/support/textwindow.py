"""Working the plain text window of tests/x11/textapp.py from a test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from Xlib import Xatom
from Xlib.display import Display

from tests.support.bounds import until
from tests.support.xserver import XServer, started
from ui_backends.base import Reader, Window, WindowId
from ui_backends.display import connected

PROGRAM = Path(__file__).parent.parent / "x11" / "textapp.py"


class TextWindow:
    """A running text window. `id` is its managed window (0 while it is hidden)."""

    def __init__(self, process: trio.Process, log: Path) -> None:
        self.process = process
        self.id: WindowId = 0
        self._log = log

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        """What the window wrote so far, oldest first."""
        if not self._log.exists():
            return []
        lines = self._log.read_text().splitlines(keepends=True)
        every = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in every if kind is None or event["event"] == kind]

    @property
    def text(self) -> str:
        """The field's text after the last change it reported."""
        changes = self.events("text")
        return changes[-1]["text"] if changes else ""

    @property
    def clicks(self) -> list[tuple[int, int, int]]:
        """(x, y, button) of each press, relative to the window's client area."""
        return [(e["x"], e["y"], e["button"]) for e in self.events("click")]

    async def seen(self, kind: str, count: int = 1) -> dict[str, Any]:
        """The `count`th event of a kind, as soon as it is there."""
        await until(lambda: len(self.events(kind)) >= count)
        return self.events(kind)[count - 1]

    async def shows(self, text: str) -> None:
        """Wait until the field holds exactly `text`."""
        await until(lambda: self.text == text)

    async def tell(self, command: str) -> None:
        """Give the program a command; see its docstring."""
        assert self.process.stdin is not None
        await self.process.stdin.send_all(command.encode() + b"\n")

    async def settle(self) -> None:
        """Wait until the program's event loop has handled all that reached it before."""
        done = len(self.events("done"))
        await self.tell("nothing")
        await self.seen("done", done + 1)


@asynccontextmanager
async def text_window(
    server: XServer, reader: Reader, folder: Path, *options: str, title: str = "text"
) -> AsyncIterator[TextWindow]:
    """Run the program until its window is there and, unless hidden, viewable."""
    log = folder / f"{title}-{trio.current_time()}.jsonl"
    argv = [sys.executable, str(PROGRAM), str(log), "--title", title, *options]
    async with started(argv, env=server.env(), stdin=subprocess.PIPE) as process:
        window = TextWindow(process, log)
        with trio.fail_after(30):
            await window.seen("ready")
            if "--hidden" not in options:
                window.id = (await managed_of(reader, process.pid)).id
        assert process.stdin is not None
        async with process.stdin:
            yield window


async def is_gone(reader: Reader, window: WindowId) -> bool:
    """Whether no window of that id is there."""
    return window not in [w.id for w in await reader.windows()]


async def managed_of(reader: Reader, pid: int) -> Window:
    """The viewable managed window of a process, once it is there."""
    while True:
        for window in await reader.windows():
            if window.pid == pid and window.managed and window.viewable:
                return window
        await trio.sleep(0.01)


async def announce_pings(server: XServer, window: WindowId) -> None:
    """Let a window say that it answers `_NET_WM_PING`; Tk does, without saying so."""

    def announce(display: Display) -> None:
        names = ("WM_DELETE_WINDOW", "_NET_WM_PING")
        display.create_resource_object("window", window).change_property(
            display.intern_atom("WM_PROTOCOLS"),
            Xatom.ATOM,
            32,
            [display.intern_atom(n) for n in names],
        )
        display.sync()

    async with connected(server.display) as connection:
        await connection.call(announce)
