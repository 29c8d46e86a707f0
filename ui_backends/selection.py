"""Owning a selection for one paste: the protocol (ICCCM 2), without threads.

`Server` handles the events of one connection. It serves only the X client that owns the armed
window, only requests that are not older than its ownership, and only text.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Any

from Xlib import X, Xatom
from Xlib.display import Display
from Xlib.protocol import event

from ui_backends.base import WindowId
from ui_backends.windows import same_client
from ui_backends.xconn import socket_of, whole_property

CHUNK = 200 * 1024
"""Bytes of a text above which it is handed over in pieces (INCR), and the size of a piece."""


class Offer:
    """One text for one client. The callbacks come from the serving thread.

    `begun` tells that the client asked for the text, `done` that it has all of it, `lost` that
    another client took the selection.
    """

    def __init__(self, window: WindowId, text: str, on_change: Callable[[], None]) -> None:
        self.window = window
        self.data = text.encode()
        self.latin = _latin(text)
        self.begun = self.done = self.lost = self.owned = False
        self.changed = on_change


def _latin(text: str) -> bytes | None:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return None


def _hidden_window(display: Display) -> Any:
    root: Any = display.screen().root
    mask = X.PropertyChangeMask
    return root.create_window(-10, -10, 1, 1, 0, X.CopyFromParent, event_mask=mask)


class Server:
    """The selection owner of one connection."""

    def __init__(self, display: Display, selection: str = "CLIPBOARD") -> None:
        self._display = display
        self._window = _hidden_window(display)
        atom = display.intern_atom
        self._selection = atom(selection)
        self._stamp = atom("_DESKBRIDGE_STAMP")
        self._targets, self._timestamp = atom("TARGETS"), atom("TIMESTAMP")
        self._utf8 = (atom("UTF8_STRING"), atom("text/plain;charset=utf-8"))
        self._incr = atom("INCR")
        self._offer: Offer | None = None
        # Server time of our ownership; older requests belong to an earlier paste.
        self._since = 0
        # What is still to be sent, by (requestor, property).
        self._pieces: dict[tuple[int, int], tuple[memoryview, int]] = {}

    def arm(self, offer: Offer) -> None:
        """Own the selection for `offer`; `offer.owned` tells whether that worked."""
        self._since = self._server_time()
        self._pieces.clear()
        self._offer = offer
        self._window.set_selection_owner(self._selection, self._since)
        owner: Any = self._display.get_selection_owner(self._selection)
        offer.owned = owner != X.NONE and owner.id == self._window.id
        offer.changed()

    def disarm(self) -> None:
        """Give the selection up: nothing can be pasted any more."""
        if self._offer is None:
            return
        self._offer = None
        self._pieces.clear()
        # Owner None by our own time: a no-op when somebody else owns it since.
        none: Any = self._display.create_resource_object("window", X.NONE)
        none.set_selection_owner(self._selection, self._since)
        self._display.sync()

    def _server_time(self) -> int:
        """The server's time, by an empty change of a property of our own."""
        self._window.change_property(self._stamp, Xatom.STRING, 8, b"", X.PropModeAppend)
        while True:
            got: Any = self._display.next_event()
            if got.type == X.PropertyNotify and got.atom == self._stamp:
                return int(got.time)
            self._handle(got)

    def pump(self) -> None:
        """Handle all events that are there."""
        while self._display.pending_events():
            self._handle(self._display.next_event())

    def _handle(self, got: Any) -> None:
        if got.type == X.SelectionRequest:
            self._request(got)
        elif got.type == X.SelectionClear and self._offer is not None:
            # A clear older than this ownership speaks of the one before.
            if got.time >= self._since:
                self._offer.lost = True
                self._offer.changed()
        elif got.type == X.PropertyNotify and got.state == X.PropertyDelete:
            self._next_piece(got.window, got.atom)

    def _request(self, got: Any) -> None:
        offer = self._offer
        kept = X.NONE
        if offer is not None and self._may_have(offer, got):
            # Old clients leave the property out; the target then names it.
            kept = self._answer(offer, got.requestor, got.property or got.target, got.target)
        answer = event.SelectionNotify(
            time=got.time,
            requestor=got.requestor,
            selection=got.selection,
            target=got.target,
            property=kept,
        )
        got.requestor.send_event(answer)
        self._display.flush()
        if offer is not None and kept != X.NONE:
            offer.changed()

    def _may_have(self, offer: Offer, got: Any) -> bool:
        current = got.time == X.CurrentTime or got.time >= self._since
        return current and same_client(self._display, got.requestor.id, offer.window)

    def _answer(self, offer: Offer, requestor: Any, name: int, target: int) -> int:
        """Put what was asked for into the requestor's property; NONE when it is refused."""
        if target == self._targets:
            latin = [] if offer.latin is None else [Xatom.STRING]
            offered = [self._targets, self._timestamp, *self._utf8, *latin]
            requestor.change_property(name, Xatom.ATOM, 32, offered)
            return name
        if target == self._timestamp:
            requestor.change_property(name, Xatom.INTEGER, 32, [self._since])
            return name
        data = offer.data if target in self._utf8 else offer.latin
        if data is None or target not in (*self._utf8, Xatom.STRING):
            return X.NONE
        offer.begun = True
        if len(data) > CHUNK:
            requestor.change_attributes(event_mask=X.PropertyChangeMask)
            self._pieces[requestor.id, name] = (memoryview(data), target)
            requestor.change_property(name, self._incr, 32, [len(data)])
        else:
            requestor.change_property(name, target, 8, data)
            offer.done = True
        return name

    def _next_piece(self, requestor: Any, name: int) -> None:
        """The requestor took a piece: send the next; an empty one ends the transfer."""
        found = self._pieces.get((requestor.id, name))
        if found is None or self._offer is None:
            return
        rest, target = found
        self._pieces[requestor.id, name] = (rest[CHUNK:], target)
        requestor.change_property(name, target, 8, bytes(rest[:CHUNK]))
        if not rest:
            del self._pieces[requestor.id, name]
            requestor.change_attributes(event_mask=X.NoEventMask)
            self._offer.done = True
        self._display.flush()
        if self._offer.done:
            self._offer.changed()


