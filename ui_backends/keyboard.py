"""Keys and buttons that are down, and letting them go; blocking, for `XConnection.call`."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from Xlib import XK, X
from Xlib.display import Display
from Xlib.ext import xtest

from ui_backends.base import CommandFailed

_KEY = re.compile(r"[A-Za-z0-9_]+")

_BUTTONS = {
    1: X.Button1Mask,
    2: X.Button2Mask,
    3: X.Button3Mask,
    4: X.Button4Mask,
    5: X.Button5Mask,
}

ALIASES: Mapping[str, str] = {
    "ctrl": "Control_L",
    "shift": "Shift_L",
    "alt": "Alt_L",
    "super": "Super_L",
}
"""Short names of modifiers, as xdotool knows them."""


@functools.cache
def _names() -> Mapping[int, str]:
    """X keysym names by number."""
    names: dict[int, str] = {}
    for name in dir(XK):
        if name.startswith("XK_"):
            names.setdefault(int(getattr(XK, name)), name.removeprefix("XK_"))
    return names


def keysym(name: str) -> int:
    """The keysym of a key's name, 0 when there is none."""
    return int(XK.string_to_keysym(ALIASES.get(name, name)))


def check_keys(keys: Sequence[str]) -> None:
    """Refuse what is not the name of a key, before anything is pressed."""
    for key in keys:
        if not _KEY.fullmatch(key) or not keysym(key):
            error = CommandFailed(f"there is no key {key!r}")
            error.executed = False
            raise error


def keys_down(display: Display) -> list[int]:
    """Keycodes that the server holds for pressed, by any client."""
    keymap: Any = display.query_keymap()
    return [8 * i + bit for i, byte in enumerate(keymap) for bit in range(8) if byte >> bit & 1]


def buttons_down(display: Display) -> list[int]:
    """Pointer buttons (1 to 5) that are pressed."""
    mask = display.screen().root.query_pointer().mask
    return [button for button, bit in _BUTTONS.items() if mask & bit]


def key_name(display: Display, code: int) -> str:
    """The name of the keysym on a keycode, or its number."""
    return _names().get(display.keycode_to_keysym(code, 0), f"keycode {code}")


def release_everything(display: Display) -> list[str]:
    """Release every key and button that is down; the names of what was down."""
    keys, buttons = keys_down(display), buttons_down(display)
    for code in keys:
        xtest.fake_input(display, X.KeyRelease, code)
    for button in buttons:
        xtest.fake_input(display, X.ButtonRelease, button)
    if keys or buttons:
        display.sync()
    return [key_name(display, code) for code in keys] + [f"button {b}" for b in buttons]
