"""`_NET_WM_PING`: does an app's event loop still turn? Blocking, for `XConnection.call`."""

from __future__ import annotations

import itertools
import select
import time
from typing import Any

from Xlib import X
from Xlib.display import Display
from Xlib.protocol import event

from ui_backends.base import Ping, WindowId
from ui_backends.xconn import socket_of, whole_property

_serials = itertools.count(int(time.monotonic() * 1000) & 0xFFFFFF)


def ping(display: Display, window: WindowId, timeout: float) -> Ping:
    """Ask and wait at most `timeout` seconds.

    An app that does not announce the protocol is asked all the same, for some answer; without
    an answer it is UNSUPPORTED. Raises an X error when the window is gone.
    """
    handle: Any = display.create_resource_object("window", window)
    protocols, name = display.intern_atom("WM_PROTOCOLS"), display.intern_atom("_NET_WM_PING")
    found = whole_property(handle, protocols)
    announced = found is not None and name in found.value
    root: Any = display.screen().root
    # GTK and Tk answer to the root with SubstructureNotify, Qt 6 with StructureNotify.
    root.change_attributes(event_mask=X.SubstructureNotifyMask | X.StructureNotifyMask)
    try:
        serial = next(_serials)
        data = [name, serial, window, 0, 0]
        message = event.ClientMessage(window=handle, client_type=protocols, data=(32, data))
        handle.send_event(message, event_mask=X.NoEventMask)
        if _answered(display, [name, serial, window], timeout):
            return Ping.ALIVE
    finally:
        root.change_attributes(event_mask=X.NoEventMask)
        display.sync()
        _drain(display)
    handle.get_geometry()  # a window that vanished meanwhile is not a silent one
    return Ping.SILENT if announced else Ping.UNSUPPORTED


def _answered(display: Display, wanted: list[int], timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while True:
        for _ in range(display.pending_events()):
            answer: Any = display.next_event()
            if answer.type & 0x7F == X.ClientMessage and list(answer.data[1])[:3] == wanted:
                return True
        # Reading may have put events into the library's own queue: look there before waiting.
        if display.pending_events():
            continue
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([socket_of(display)], [], [], left)[0]:
            return False


def _drain(display: Display) -> None:
    for _ in range(display.pending_events()):
        display.next_event()
