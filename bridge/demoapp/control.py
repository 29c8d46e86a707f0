"""The app's side of the faults: what is switched on, and the socket that switches it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import tkinter as tk
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.demoapp.faults import FAULTS, MOMENTS, short_path


@dataclass
class Faults:
    """The faults that are on. Only `apply` and the moment they strike change them."""

    popup: str | None = None
    slow_ms: int = 0
    too_frequent: int = 0
    crash_after_return: bool = False
    crash_before_journal: bool = False
    offline: bool = False
    freeze: float = 0.0
    crash: bool = False

    def apply(self, request: Mapping[str, Any]) -> None:
        """Take one request; ValueError says what is wrong with it."""
        fault, on = request.get("fault"), not request.get("off", False)
        if fault not in FAULTS:
            raise ValueError(f"no such fault: {fault}")
        if fault == "popup":
            moment = request.get("on", "now")
            if moment not in MOMENTS:
                raise ValueError(f"no such moment: {moment}")
            self.popup = moment
        elif fault == "slow":
            self.slow_ms = int(request["ms"])
        elif fault == "too_frequent":
            self.too_frequent = int(request.get("count", 1))
        elif fault == "freeze":
            self.freeze = float(request["seconds"])
        else:
            setattr(self, fault, on)

    def take_popup(self, moment: str) -> bool:
        """Whether a popup is due at this moment; it appears once."""
        due = self.popup == moment
        if due:
            self.popup = None
        return due

    def take_too_frequent(self) -> bool:
        """Whether this send is one too many."""
        due = self.too_frequent > 0
        if due:
            self.too_frequent -= 1
        return due


class ControlSocket:
    """Listens for requests on the Tk event loop and answers each connection once.

    `handle` takes a request and returns what its answer tells, or raises ValueError; `strike` is
    called once the answer has left.
    """

    def __init__(
        self,
        root: tk.Tk,
        state_dir: Path,
        handle: Callable[[Any], Mapping[str, Any]],
        strike: Callable[[], None],
    ) -> None:
        self._root = root
        self._handle = handle
        self._strike = strike
        self._listener = socket.socket(socket.AF_UNIX)
        with short_path(state_dir) as path:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            self._listener.bind(path)
        self._listener.listen()
        root.tk.createfilehandler(self._listener, tk.READABLE, self._accept)

    def _accept(self, _file: Any, _mask: int) -> None:
        peer, _ = self._listener.accept()
        with peer, contextlib.suppress(OSError):
            # a peer that says nothing must not hold up the app
            peer.settimeout(0.2)
            line = peer.makefile("rb").readline(65_536)
            peer.sendall(json.dumps(self._answer(line)).encode() + b"\n")
        self._strike()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            told = self._handle(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return {"ok": False, "error": str(error) or type(error).__name__}
        return {"ok": True, **told}

    def close(self) -> None:
        """Stop listening."""
        self._root.tk.deletefilehandler(self._listener)
        self._listener.close()
