"""What a UI backend offers, as a protocol; held by every backend and by the shipped fake.

Coordinates are pixels. A point given with a window is relative to the window's client area
(0, 0 is its top left pixel); a point outside is `OutOfBounds`. Every method takes the display
lock (L1) for the length of its one command and ends within `timeout` seconds.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Protocol

from PIL import Image

STEP_TIMEOUT = 5.0
"""Seconds that one UI command may take."""

WindowId = int


class UiError(Exception):
    """Base of what a backend raises; `executed`: the command may have had an effect."""

    executed = True


class StepTimeout(UiError):
    """Raised when a command did not end in time; its process is gone when this is raised."""


class WindowNotFound(UiError):
    """Raised when the window is not there (any more), or not viewable."""

    executed = False


class FocusLost(UiError):
    """Raised when the keyboard focus is not in the window asked for; nothing was pressed."""

    executed = False


class OutOfBounds(UiError):
    """Raised when a point lies outside its window; nothing was pressed."""

    executed = False


class PasteNotRead(UiError):
    """Raised when the app did not ask for the text in time; the clipboard is disowned again."""


class DisplayDead(UiError):
    """Raised when the X server does not answer or is gone."""


class CommandFailed(UiError):
    """Raised when a tool ended with an error; the message holds its stderr."""


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle in pixels, relative to a window or to the screen."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Window:
    """A top-level window as read just now. `region` is its client area in screen pixels.

    `wm_class` is (instance, class). `pid` comes from the X server (X-Resource), not from the
    window's own claim. `managed` tells that the window manager lists it; menus and completion
    popups are not. `hidden` is WM_STATE Iconic/Withdrawn or not viewable.
    """

    id: WindowId
    title: str
    wm_class: tuple[str, str]
    role: str
    pid: int | None
    region: Region
    viewable: bool
    managed: bool
    dialog: bool = False
    modal: bool = False
    transient_for: WindowId | None = None


class Ping(enum.Enum):
    """The answer to `_NET_WM_PING`."""

    ALIVE = "alive"
    SILENT = "silent"
    UNSUPPORTED = "unsupported"


class Reader(Protocol):
    """The half of a backend that changes nothing on the screen."""

    async def windows(self) -> list[Window]:
        """All top-level windows: managed ones first, then viewable override-redirect ones."""
        ...

    async def window(self, window: WindowId) -> Window:
        """One window, read fresh. Raises WindowNotFound."""
        ...

    async def active_window(self) -> WindowId | None:
        """The top-level window that has the keyboard focus, by the X server's input focus."""
        ...

    async def pointer_position(self) -> tuple[int, int]:
        """Where the pointer is, in screen pixels."""
        ...

    async def capture(
        self, window: WindowId | None = None, region: Region | None = None
    ) -> Image.Image:
        """A fresh RGB picture of the screen, of a window, or of a region of either."""
        ...

    async def ping(self, window: WindowId, timeout: float = 1.0) -> Ping:
        """Ask the app's event loop for a sign of life, within `timeout` seconds."""
        ...

    async def alive(self) -> bool:
        """Whether the X server answers within two seconds; never raises."""
        ...


class Backend(Reader, Protocol):
    """A backend: the reader and the input half."""

    name: str

    async def move(self, x: int, y: int, window: WindowId | None = None) -> None:
        """Put the pointer there."""
        ...

    async def click(
        self, x: int, y: int, window: WindowId | None = None, *, button: int = 1, count: int = 1
    ) -> None:
        """Move and click in one command.

        Raises FocusLost, nothing pressed, when another window covers the point of `window`; so do
        the other pointer commands.
        """
        ...

    async def scroll(self, x: int, y: int, clicks: int, window: WindowId | None = None) -> None:
        """Turn the wheel at a point; positive is down."""
        ...

    async def drag(
        self, start: tuple[int, int], end: tuple[int, int], window: WindowId | None = None
    ) -> None:
        """Press button 1 at `start`, release at `end`."""
        ...

    async def chord(self, *keys: str, window: WindowId | None = None) -> None:
        """Press keys (X keysym names, modifiers first) together, once.

        With `window`, the focus is checked within the same lock first: FocusLost, nothing pressed.
        """
        ...

    async def paste_text(
        self, window: WindowId, text: str, *, chord: tuple[str, ...] = ("ctrl", "v")
    ) -> None:
        """Own the clipboard for this one paste, press the chord, wait until the app asked for it.

        Only the X client that owns `window` is served. Returns when the app has read the text;
        the widget inserts it a moment later, so look at the entry before the next key.
        Raises FocusLost (nothing pressed), PasteNotRead.
        """
        ...

    async def activate(self, window: WindowId) -> None:
        """Raise and focus a managed window, wait for the focus. WindowNotFound, FocusLost."""
        ...

    async def close_window(self, window: WindowId) -> None:
        """Ask a window to close (WM_DELETE_WINDOW); does not wait for it."""
        ...

    async def clipboard(self) -> str | None:
        """The clipboard's present text, None when nobody owns it."""
        ...

    async def release_all(self) -> list[str]:
        """Release every key and button that is down; the names of what was down."""
        ...

    async def aclose(self) -> None:
        """Close the connections; idempotent, bounded."""
        ...
