"""Signing in: by itself, or with a code that a phone scans and confirms.

starting ──► signed in          qr ──► confirm ──► starting ──► signed in
                                ▲ │       │
                      clicked │ ▼       │ refused
                              expired     └──► qr, with a fresh code
"""

from __future__ import annotations

import re
import secrets
import time
import tkinter as tk
from collections.abc import Callable, Mapping
from typing import Any

from bridge.demoapp import theme
from bridge.demoapp.contacts import ACCOUNT
from bridge.demoapp.signin import SignInWindow

STARTING_MS = 500
"""How long signing in takes once it is certain who comes."""

QR_SECONDS = 120.0
"""How long a code can be scanned."""

ACCOUNT_NAME = re.compile(r"[a-z0-9._-]{1,40}")


def new_payload(now: float, seconds: float) -> str:
    """A code that nobody was shown before; it says itself until when (seconds since 1970)."""
    return f"https://demo.invalid/sign-in/{secrets.token_urlsafe(12)}?until={int(now + seconds)}"


class Signing:
    """The sign-in window while nobody is signed in, and what the phone does to it.

    `screen` is the name of the screen that shows (one of `demoapp.marks.MARKS`), `account` who
    is to come in. `on_signed_in` is called once, with the account.
    """

    def __init__(
        self,
        root: tk.Tk,
        fonts: theme.Fonts,
        *,
        qr_seconds: float,
        on_close: Callable[[], None],
        on_signed_in: Callable[[str], None],
    ) -> None:
        self.screen = ""
        self.account = ACCOUNT
        self.payload = ""
        self._root = root
        self._qr_seconds = qr_seconds
        self._on_signed_in = on_signed_in
        self._timer: str | None = None
        self._view = SignInWindow(root, fonts, on_close)

    @property
    def window(self) -> tk.Toplevel:
        """The window, for a dialog to stand before."""
        return self._view.window

    def start(self, account: str = ACCOUNT) -> None:
        """Sign this account in, shortly."""
        self.screen, self.account = "starting", account
        self._view.show_starting()
        self._after(STARTING_MS, lambda: self._on_signed_in(account))

    def ask(self) -> None:
        """Show a fresh code."""
        self.screen, self.account = "qr", ACCOUNT
        self.payload = new_payload(time.time(), self._qr_seconds)
        self._view.show_qr(self.payload)
        self._after(round(self._qr_seconds * 1000), self._expire)

    def _expire(self) -> None:
        self.screen = "expired"
        self._view.show_expired(self.payload, self.ask)

    def phone(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """One move of the phone; what the app shows then. ValueError when it cannot be made."""
        move = request["phone"]
        account = request.get("account") or (self.account if self.screen == "confirm" else ACCOUNT)
        if not ACCOUNT_NAME.fullmatch(account):
            raise ValueError(f"{account!r} is no account's name")
        if move == "scan":
            self._scan(account, request.get("payload"))
        elif self.screen != "confirm":
            raise ValueError(f"nothing was scanned: the app shows {self.screen}")
        elif move == "confirm":
            self.start(account)
        elif move == "refuse":
            self.ask()
        else:
            raise ValueError(f"no such move: {move}")
        return {"screen": self.screen, "account": self.account, "payload": self.payload}

    def _scan(self, account: str, payload: str | None) -> None:
        if self.screen != "qr":
            raise ValueError(f"there is no code to scan: the app shows {self.screen}")
        if payload not in {None, self.payload}:
            raise ValueError("this is not the code that the app shows")
        self.screen, self.account = "confirm", account
        self._after(None, None)
        self._view.show_confirm(account)

    def _after(self, ms: int | None, action: Callable[[], None] | None) -> None:
        """Have one thing happen later, instead of what was to happen before."""
        if self._timer is not None:
            self._root.after_cancel(self._timer)
        self._timer = None if ms is None or action is None else self._root.after(ms, action)

    def close(self) -> None:
        """Take the window away."""
        self._after(None, None)
        self._view.close()
