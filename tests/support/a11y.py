"""A session bus on a display, a reader on it, and real programs to read."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from bridge.polling import poll
from bridge.sessionbus import SessionBus
from tests.support.xserver import XServer, end, started, xvfb
from ui_backends.a11y import A11yReader, AccessibleApp, Element, open_a11y

QT_WINDOW = Path(__file__).with_name("qtwindow.py")


@dataclass
class Room:
    """A display with a session bus and a reader."""

    screen: XServer
    bus: SessionBus
    reader: A11yReader
    folder: Path

    def env(self, **more: str) -> dict[str, str]:
        """For programs that offer their tree."""
        return self.screen.env(
            HOME=str(self.folder),
            DBUS_SESSION_BUS_ADDRESS=self.bus.address,
            QT_LINUX_ACCESSIBILITY_ALWAYS_ON="1",
            GTK_MODULES="gail:atk-bridge",
            **more,
        )

    @asynccontextmanager
    async def qt(self) -> AsyncIterator[trio.Process]:
        """The small Qt window, with a pipe to its standard input."""
        argv = ["/usr/bin/python3", str(QT_WINDOW)]
        async with started(argv, env=self.env(), stdin=subprocess.PIPE) as process:
            yield process
            if process.stdin is not None:
                await process.stdin.aclose()

    async def app(self, process: trio.Process) -> AccessibleApp:
        """Wait until the process offers its tree."""
        found = await poll(lambda: self.reader.app(process.pid), 30)
        assert found, f"{process.args} offers no tree; there are {await self.reader.apps()}"
        return found

    async def one(self, process: trio.Process, role: str, name: str) -> Element:
        """Wait for the one element of that role and name."""

        async def look() -> Element | None:
            app = await self.app(process)
            found = (await self.reader.tree(app.ref)).root.find(role, name)
            return found[0] if len(found) == 1 else None

        found = await poll(look, 30)
        assert found, f"no one {role} {name!r}"
        return found


@asynccontextmanager
async def room(folder: Path, *, call: float = 5.0) -> AsyncIterator[Room]:
    """A display, a bus and a reader that live as long as the block."""
    async with AsyncExitStack() as stack:
        screen = await stack.enter_async_context(xvfb())
        bus = await SessionBus.open(folder, screen.display, screen.env(HOME=str(folder)))
        stack.push_async_callback(bus.stop)
        reader = await stack.enter_async_context(open_a11y(bus.address, call=call))
        yield Room(screen, bus, reader, folder)


__all__ = ["QT_WINDOW", "Room", "end", "room"]
