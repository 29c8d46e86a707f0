"""Eyes and hands of a flow: each call is one command of the backend, checked, timed and logged.

`Eyes` only reads and is what the probe, verifiers and watchers get. `Hands` adds input; before
each command it asks its `Permit`, so a worker that lost its lease, or whose action was
cancelled, presses nothing more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

import trio
from PIL import Image

from bridge.errors import BridgeError
from bridge.model import Step
from bridge.polling import poll
from ui_backends.a11y import A11yReader, AccessibleApp, Element, Limits, Ref, Tree
from ui_backends.base import (
    Backend,
    CommandFailed,
    DisplayDead,
    FocusLost,
    OutOfBounds,
    PasteNotRead,
    Ping,
    Reader,
    Region,
    StepTimeout,
    UiError,
    Window,
    WindowId,
    WindowNotFound,
)

T = TypeVar("T")

_QUIET = frozenset(
    {
        *("windows", "window", "active_window", "ping", "pointer_position"),
        *("a11y_app", "a11y_tree", "a11y_element", "a11y_region"),
    }
)
"""Native reads that are repeated while waiting; only their failures are worth a step."""

_CODES: Sequence[tuple[type[UiError], str]] = (
    (StepTimeout, "STEP_TIMEOUT"),
    (WindowNotFound, "WINDOW_NOT_FOUND"),
    (FocusLost, "FOCUS_LOST"),
    (DisplayDead, "DISPLAY_DEAD"),
    (OutOfBounds, "UI_ERROR"),
    (PasteNotRead, "UI_ERROR"),
    (CommandFailed, "UI_ERROR"),
    (UiError, "UI_ERROR"),
)


def ui_error(error: UiError) -> BridgeError:
    """The bridge's error for a backend's: the only place where one becomes the other."""
    code = next(code for kind, code in _CODES if isinstance(error, kind))
    return BridgeError(code, str(error) or type(error).__name__)


class Eyes:
    """Reads the screen; UiError becomes BridgeError.

    `a11y` is the accessibility reader, where the seat has one (`has_a11y`). Its reads need no
    display lock: they go to the app, not to the X server.
    """

    def __init__(self, reader: Reader, a11y: A11yReader | None = None) -> None:
        self._reader = reader
        self._a11y = a11y

    async def _call(self, name: str, detail: str, command: Callable[[], Awaitable[T]]) -> T:
        try:
            return await command()
        except UiError as error:
            raise ui_error(error) from error

    async def windows(self) -> list[Window]:
        """All top-level windows."""
        return await self._call("windows", "", self._reader.windows)

    async def window(self, window: WindowId) -> Window:
        """One window, read fresh; WINDOW_NOT_FOUND when it is gone."""
        return await self._call("window", "", lambda: self._reader.window(window))

    async def active_window(self) -> WindowId | None:
        """The top-level window that has the focus."""
        return await self._call("active_window", "", self._reader.active_window)

    async def capture(
        self, window: WindowId | None = None, region: Region | None = None
    ) -> Image.Image:
        """A fresh picture."""
        return await self._call("capture", "", lambda: self._reader.capture(window, region))

    async def ping(self, window: WindowId, timeout: float = 1.0) -> Ping:
        """Ask the app's event loop for a sign of life."""
        return await self._call("ping", "", lambda: self._reader.ping(window, timeout))

    @property
    def has_a11y(self) -> bool:
        """Whether the app's accessibility tree may be asked for."""
        return self._a11y is not None

    async def a11y_app(self, pid: int) -> AccessibleApp | None:
        """The app's tree to begin at, None when process `pid` offers none (yet)."""
        reader = self._accessible()
        return await self._call("a11y_app", "", lambda: reader.app(pid))

    async def a11y_tree(self, root: Ref, limits: Limits = Limits()) -> Tree:  # noqa: B008
        """What is below an element of the accessibility tree, within limits."""
        reader = self._accessible()
        return await self._call("a11y_tree", "", lambda: reader.tree(root, limits))

    async def a11y_element(self, ref: Ref) -> Element:
        """One element afresh: its name, states and text."""
        reader = self._accessible()
        return await self._call("a11y_element", "", lambda: reader.element(ref))

    async def a11y_region(self, ref: Ref) -> Region:
        """Where an element is, in screen pixels."""
        reader = self._accessible()
        return await self._call("a11y_region", "", lambda: reader.region(ref))

    def _accessible(self) -> A11yReader:
        if self._a11y is None:
            raise BridgeError(
                "UI_ERROR",
                "this seat has no accessibility reader; DESKBRIDGE_READERS chooses it",
                executed=False,
            )
        return self._a11y

    async def until(
        self, what: str, look: Callable[[], Awaitable[T | None]], *, timeout: float = 5.0
    ) -> T:
        """Look again and again until `look` returns something that is not None.

        Waits 10, 20, 40, … at most 100 ms between looks; UI_ERROR after `timeout` seconds,
        saying that `what` was not seen. A look costs a read of the screen, so the pause bounds
        the load, it does not guess a duration.
        """
        found = await poll(look, timeout)
        if found is None:
            raise BridgeError("UI_ERROR", f"{what} was not seen within {timeout:g} s")
        return found


