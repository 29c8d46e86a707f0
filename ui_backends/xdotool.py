"""The `xdotool` backend: input by xdotool, pictures by scrot, facts about windows natively.

Every command is one argument list for one process, run under the display lock and inside the
deadline of a step. Text is always pasted. xdotool's own waiting options and its handling of
modifiers are never used: each of them can hang or leave keys down.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog
import trio
from PIL import Image
from Xlib.display import Display

from ui_backends import keyboard, windows
from ui_backends.base import (
    STEP_TIMEOUT,
    CommandFailed,
    DisplayDead,
    FocusLost,
    OutOfBounds,
    PasteNotRead,
    Ping,
    Region,
    StepTimeout,
    Window,
    WindowId,
    WindowNotFound,
)
from ui_backends.clipboard import Clipboard
from ui_backends.display import display_answers
from ui_backends.geometry import area_on_screen, point_on_screen, read_now
from ui_backends.lock import DisplayLock
from ui_backends.ping import ping as ping_window
from ui_backends.process import STATE_ID, Completed, run
from ui_backends.selection import read_selection
from ui_backends.xconn import XConnection

T = TypeVar("T")

_KEPT_ENV = ("PATH", "HOME", "XAUTHORITY", "TMPDIR")
_MANAGER_PATIENCE = 1.0
"""Seconds in which a window manager gives the focus to a window that it activates."""

_FOCUS_PATIENCE = 1.0
"""The same when the focus is set directly."""

_ALIVE_TIMEOUT = 2.0
_PING_TIMEOUT = 1.0
_CLIPBOARD_TIMEOUT = 1.0
_MAX_SCROLL = 100

_log = structlog.get_logger("ui_backends.xdotool")


@dataclass(frozen=True, slots=True)
class _Budget:
    """The end of the running command on Trio's clock."""

    end: float

    def left(self) -> float:
        """Seconds that are left; StepTimeout when there are none."""
        left = self.end - trio.current_time()
        if left <= 0:
            raise StepTimeout("the command used up its time")
        return left


