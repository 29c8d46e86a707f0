"""A lasting python-xlib connection that cannot hang its caller."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Callable
from typing import Any, TypeVar

import structlog
import trio
from Xlib import X, error
from Xlib.display import Display

from ui_backends.base import STEP_TIMEOUT, CommandFailed, DisplayDead, UiError, WindowNotFound
from ui_backends.handshake import handshake

T = TypeVar("T")

_log = structlog.get_logger("ui_backends.xconn")

_WHOLE = 1 << 22
"""Four-byte units; more than a property can have."""

_GRACE = 0.05
"""Seconds that a call may go on after its caller was cancelled, before its socket is cut."""


def _ignore(x_error: Any, request: Any) -> None:
    """Swallow errors of requests without an answer: they hit windows that went away meanwhile."""
    _log.debug("x_error", error=str(x_error))


def open_display(name: str, timeout: float) -> Display:
    """Connect, blocking; DisplayDead when the server does not answer or refuses."""
    status, reason = handshake(name, timeout)
    if status != 1:
        raise DisplayDead(f"display {name} refuses: {reason.strip()}")
    try:
        display = Display(name)
    except (error.DisplayError, error.ConnectionClosedError, OSError) as failure:
        raise DisplayDead(f"display {name} cannot be opened: {failure}") from failure
    # python-xlib keeps the extensions' numbers per class; another server may have other ones.
    core: Any = display.display
    core.extension_major_opcodes = dict(core.extension_major_opcodes)
    core.event_classes = dict(core.event_classes)
    # Its RANDR module registers errors of its own under the core's codes 0 to 2, with classes
    # that cannot be made: any BadValue would spoil the connection.
    core.error_classes = {**core.error_classes, **error.xerror_class}
    display.set_error_handler(_ignore)
    return display


def socket_of(display: Display) -> socket.socket:
    """The connection's socket."""
    core: Any = display.display
    sock: socket.socket = core.socket
    return sock


def whole_property(window: Any, name: int, kind: int = X.AnyPropertyType) -> Any:
    """A property in one request: the library's own two would fail if it shrank in between."""
    return window.get_full_property(name, kind, sizehint=_WHOLE)


def cut(display: Display) -> None:
    """Shut the connection down from any thread: whoever waits on it gets an error at once."""
    with contextlib.suppress(OSError):
        socket_of(display).shutdown(socket.SHUT_RDWR)


def _ended(display: Display) -> bool:
    """Whether the server closed the connection while nobody used it."""
    sock = socket_of(display)
    try:
        return bool(select.select([sock], [], [], 0)[0]) and not sock.recv(1, socket.MSG_PEEK)
    except (OSError, ValueError):
        return True


class XConnection:
    """One connection to a display, used by one worker thread at a time, opened when needed."""

    def __init__(self, display: str) -> None:
        self.display = display
        # Held by the worker thread while it runs, also by one whose caller has gone.
        self._worker = trio.CapacityLimiter(1)
        self._turn = trio.Lock()
        # The open connection; written only by the worker thread.
        self._live: Display | None = None
        # True once the socket was shut down under the worker: the next call opens a new one.
        self._cut = False
        self._closed = False

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._live else "idle"
        return f"<XConnection {self.display} {state}>"

    async def call(self, work: Callable[[Display], T], *, timeout: float = STEP_TIMEOUT) -> T:
        """Run `work(display)` in the worker thread.

        Raises WindowNotFound for an X error about a window, CommandFailed for another one, and
        DisplayDead when the server is gone or does not answer within `timeout` seconds.
        """
        if self._closed:
            raise DisplayDead("the connection was closed")
        async with self._turn:
            with trio.move_on_after(timeout) as scope:
                try:
                    return await trio.to_thread.run_sync(
                        self._run, work, timeout, limiter=self._worker, abandon_on_cancel=True
                    )
                except trio.Cancelled:
                    await self._abandon(0 if scope.cancel_called else _GRACE)
                    raise
        raise DisplayDead(f"display {self.display} did not answer within {timeout:g} s")

    async def _abandon(self, grace: float) -> None:
        """Free the worker whose caller goes away, within a second."""
        for wait, last in ((grace, False), (1.0, True)):
            if last:
                self._cut_socket()
            if wait and await self._idle(wait):
                return

    async def _idle(self, timeout: float) -> bool:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + timeout) as scope:
            async with self._worker:
                pass
        return not scope.cancelled_caught

    def _cut_socket(self) -> None:
        self._cut = True
        if self._live is not None:
            cut(self._live)

    def _run(self, work: Callable[[Display], T], timeout: float) -> T:
        """Runs in the worker thread."""
        display = self._connected(timeout)
        try:
            return work(display)
        except UiError:
            raise
        except (error.BadWindow, error.BadDrawable) as failure:
            raise WindowNotFound(f"the window is gone: {failure}") from failure
        except error.XError as failure:
            raise CommandFailed(f"X error: {failure}") from failure
        except (error.ConnectionClosedError, OSError, ValueError) as failure:
            self._drop()
            raise DisplayDead(f"display {self.display} went away: {failure}") from failure
        except Exception:
            self._drop()  # the library may have been left in the middle of an answer
            raise

    def _connected(self, timeout: float) -> Display:
        if self._live is not None and (self._cut or _ended(self._live)):
            self._drop()
        self._cut = False
        if self._live is None:
            self._live = open_display(self.display, timeout)
        return self._live

    def _drop(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            with contextlib.suppress(OSError):
                socket_of(live).close()

    async def aclose(self) -> None:
        """Close the connection; idempotent, takes at most a second or so."""
        self._closed = True
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 1.0):
            async with self._worker:
                self._drop()
                return
        self._cut_socket()
        if await self._idle(1.0):
            self._drop()
