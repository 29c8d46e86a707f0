"""The sign-in window and its screens."""

from __future__ import annotations

import secrets
import tkinter as tk
from collections.abc import Callable

from bridge.demoapp import theme, titles
from bridge.demoapp.shapes import qr_image
from bridge.demoapp.windows import claim


class SignInWindow:
    """Shows one screen at a time: `starting` or `qr`."""

    def __init__(self, root: tk.Tk, fonts: theme.Fonts, on_close: Callable[[], None]) -> None:
        self._fonts = fonts
        self._qr: tk.PhotoImage | None = None
        self.window = window = tk.Toplevel(root, class_=titles.WM_CLASS, background=theme.PAPER)
        window.title(titles.SIGN_IN)
        left = (root.winfo_screenwidth() - theme.SIGN_IN_WIDTH) // 2
        top = (root.winfo_screenheight() - theme.SIGN_IN_HEIGHT) // 2
        window.geometry(f"{theme.SIGN_IN_WIDTH}x{theme.SIGN_IN_HEIGHT}+{left}+{top}")
        window.resizable(False, False)
        claim(window, on_close)
        self._screen = tk.Frame(window)

    def _fresh_screen(self) -> tk.Frame:
        self._screen.destroy()
        self._screen = tk.Frame(self.window, background=theme.PAPER)
        self._screen.place(x=0, y=0, relwidth=1, relheight=1)
        heading = tk.Label(self._screen, text=titles.APP, font=self._fonts.big)
        heading.configure(background=theme.PAPER, foreground=theme.INK)
        heading.place(relx=0.5, y=48, anchor="center")
        return self._screen

    def _words(self, screen: tk.Frame, text: str, y: int) -> None:
        label = tk.Label(screen, text=text, font=self._fonts.text)
        label.configure(background=theme.PAPER, foreground=theme.MUTED, wraplength=260)
        label.place(relx=0.5, y=y, anchor="center")

    def show_starting(self) -> None:
        """The screen of the moment before the account is in."""
        self._words(self._fresh_screen(), "Signing in…", 192)

    def show_qr(self) -> None:
        """The screen that waits for a phone; every visit has a code of its own."""
        screen = self._fresh_screen()
        x, y, width, height = theme.QR_BOX
        payload = f"https://demo.invalid/sign-in/{secrets.token_urlsafe(12)}"
        self._qr = qr_image(self.window, payload, min(width, height))
        code = tk.Label(screen, image=self._qr, borderwidth=0, background=theme.PAPER)
        code.place(x=x, y=y, width=width, height=height)
        self._words(screen, "Scan with your phone to sign in", 330)

    def close(self) -> None:
        """Take the window away."""
        self.window.destroy()