class Permit(Protocol):
    """Says before each command whether this flow may still press anything."""

    def check(self) -> None:
        """Raise BridgeError or LostFence when it may not."""
        ...


class Hands(Eyes):
    """Eyes that may also press. Every command is a step, except a quiet read that went well."""

    def __init__(
        self,
        backend: Backend,
        *,
        permit: Permit,
        on_step: Callable[[Step], None],
        wall_ms: Callable[[], int],
        a11y: A11yReader | None = None,
    ) -> None:
        super().__init__(backend, a11y)
        self._backend = backend
        self._permit = permit
        self._on_step = on_step
        self._wall_ms = wall_ms
        self._pointer: tuple[int, int] | None = None
        """Where this flow left the pointer; None until it has looked."""

    async def _press(self, name: str, detail: str, command: Callable[[], Awaitable[None]]) -> None:
        """An input command, unless somebody else has moved the pointer in between."""
        now = await self._call("pointer_position", "", self._backend.pointer_position)
        if self._pointer is not None and now != self._pointer:
            raise BridgeError(
                "FOCUS_LOST", "somebody moved the pointer during the flow; nothing was pressed"
            )
        await self._call(name, detail, command)
        self._pointer = await self._call("pointer_position", "", self._backend.pointer_position)

    async def _call(self, name: str, detail: str, command: Callable[[], Awaitable[T]]) -> T:
        self._permit.check()
        at, begun, ok = self._wall_ms(), trio.current_time(), False
        try:
            value = await super()._call(name, detail, command)
            ok = True
            return value
        finally:
            if not (ok and name in _QUIET):
                ms = round((trio.current_time() - begun) * 1000, 3)
                self._on_step(Step(name, at, ms, ok, detail))

    async def click(
        self, x: int, y: int, window: WindowId | None = None, *, button: int = 1, count: int = 1
    ) -> None:
        """Move and click in one command."""
        await self._press(
            "click",
            f"{x},{y}",
            lambda: self._backend.click(x, y, window, button=button, count=count),
        )

    async def scroll(self, x: int, y: int, clicks: int, window: WindowId | None = None) -> None:
        """Turn the wheel."""
        await self._press("scroll", f"{clicks}", lambda: self._backend.scroll(x, y, clicks, window))

    async def drag(
        self, start: tuple[int, int], end: tuple[int, int], window: WindowId | None = None
    ) -> None:
        """Drag with button 1."""
        await self._press("drag", "", lambda: self._backend.drag(start, end, window))

    async def chord(self, *keys: str, window: WindowId | None = None) -> None:
        """Press keys together; with `window`, only while it has the focus."""
        await self._press(
            "chord", "+".join(keys), lambda: self._backend.chord(*keys, window=window)
        )

    async def paste_text(
        self, window: WindowId, text: str, *, chord: tuple[str, ...] = ("ctrl", "v")
    ) -> None:
        """Paste into the window that has the focus; returns when the app has read it."""
        await self._press(
            "paste_text",
            f"{len(text)} characters",
            lambda: self._backend.paste_text(window, text, chord=chord),
        )

    async def activate(self, window: WindowId) -> None:
        """Raise and focus a window."""
        await self._press("activate", "", lambda: self._backend.activate(window))

    async def close_window(self, window: WindowId) -> None:
        """Ask a window to close."""
        await self._press("close_window", "", lambda: self._backend.close_window(window))

    async def release_all(self) -> list[str]:
        """Release every key and button that is down."""
        return await self._call("release_all", "", self._backend.release_all)
