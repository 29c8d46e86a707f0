"""The seat's lock: an X manager selection (ICCCM 2.8), so that one bridge works a display.

The X server itself is the witness: it frees the selection when the holder's process ends, also
by SIGKILL, and it tells a holder that another client took it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from Xlib import X, Xatom
from Xlib.display import Display
from Xlib.protocol import event

from ui_backends.base import CommandFailed, DisplayDead, UiError
from ui_backends.xconn import XConnection, socket_of, whole_property

_TIMEOUT = 5.0
_FROZEN = 60.0
"""Seconds of silence after which the display counts as gone. Giving up closes the connection
that holds the seat, so a server that is merely slow must not end it."""


class SeatBusy(Exception):
    """Raised when another process holds the seat; `pid` is its own claim, None when unknown."""

    def __init__(self, display: str, pid: int | None) -> None:
        super().__init__(f"display {display} is worked by another bridge (pid {pid})")
        self.display = display
        self.pid = pid


class Seat:
    """A seat that is held. Ends with the context of `hold_seat`, or by another client."""

    def __init__(self, connection: XConnection, descriptor: int, atom: int, window: int) -> None:
        self._connection = connection
        self._descriptor = descriptor
        self._atom = atom
        self._window = window
        # Why the seat is gone; None while it is held.
        self._reason: str | None = None

    @property
    def held(self) -> bool:
        """Whether no loss was seen yet; only `lost` looks for one."""
        return self._reason is None

    async def lost(self) -> str:
        """Wait until the seat is lost and say how: taken by another client, or display gone.

        One task at a time may wait.
        """
        while self._reason is None:
            try:
                taken = await self._connection.call(self._taken, timeout=_FROZEN)
            except UiError as error:
                self._reason = str(error)
                break
            if taken:
                self._reason = "another client took the seat"
                break
            # `_taken` emptied the library's queue, so news can only come through the socket.
            await trio.lowlevel.wait_readable(self._descriptor)
        return self._reason

    def close(self) -> None:
        """Wake whoever waits in `lost` (ClosedResourceError), since the socket is about to go."""
        trio.lowlevel.notify_closing(self._descriptor)

    def _taken(self, display: Display) -> bool:
        if socket_of(display).fileno() != self._descriptor:
            raise DisplayDead("the connection that held the seat is gone")
        taken = False
        while display.pending_events():
            got: Any = display.next_event()
            taken |= got.type == X.SelectionClear and got.atom == self._atom
        owner: Any = display.get_selection_owner(self._atom)
        if owner == X.NONE or owner.id != self._window:
            taken = True
        return taken or (display.pending_events() > 0 and self._taken(display))


def selection_of(name: str) -> str:
    """The selection whose owner works the seat `name` of a display."""
    return f"_DESKBRIDGE_{name.upper()}"


@asynccontextmanager
async def hold_seat(display: str, name: str) -> AsyncIterator[Seat]:
    """Hold the seat `name` of a display (its selection is `_DESKBRIDGE_<NAME>`).

    Raises SeatBusy when somebody holds it, DisplayDead when the server does not answer.
    """
    connection = XConnection(display)
    try:
        selection = selection_of(name)
        seat = await connection.call(lambda d: _take(connection, d, selection), timeout=_TIMEOUT)
        try:
            yield seat
        finally:
            seat.close()
    finally:
        await connection.aclose()


def _take(connection: XConnection, display: Display, selection: str) -> Seat:
    root: Any = display.screen().root
    window = root.create_window(
        -10, -10, 1, 1, 0, X.CopyFromParent, override_redirect=True, event_mask=X.PropertyChangeMask
    )
    pid_atom = display.intern_atom("_NET_WM_PID")
    window.change_property(pid_atom, Xatom.CARDINAL, 32, [os.getpid()])
    atom, now = display.intern_atom(selection), _server_time(display, window)
    # Test and set are one step for every other client while the server is grabbed.
    display.grab_server()
    try:
        owner: Any = display.get_selection_owner(atom)
        if owner != X.NONE:
            claim = whole_property(owner, pid_atom)
            raise SeatBusy(display.get_display_name(), claim.value[0] if claim else None)
        window.set_selection_owner(atom, now)
        owner = display.get_selection_owner(atom)
        if owner == X.NONE or owner.id != window.id:
            raise CommandFailed("the server refused the seat's selection")
    finally:
        display.ungrab_server()
        display.flush()
    _announce(display, root, atom, window, now)
    return Seat(connection, socket_of(display).fileno(), atom, window.id)


def _server_time(display: Display, window: Any) -> int:
    stamp = display.intern_atom("_DESKBRIDGE_STAMP")
    window.change_property(stamp, Xatom.STRING, 8, b"")
    while True:
        got: Any = display.next_event()
        if got.type == X.PropertyNotify and got.atom == stamp:
            return int(got.time)


def _announce(display: Display, root: Any, atom: int, window: Any, now: int) -> None:
    message = event.ClientMessage(
        window=root,
        client_type=display.intern_atom("MANAGER"),
        data=(32, [now, atom, window.id, 0, 0]),
    )
    root.send_event(message, event_mask=X.StructureNotifyMask)
    display.sync()
