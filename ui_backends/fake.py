"""A backend without X, for tests of everything above it; works under virtual time.

`FakeBackend` holds windows as data, keeps a log of commands, and lets a test raise, wait or
change the world at any command by a hook. What it promises (focus, bounds, errors) is what
`ui_backends.base` promises of every backend.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from PIL import Image

from ui_backends import keyboard
from ui_backends.base import (
    CommandFailed,
    FocusLost,
    OutOfBounds,
    PasteNotRead,
    Ping,
    Region,
    UiError,
    Window,
    WindowId,
    WindowNotFound,
)
from ui_backends.lock import DisplayLock

_FIRST_ID = 0x200001
_SOMEWHERE = Region(100, 100, 400, 300)


@dataclass(frozen=True, slots=True)
class Command:
    """One command as it was carried out; `window` is what it was aimed at."""

    name: str
    window: WindowId | None = None
    detail: object = None


@dataclass
class FakeWindow:
    """A window and what arrived in it, with callbacks of the app behind it.

    `reads_paste` False: the app never asks for the text.
    """

    facts: Window
    pasted: list[str] = field(default_factory=list)
    chords: list[tuple[str, ...]] = field(default_factory=list)
    clicks: list[tuple[int, int, int]] = field(default_factory=list)
    picture: Image.Image | None = None
    ping: Ping = Ping.ALIVE
    reads_paste: bool = True
    close_requests: int = 0
    on_chord: Callable[[tuple[str, ...]], None] | None = None
    on_paste: Callable[[str], None] | None = None
    on_close: Callable[[], None] | None = None


Hook = Callable[[Command], Awaitable[None]]


class FakeBackend:
    """A scriptable backend in memory.

    Attributes:
        log: every command that was begun, oldest first, reads included.
        focus: the window with the keyboard focus.
        down: names of keys that are held down.
        is_alive: what `alive` answers; commands do not look at it.
    """

    name = "fake"

    def __init__(self, *, size: tuple[int, int] = (1280, 800)) -> None:
        self.size = size
        self.lock = DisplayLock("fake")
        self.lock.use_cleaner(self._clean)
        self.log: list[Command] = []
        self.focus: WindowId | None = None
        self.down: list[str] = []
        self.pointer = (0, 0)
        self.is_alive = True
        self.closed = False
        self._windows: dict[WindowId, FakeWindow] = {}
        self._next = _FIRST_ID
        self._before: dict[str, Hook] = {}
        self._after: dict[str, Hook] = {}

    # --- the script's side

    def add_window(
        self,
        title: str,
        *,
        wm_class: tuple[str, str] = ("fake", "Fake"),
        region: Region = _SOMEWHERE,
        focus: bool = True,
        viewable: bool = True,
        managed: bool = True,
        role: str = "",
        pid: int | None = 1,
        dialog: bool = False,
        modal: bool = False,
        transient_for: WindowId | None = None,
    ) -> FakeWindow:
        """Open a window, with the focus unless it is hidden or `focus` is False."""
        facts = Window(
            id=self._next,
            title=title,
            wm_class=wm_class,
            role=role,
            pid=pid,
            region=region,
            viewable=viewable,
            managed=managed,
            dialog=dialog,
            modal=modal,
            transient_for=transient_for,
        )
        self._next += 1
        opened = self._windows[facts.id] = FakeWindow(facts)
        if focus and viewable:
            self.focus = facts.id
        return opened

    def remove_window(self, window: WindowId) -> None:
        """The app closed it."""
        del self._windows[window]
        if self.focus == window:
            self.focus = None

    def set_title(self, window: WindowId, title: str) -> None:
        """The app changed the title."""
        held = self._windows[window]
        held.facts = dataclasses.replace(held.facts, title=title)

    def before(self, command: str, hook: Hook) -> None:
        """Run `hook` when a command of that name begins: it may wait, raise, change the world."""
        self._before[command] = hook

    def after(self, command: str, hook: Hook) -> None:
        """Run `hook` when a command of that name has had its effect; raising is a late failure."""
        self._after[command] = hook

    def fake_window(self, window: WindowId) -> FakeWindow:
        """What arrived in a window; KeyError when it is not there."""
        return self._windows[window]

    @property
    def all_windows(self) -> Sequence[FakeWindow]:
        """Every window, hidden ones included, oldest first."""
        return list(self._windows.values())

    @property
    def effects(self) -> list[Command]:
        """The log without the reads."""
        return [entry for entry in self.log if entry.name not in _READS]

    # --- the backend's side

    async def windows(self) -> list[Window]:
        """Managed windows first, then viewable ones that are not."""
        async with self._command(Command("windows")):
            every = [held.facts for held in self._windows.values()]
            return [w for w in every if w.managed] + [
                w for w in every if not w.managed and w.viewable
            ]

    async def window(self, window: WindowId) -> Window:
        """One window."""
        async with self._command(Command("window", window)):
            return self._find(window).facts

    async def active_window(self) -> WindowId | None:
        """`focus`."""
        async with self._command(Command("active_window")):
            return self.focus

    async def capture(
        self, window: WindowId | None = None, region: Region | None = None
    ) -> Image.Image:
        """The windows' pictures on a grey screen."""
        async with self._command(Command("capture", window, region)):
            screen = Image.new("RGB", self.size, (128, 128, 128))
            for held in self._windows.values():
                if held.picture is not None and held.facts.viewable:
                    screen.paste(held.picture, (held.facts.region.x, held.facts.region.y))
            bounds = self._bounds(window)
            part = region or Region(0, 0, bounds.width, bounds.height)
            self._inside(bounds, part.x, part.y)
            self._inside(bounds, part.x + part.width - 1, part.y + part.height - 1)
            x, y = bounds.x + part.x, bounds.y + part.y
            return screen.crop((x, y, x + part.width, y + part.height))

    async def pointer_position(self) -> tuple[int, int]:
        """`pointer`."""
        async with self._command(Command("pointer_position")):
            return self.pointer

    async def ping(self, window: WindowId, timeout: float = 1.0) -> Ping:
        """The window's `ping`; silence does not take any time."""
        async with self._command(Command("ping", window)):
            return self._find(window).ping

    async def alive(self) -> bool:
        """`is_alive`."""
        return self.is_alive

    async def move(self, x: int, y: int, window: WindowId | None = None) -> None:
        """Put the pointer there."""
        async with self._command(Command("move", window, (x, y)), presses=True):
            self.pointer = self._point(x, y, window)

    async def click(
        self, x: int, y: int, window: WindowId | None = None, *, button: int = 1, count: int = 1
    ) -> None:
        """Click; the window remembers it."""
        async with self._command(Command("click", window, (x, y)), presses=True):
            self.pointer = self._point(x, y, window)
            if window is not None:
                self._find(window).clicks.extend([(x, y, button)] * count)

    async def scroll(self, x: int, y: int, clicks: int, window: WindowId | None = None) -> None:
        """Turn the wheel."""
        async with self._command(Command("scroll", window, clicks), presses=True):
            self.pointer = self._point(x, y, window)

    async def drag(
        self, start: tuple[int, int], end: tuple[int, int], window: WindowId | None = None
    ) -> None:
        """Drag."""
        async with self._command(Command("drag", window, (start, end)), presses=True):
            self._point(*start, window)
            self.pointer = self._point(*end, window)

    async def chord(self, *keys: str, window: WindowId | None = None) -> None:
        """Press keys; the window with the focus remembers them."""
        async with self._command(Command("chord", window, keys), presses=True):
            if any(not keyboard.keysym(key) for key in keys):
                raise _not_executed(CommandFailed(f"there is no such key in {keys}"))
            self._need_focus(window)
            self._press(keys)

    async def paste_text(
        self, window: WindowId, text: str, *, chord: tuple[str, ...] = ("ctrl", "v")
    ) -> None:
        """Paste; `reads_paste` False raises PasteNotRead."""
        async with self._command(Command("paste_text", window, text), presses=True):
            self._find(window)
            self._need_focus(window)
            held = self._find(window)
            held.chords.append(chord)
            if not held.reads_paste:
                raise PasteNotRead(f"window {window:#x} did not ask for the text")
            held.pasted.append(text)
            if held.on_paste is not None:
                held.on_paste(text)

    async def activate(self, window: WindowId) -> None:
        """Give the focus to a managed window."""
        async with self._command(Command("activate", window), presses=True):
            held = self._find(window)
            if not held.facts.managed:
                raise WindowNotFound(f"no window manager lists window {window:#x}")
            held.facts = dataclasses.replace(held.facts, viewable=True)
            self.focus = window  # also of an iconified window, which the manager restores

    async def close_window(self, window: WindowId) -> None:
        """Counted in the window's `close_requests`; its `on_close` may remove it."""
        async with self._command(Command("close_window", window), presses=True):
            held = self._find(window)
            held.close_requests += 1
            if held.on_close is not None:
                held.on_close()

    async def clipboard(self) -> str | None:
        """Nobody owns it."""
        async with self._command(Command("clipboard")):
            return None

    async def release_all(self) -> list[str]:
        """Release what is in `down`."""
        async with self._command(Command("release_all"), presses=True):
            down, self.down = self.down, []
            return down

    async def aclose(self) -> None:
        """Remembered in `closed`."""
        self.closed = True

    # --- parts

    @asynccontextmanager
    async def _command(self, command: Command, *, presses: bool = False) -> AsyncIterator[None]:
        async with self.lock.command(command.name, presses=presses):
            self.log.append(command)
            await self._run(self._before, command)
            yield
            await self._run(self._after, command)

    async def _run(self, hooks: Mapping[str, Hook], command: Command) -> None:
        hook = hooks.get(command.name)
        if hook is not None:
            await hook(command)

    async def _clean(self) -> None:
        self.down.clear()

    def _press(self, keys: tuple[str, ...]) -> None:
        held = self._windows.get(self.focus or 0)
        if held is not None:
            held.chords.append(keys)
            if held.on_chord is not None:
                held.on_chord(keys)

    def _find(self, window: WindowId) -> FakeWindow:
        try:
            return self._windows[window]
        except KeyError:
            raise WindowNotFound(f"window {window:#x} is gone") from None

    def _need_focus(self, window: WindowId | None) -> None:
        if window is not None and self.focus != window:
            raise FocusLost(f"the keyboard focus is not in window {window:#x}")

    def _bounds(self, window: WindowId | None) -> Region:
        if window is None:
            return Region(0, 0, *self.size)
        facts = self._find(window).facts
        if not facts.viewable:
            raise WindowNotFound(f"window {window:#x} is hidden")
        return facts.region

    def _inside(self, bounds: Region, x: int, y: int) -> None:
        if not (0 <= x < bounds.width and 0 <= y < bounds.height):
            raise OutOfBounds(f"{x},{y} is outside of {bounds.width}x{bounds.height}")

    def _point(self, x: int, y: int, window: WindowId | None) -> tuple[int, int]:
        bounds = self._bounds(window)
        self._inside(bounds, x, y)
        return bounds.x + x, bounds.y + y


_READS = frozenset({"windows", "window", "active_window", "capture", "ping", "clipboard"})


def _not_executed(error: UiError) -> UiError:
    error.executed = False
    return error
