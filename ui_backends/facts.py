"""What a diagnosis asks an X server, all in one command; nothing is changed."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import trio
from Xlib import X
from Xlib.display import Display
from Xlib.ext import res

from ui_backends import keyboard, windows
from ui_backends.base import UiError
from ui_backends.display import _autorepeat, connected
from ui_backends.handshake import handshake
from ui_backends.lock import DisplayLock
from ui_backends.seatlock import selection_of
from ui_backends.xconn import whole_property

KEYS = (
    *("ctrl", "shift", "alt", "Return", "Escape", "Tab", "BackSpace", "Delete"),
    *("Up", "Down", "Left", "Right", "Home", "End"),
    *string.ascii_lowercase,
)
"""Keys that flows press by name; each has to be on the keyboard without a modifier."""

_ID_BITS = 29
"""Bits of a resource id that tell clients and their resources apart."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who owns a selection. `pid` is None when the X server does not know it."""

    client: int
    """The connection, as the high bits of its resource ids."""
    pid: int | None


@dataclass(frozen=True, slots=True)
class XFacts:
    """What an X server told, read in one go."""

    width: int
    height: int
    manager: str | None
    """The window manager's name, "" when it has none; None without a window manager."""
    autorepeat: bool
    down: tuple[str, ...]
    """Names of keys and buttons that are pressed."""
    unreachable: tuple[str, ...]
    """Those of `KEYS` that no key gives without a modifier."""
    caps_lock: bool
    clipboard_manager: Owner | None
    clipboard: Owner | None
    clients: int
    """Connections, this one included."""
    limit: int
    """The most connections that the server takes."""
    by_pid: Mapping[int, int]
    """Connections of each local process."""
    seat: Owner | None = None
    """The bridge that works this display, if one does."""


async def refusal(display: str, timeout: float = 2.0) -> str | None:
    """Why the server refuses a connection; None when it takes one. Raises DisplayDead."""
    status, reason = await trio.to_thread.run_sync(
        handshake, display, timeout, abandon_on_cancel=True
    )
    return None if status == 1 else reason.strip() or "no reason given"


async def read_facts(
    display: str, lock: DisplayLock, *, seat: str = "s0", timeout: float = 2.0
) -> XFacts:
    """Read under the display lock, through a connection of its own. Raises UiError."""
    async with lock.command("facts", presses=False), connected(display) as connection:
        return await connection.call(partial(_facts, seat=seat), timeout=timeout)


def _facts(display: Display, seat: str) -> XFacts:
    width, height = windows.screen_size(display)
    pointer: Any = display.screen().root.query_pointer()
    by_pid = _connections(display)
    return XFacts(
        width=width,
        height=height,
        manager=_manager(display),
        autorepeat=_autorepeat(display),
        down=_down(display),
        unreachable=tuple(name for name in KEYS if not _reachable(display, name)),
        caps_lock=bool(pointer.mask & X.LockMask),
        clipboard_manager=_owner(display, "CLIPBOARD_MANAGER"),
        clipboard=_owner(display, "CLIPBOARD"),
        clients=sum(by_pid.values()),
        limit=_limit(display),
        by_pid={pid: count for pid, count in by_pid.items() if pid},
        seat=_owner(display, selection_of(seat)),
    )


def _manager(display: Display) -> str | None:
    window = windows.supporting_wm(display)
    if window is None:
        return None
    handle = display.create_resource_object("window", window)
    name = whole_property(handle, display.intern_atom("_NET_WM_NAME"))
    value = b"" if name is None else name.value
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _down(display: Display) -> tuple[str, ...]:
    keys = [keyboard.key_name(display, code) for code in keyboard.keys_down(display)]
    return (*keys, *(f"button {number}" for number in keyboard.buttons_down(display)))


def _reachable(display: Display, name: str) -> bool:
    wanted = keyboard.keysym(name)
    return any(level == 0 for _code, level in display.keysym_to_keycodes(wanted))


def _owner(display: Display, selection: str) -> Owner | None:
    owner: Any = display.get_selection_owner(display.intern_atom(selection))
    if owner == X.NONE:
        return None
    info: Any = display.display.info
    try:
        pid = windows.pid_of(display, owner.id)
    except UiError:
        pid = None
    return Owner(owner.id & ~info.resource_id_mask, pid)


def _connections(display: Display) -> Counter[int]:
    """Connections by pid; those without one under 0."""
    if not display.has_extension("X-Resource"):
        return Counter()
    # The server counts itself in, under the resource base 0.
    total = sum(1 for c in res.query_clients(display).clients if c.resource_base)
    found: Counter[int] = Counter()
    everybody: Any = [{"client": 0, "mask": res.LocalClientPIDMask}]
    answer: Any = res.query_client_ids(display, everybody)
    for entry in answer.ids:
        if entry.spec.client and entry.value:
            found[int(getattr(entry.value[0], "value", entry.value[0]))] += 1
    found[0] = max(0, total - found.total())
    return found


def _limit(display: Display) -> int:
    """The server gives each client as many ids as its limit leaves room for; it is one itself."""
    info: Any = display.display.info
    return (1 << max(1, _ID_BITS - int(info.resource_id_mask).bit_count())) - 1