def read_selection(display: Display, timeout: float, selection: str = "CLIPBOARD") -> str | None:
    """The selection's text by asking its owner; None without an owner or without an answer.

    Blocks at most `timeout` seconds. Texts that the owner sends in pieces are put together.
    """
    window = _hidden_window(display)
    try:
        deadline = time.monotonic() + timeout
        name = display.intern_atom(selection)
        if display.get_selection_owner(name) == X.NONE:
            return None
        into, utf8 = display.intern_atom("_DESKBRIDGE_PASTE"), display.intern_atom("UTF8_STRING")
        window.convert_selection(name, utf8, into, X.CurrentTime)
        got = _await_event(display, deadline, lambda e: e.type == X.SelectionNotify)
        if got is None or got.property == X.NONE:
            return None
        found = whole_property(window, into)
        if found is None:
            return None
        if found.property_type != display.intern_atom("INCR"):
            return _decode(found.value)
        return _read_pieces(display, window, into, deadline)
    finally:
        window.destroy()
        display.sync()
        for _ in range(display.pending_events()):
            display.next_event()


def _decode(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _read_pieces(display: Display, window: Any, into: int, deadline: float) -> str | None:
    data = b""

    def filled(got: Any) -> bool:
        return bool(
            got.type == X.PropertyNotify and got.atom == into and got.state == X.PropertyNewValue
        )

    window.delete_property(into)
    while _await_event(display, deadline, filled) is not None:
        found = whole_property(window, into)
        window.delete_property(into)
        if found is None:
            continue
        if not found.value:
            return _decode(data)
        data += found.value
    return None


def _await_event(display: Display, deadline: float, wanted: Callable[[Any], bool]) -> Any:
    """The next event that is `wanted`, None after the deadline; others are dropped."""
    while True:
        while display.pending_events():
            got: Any = display.next_event()
            if wanted(got):
                return got
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([socket_of(display)], [], [], left)[0]:
            return None
