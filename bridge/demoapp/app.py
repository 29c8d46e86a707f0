"""The demo app itself: signs in and out, sends, and lets its faults strike."""

from __future__ import annotations

import os
import signal
import socket
import time
import tkinter as tk
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bridge.demoapp import journal, theme, titles
from bridge.demoapp.arrivals import arrive
from bridge.demoapp.contacts import ACCOUNT, Contact
from bridge.demoapp.control import ControlSocket, Faults
from bridge.demoapp.dialogs import Choice, Dialog
from bridge.demoapp.main_window import MainWindow
from bridge.demoapp.memory import Memory, new_id
from bridge.demoapp.signing import QR_SECONDS, Signing

REVOKE_SECONDS = 120.0
"""How long a message can be taken back, unless it is said otherwise."""

CRASHED = 70
"""Exit status of a crash that was asked for."""


class DemoApp:
    """One process of the app. `account` is who is signed in, or was last."""

    def __init__(
        self,
        state_dir: Path,
        *,
        manual: bool,
        qr_seconds: float = QR_SECONDS,
        revoke_seconds: float = REVOKE_SECONDS,
    ) -> None:
        self.account = ACCOUNT
        self.revoke_seconds = revoke_seconds
        self._state_dir = state_dir
        self._qr_seconds = qr_seconds
        self._journal = journal.Journal(state_dir)
        self._journal.write("started", pid=os.getpid())
        self.memory = Memory(())
        self.faults = Faults()
        self._dialog: Dialog | None = None
        self.asking = False
        self._main: MainWindow | None = None
        self._sign_in: Signing | None = None
        self._root = root = tk.Tk(className=titles.WM_CLASS)
        root.withdraw()
        self.fonts = theme.Fonts(root)
        self._control = ControlSocket(root, state_dir, self._asked, self._strike)
        self._wake_on_signals()
        self._open_sign_in(manual=manual)

    @property
    def offline(self) -> bool:
        """Whether the service is out of reach."""
        return self.faults.offline

    def run(self) -> None:
        """Serve until the window is closed or TERM arrives; the journal tells both."""
        self._root.mainloop()
        self._journal.write("stopped", pid=os.getpid())
        self._control.close()
        self._root.destroy()
        self._journal.close()

    def quit(self) -> None:
        """Leave the event loop."""
        self._root.quit()

    def _wake_on_signals(self) -> None:
        """Let TERM and INT through to Python at once, although Tk sits in its own wait."""
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda _number, _frame: self.quit())
        self._root.tk.createfilehandler(reader, tk.READABLE, lambda _f, _m: reader.recv(64))
        self._wakeup = reader, writer

    # sign-in

    def _open_sign_in(self, *, manual: bool) -> None:
        self._sign_in = Signing(
            self._root, self.fonts, qr_seconds=self._qr_seconds,
            on_close=self.quit, on_signed_in=self._signed_in,
        )  # fmt: skip
        if manual:
            self._sign_in.ask()
        else:
            self._sign_in.start()

    def _signed_in(self, account: str) -> None:
        self._journal.write("signed_in", account=account, pid=os.getpid())
        self.account = account
        self.memory = Memory(journal.entries(self._state_dir), account)
        if self._sign_in is not None:
            self._sign_in.close()
            self._sign_in = None
        self._main = MainWindow(self._root, self.fonts, self, self.quit)

    def _asked(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """What comes over the socket: a move of the phone, an arrival, or a fault."""
        if "arrive" in request:
            return self._arrives(request)
        if "phone" not in request:
            self.faults.apply(request)
            return {}
        if self._sign_in is not None:
            return self._sign_in.phone(request)
        if request["phone"] != "sign_out":
            raise ValueError(f"{self.account} is signed in already")
        self._signed_out()
        return {"account": self.account}

    def ask_sign_out(self) -> None:
        """Open the confirmation."""
        choices: list[Choice] = [("Sign out", self._signed_out), ("Cancel", None)]
        self._show_dialog(titles.SIGN_OUT, "You will need your phone to sign in again.", choices)

    def _signed_out(self) -> None:
        self._journal.write("signed_out", account=self.account, pid=os.getpid())
        if self._dialog is not None:
            self._dialog.close()
        if self._main is not None:
            self._main.close()
            self._main = None
        self._open_sign_in(manual=True)

    # what is done, and what arrives

    def send(self, contact: Contact, text: str) -> bool:
        """Send; True when it went out."""
        return self.act(
            "message_sent",
            to=self.memory.handle(contact),
            contact=contact.id,
            text=text,
            message=new_id("m"),
        )

    def act(self, effect: str, **facts: Any) -> bool:
        """Have it happen: into the journal, then on the screen. False when a fault prevents it."""
        if self.faults.take_popup("before_return"):
            self._notice()
            return False
        if self.offline:
            self._show_dialog(titles.NOTICE, "There is no connection.", [("OK", None)])
            return False
        if self.faults.crash_before_journal:
            os._exit(CRASHED)
        if self.faults.take_too_frequent():
            words = "You are doing this too frequently. Try again later."
            self._show_dialog(titles.TOO_FREQUENT, words, [("OK", None)])
            return False
        entry = self._journal.write(effect, **facts, account=self.account)
        if self.faults.crash_after_return:
            os._exit(CRASHED)
        self._happened(entry)
        return True

    def _happened(self, entry: Mapping[str, Any]) -> None:
        self.memory.apply(entry)
        if self._main is not None:
            self._main.reload()

    def _arrives(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._main is None:
            raise ValueError("nobody is signed in")
        effect, facts = arrive(request, self.memory)
        self._happened(self._journal.write(effect, **facts, account=self.account))
        return facts

    def refuse(self, why: str) -> None:
        """Say why something cannot be done."""
        self._show_dialog(f"{titles.REFUSED} - {why}", why, [("OK", None)])

    # faults

    def later(self, action: Callable[[], None]) -> None:
        """Do it now, or after the delay of slow drawing."""
        if self.faults.slow_ms:
            self._root.after(self.faults.slow_ms, action)
        else:
            action()

    def happened(self, moment: str) -> None:
        """Show the popup that waits for this moment."""
        if self.faults.take_popup(moment):
            self._notice()

    def _strike(self) -> None:
        if self.faults.crash:
            os._exit(CRASHED)
        if self.faults.freeze:
            seconds, self.faults.freeze = self.faults.freeze, 0.0
            time.sleep(seconds)
        self.happened("now")
        if self._main is not None:
            self._main.refresh()

    def _notice(self) -> None:
        self._show_dialog(titles.NOTICE, "A new version is available.", [("OK", None)])

    def _show_dialog(self, title: str, text: str, choices: list[Choice]) -> None:
        if self._dialog is not None:
            self._dialog.close()
        behind = self._main or self._sign_in
        if behind is None:
            return
        self.asking = True  # before the dialog shows: until then keys still reach the main window
        if self._main is not None:
            self._main.close_menu()
        self._dialog = Dialog(
            behind.window, self.fonts, title=title, text=text, choices=choices,
            on_close=self._dialog_closed,
        )  # fmt: skip

    def _dialog_closed(self) -> None:
        self._dialog = None
        self.asking = False
