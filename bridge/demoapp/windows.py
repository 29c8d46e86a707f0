"""What every top-level window of the app tells the window manager."""

from __future__ import annotations

import socket
import tkinter as tk
from collections.abc import Callable


def claim(window: tk.Toplevel, on_close: Callable[[], None]) -> None:
    """Name the window's machine, which makes Tk set _NET_WM_PID, and say what closing does."""
    window.client(socket.gethostname())
    window.protocol("WM_DELETE_WINDOW", on_close)