class XdotoolBackend:
    """Works one display; see `ui_backends.base.Backend` for what each method promises.

    Args:
        display: the X display's name, such as ":7".
        state_id: marks the commands in their environment, for `process.end_leftovers`.
        lock: the display's lock when other backends share it.
        timeout: seconds that a command may take.
        paste_patience: seconds within which an app has to ask for a pasted text.
    """

    name = "xdotool"

    def __init__(
        self,
        display: str,
        *,
        state_id: str,
        lock: DisplayLock | None = None,
        timeout: float = STEP_TIMEOUT,
        paste_patience: float = 0.5,
    ) -> None:
        self.display = display
        self.lock = lock or DisplayLock(display, dirty=True)
        self.lock.use_cleaner(self._release)
        self._timeout = timeout
        self._patience = paste_patience
        self._x = XConnection(display)
        self._clipboard = Clipboard(display)
        # Windows whose app did not ask for a text: its event loop may still hold the chord.
        self._unread: set[WindowId] = set()
        # What the lock's last cleaning released.
        self._cleaned: list[str] = []
        self._decoder = trio.CapacityLimiter(1)
        self._env = {key: os.environ[key] for key in _KEPT_ENV if key in os.environ}
        self._env |= {"DISPLAY": display, "LC_ALL": "C.UTF-8", STATE_ID: state_id}

    def __repr__(self) -> str:
        return f"<XdotoolBackend {self.display} {self.lock!r}>"

    async def __aenter__(self) -> XdotoolBackend:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections and end the clipboard's thread."""
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 4.0):
            await self._clipboard.aclose()
            await self._x.aclose()

    # --- reading

    async def windows(self) -> list[Window]:
        """All top-level windows."""
        return await self._read("windows", windows.list_windows)

    async def window(self, window: WindowId) -> Window:
        """One window."""
        return await self._read("window", lambda d: read_now(d, window))

    async def active_window(self) -> WindowId | None:
        """The top-level window with the focus."""
        return await self._read("active_window", windows.active_window)

    async def pointer_position(self) -> tuple[int, int]:
        """Where the pointer is."""
        return await self._read("pointer_position", windows.pointer_position)

    async def ping(self, window: WindowId, timeout: float = 1.0) -> Ping:
        """A sign of life."""
        limit = min(timeout, self._timeout)
        return await self._read("ping", lambda d: ping_window(d, window, limit), spare=limit)

    async def clipboard(self) -> str | None:
        """The clipboard's text."""
        return await self._read("clipboard", lambda d: read_selection(d, _CLIPBOARD_TIMEOUT))

    async def alive(self) -> bool:
        """Asks by a new connection and without the lock, so that no stuck command hides it."""
        return await display_answers(self.display, _ALIVE_TIMEOUT)

    async def capture(
        self, window: WindowId | None = None, region: Region | None = None
    ) -> Image.Image:
        """A fresh picture, through scrot's standard output; no file is involved."""
        async with self._command("capture", presses=False) as budget:
            area: list[str] = []
            if window is not None or region is not None:
                box = await self._ask(budget, lambda d: area_on_screen(d, window, region))
                area = ["--autoselect", f"{box.x},{box.y},{box.width},{box.height}"]
            done = await self._tool(budget, "scrot", "--silent", *area, "-")
        return await trio.to_thread.run_sync(_decode, done.stdout, limiter=self._decoder)

    # --- input

    async def move(self, x: int, y: int, window: WindowId | None = None) -> None:
        """Put the pointer there."""
        await self._point("move", x, y, window, [])

    async def click(
        self, x: int, y: int, window: WindowId | None = None, *, button: int = 1, count: int = 1
    ) -> None:
        """Move and click in one command."""
        clicks = ["click", "--delay", "0", "--repeat", str(count), str(button)]
        await self._point("click", x, y, window, clicks)

    async def scroll(self, x: int, y: int, clicks: int, window: WindowId | None = None) -> None:
        """Turn the wheel; at most 100 clicks at once."""
        if abs(clicks) > _MAX_SCROLL:
            raise OutOfBounds(f"{clicks} clicks of the wheel are too many")
        button, count = ("5", clicks) if clicks > 0 else ("4", -clicks)
        turn = ["click", "--delay", "0", "--repeat", str(count), button] if count else []
        await self._point("scroll", x, y, window, turn)

    async def drag(
        self, start: tuple[int, int], end: tuple[int, int], window: WindowId | None = None
    ) -> None:
        """Drag with button 1, over the middle, so that the app sees it move."""
        async with self._command("drag") as budget:
            points = (start, ((start[0] + end[0]) // 2, (start[1] + end[1]) // 2), end)
            (x0, y0), (x1, y1), (x2, y2) = [
                await self._ask(budget, partial(point_on_screen, point=p, window=window))
                for p in points
            ]
            await self._tool(
                budget, "xdotool", "mousemove", "--", str(x0), str(y0), "mousedown", "1",
                "mousemove", "--", str(x1), str(y1), "mousemove", "--", str(x2), str(y2),
                "mouseup", "1",
            )  # fmt: skip

    async def chord(self, *keys: str, window: WindowId | None = None) -> None:
        """Press keys together."""
        keyboard.check_keys(keys)
        async with self._command("chord") as budget:
            await self._look(budget, window)
            await self._press(budget, keys)

    async def paste_text(
        self, window: WindowId, text: str, *, chord: tuple[str, ...] = ("ctrl", "v")
    ) -> None:
        """Paste, and wait until the app has read it."""
        keyboard.check_keys(chord)
        async with self._command("paste_text") as budget:
            await self._look(budget, window)
            await self._cleared(budget, window)
            async with self._clipboard.offered(window, text, budget.left()) as paste:
                await self._look(budget, window)
                await self._press(budget, chord)
                read = await paste.read(self._patience, budget.end)
            if not read:
                self._unread.add(window)
                raise PasteNotRead(f"window {window:#x} did not ask for the text")

    async def activate(self, window: WindowId) -> None:
        """Raise and focus a window, by the window manager."""
        async with self._command("activate") as budget:
            facts = await self._ask(budget, lambda d: read_now(d, window))
            if not facts.managed:
                raise WindowNotFound(f"no window manager lists window {window:#x}")
            if await self._focus(budget) != window:
                await self._tool(budget, "xdotool", "windowactivate", str(window))
                if not await self._focused(budget, window, _MANAGER_PATIENCE):
                    # A manager that takes the window for active already does nothing, though
                    # the focus may be elsewhere: so it is after the manager was started anew.
                    await self._tool(budget, "xdotool", "windowfocus", str(window))
                    if not await self._focused(budget, window, _FOCUS_PATIENCE):
                        raise FocusLost(f"window {window:#x} did not get the focus")

    async def close_window(self, window: WindowId) -> None:
        """Ask a window to close."""
        async with self._command("close_window") as budget:
            await self._ask(budget, lambda d: windows.request_close(d, window))

    async def release_all(self) -> list[str]:
        """Release every key and button."""
        self._cleaned = []
        async with self._command("release_all") as budget:
            down = await self._ask(budget, keyboard.release_everything)
            return self._cleaned + down

    # --- parts of commands

    @asynccontextmanager
    async def _command(self, name: str, *, presses: bool = True) -> AsyncIterator[_Budget]:
        async with self.lock.command(name, presses=presses):
            yield _Budget(trio.current_time() + self._timeout)

    async def _read(self, name: str, work: Callable[[Display], T], *, spare: float = 0) -> T:
        async with self._command(name, presses=False):
            return await self._x.call(work, timeout=self._timeout + spare)

    async def _ask(self, budget: _Budget, work: Callable[[Display], T]) -> T:
        """A question to the X server within the budget."""
        return await self._x.call(work, timeout=budget.left())

    async def _release(self) -> None:
        """The lock's cleaner."""
        self._cleaned = await self._x.call(keyboard.release_everything)
        if self._cleaned:
            _log.warning("xdotool.released", display=self.display, keys=self._cleaned)

    async def _point(
        self, name: str, x: int, y: int, window: WindowId | None, then: Sequence[str]
    ) -> None:
        async with self._command(name) as budget:
            at = await self._ask(budget, lambda d: point_on_screen(d, (x, y), window))
            move = ["mousemove", "--", str(at[0]), str(at[1])]
            await self._tool(budget, "xdotool", *move, *then)

    async def _look(self, budget: _Budget, window: WindowId | None) -> None:
        """Before keys: nothing else is down, and the focus is in `window`."""
        down = await self._ask(budget, keyboard.release_everything)
        if down:
            _log.warning("xdotool.stale_keys", display=self.display, keys=down)
        if window is not None and await self._focus(budget) != window:
            raise FocusLost(f"the keyboard focus is not in window {window:#x}")

    async def _focus(self, budget: _Budget) -> WindowId | None:
        return await self._ask(budget, windows.active_window)

    async def _focused(self, budget: _Budget, window: WindowId, patience: float) -> bool:
        """Whether the window has the focus, at the latest after `patience` seconds."""
        pause = 0.002
        with trio.move_on_after(min(patience, budget.left())):
            while await self._focus(budget) != window:
                await trio.sleep(pause)
                pause = min(0.05, pause * 2)
            return True
        return False

    async def _cleared(self, budget: _Budget, window: WindowId) -> None:
        """After an unread paste: nothing more until the app answers a ping.

        An app that knows no ping is let through after the time of one.
        """
        if not self._unread:
            return
        unread = await self._ask(
            budget, lambda d: {w for w in self._unread if windows.same_client(d, w, window)}
        )
        if not unread:
            return
        answer = await self._ask(budget, lambda d: ping_window(d, window, _PING_TIMEOUT))
        if answer is Ping.SILENT:
            error = PasteNotRead(f"window {window:#x} has not answered since an unread paste")
            error.executed = False
            raise error
        self._unread -= unread

    async def _press(self, budget: _Budget, keys: Sequence[str]) -> None:
        await self._tool(budget, "xdotool", "key", "--delay", "0", "--", "+".join(keys))

    async def _tool(self, budget: _Budget, *argv: str) -> Completed:
        """Run a tool within the budget. StepTimeout, DisplayDead or CommandFailed."""
        try:
            done = await run(argv, timeout=budget.left(), env=self._env)
        except OSError as error:
            raise CommandFailed(f"{argv[0]} cannot be started: {error}") from error
        if done.timed_out:
            raise StepTimeout(f"{argv[0]} did not end within {self._timeout:g} s")
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip()
            if re.search(r"open (X )?display", said, re.IGNORECASE):
                raise DisplayDead(f"{argv[0]}: {said}")
            raise CommandFailed(f"{argv[0]} ended with {done.returncode}: {said}")
        return done


@asynccontextmanager
async def open_xdotool(
    display: str, *, state_id: str, lock: DisplayLock | None = None
) -> AsyncIterator[XdotoolBackend]:
    """An `XdotoolBackend` that is closed at the end."""
    async with XdotoolBackend(display, state_id=state_id, lock=lock) as backend:
        yield backend


def _decode(data: bytes) -> Image.Image:
    try:
        with Image.open(io.BytesIO(data)) as picture:
            return picture.convert("RGB")
    except OSError as error:
        raise CommandFailed(f"scrot gave no picture: {error}") from error
