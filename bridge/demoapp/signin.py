"""The sign-in window and its screens."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable

from bridge.demoapp import marks, theme, titles
from bridge.demoapp.contact_list import avatar_colour
from bridge.demoapp.contacts import Contact
from bridge.demoapp.shapes import Shapes, photo, qr_image
from bridge.demoapp.windows import claim

AVATAR = 96


class SignInWindow:
    """Shows one screen at a time: `starting`, `qr`, `expired` or `confirm`.

    Each has its sign at the same place, so that they can be told apart without reading.
    """

    def __init__(self, root: tk.Tk, fonts: theme.Fonts, on_close: Callable[[], None]) -> None:
        self._fonts = fonts
        self._kept: list[tk.PhotoImage] = []
        """The images of the present screen: Tk forgets those that nobody holds."""
        self.window = window = tk.Toplevel(root, class_=titles.WM_CLASS, background=theme.PAPER)
        window.title(titles.SIGN_IN)
        left = (root.winfo_screenwidth() - theme.SIGN_IN_WIDTH) // 2
        top = (root.winfo_screenheight() - theme.SIGN_IN_HEIGHT) // 2
        window.geometry(f"{theme.SIGN_IN_WIDTH}x{theme.SIGN_IN_HEIGHT}+{left}+{top}")
        window.resizable(False, False)
        claim(window, on_close)
        self._shapes = Shapes(window)
        self._screen = tk.Frame(window)

    def _fresh_screen(self, mark: str, words: str) -> tk.Frame:
        """An empty screen with its heading, its sentence and its sign."""
        self._screen.destroy()
        self._kept.clear()
        self._screen = screen = tk.Frame(self.window, background=theme.PAPER)
        screen.place(x=0, y=0, relwidth=1, relheight=1)
        heading = tk.Label(screen, text=titles.APP, font=self._fonts.big)
        heading.configure(background=theme.PAPER, foreground=theme.INK)
        heading.place(relx=0.5, y=48, anchor="center")
        label = tk.Label(screen, text=words, font=self._fonts.text)
        label.configure(background=theme.PAPER, foreground=theme.MUTED, wraplength=260)
        label.place(relx=0.5, y=314, anchor="center")
        image = photo(self.window, marks.SIZE, marks.SIZE, marks.pixels(mark))
        x, y = theme.MARK_AT
        self._picture(screen, image, (x, y, marks.SIZE, marks.SIZE))
        return screen

    def _picture(
        self, screen: tk.Frame, image: tk.PhotoImage, box: tuple[int, int, int, int]
    ) -> tk.Label:
        self._kept.append(image)
        label = tk.Label(screen, image=image, borderwidth=0, background=theme.PAPER)
        x, y, width, height = box
        label.place(x=x, y=y, width=width, height=height)
        return label

    def _code(self, screen: tk.Frame, payload: str, ink: str) -> tk.Label:
        _, _, width, height = theme.QR_BOX
        image = qr_image(self.window, payload, min(width, height), ink)
        return self._picture(screen, image, theme.QR_BOX)

    def show_starting(self) -> None:
        """The screen of the moment before the account is in."""
        self._fresh_screen("starting", "Signing in…")

    def show_qr(self, payload: str) -> None:
        """The screen that waits for a phone."""
        self._code(self._fresh_screen("qr", "Scan with your phone to sign in"), payload, theme.INK)

    def show_expired(self, payload: str, renew: Callable[[], None]) -> None:
        """A code that has had its time; a click on it calls `renew`."""
        screen = self._fresh_screen("expired", "This code has expired, click to renew")
        code = self._code(screen, payload, theme.LINE)
        code.bind("<Button-1>", lambda _event: renew())

    def show_confirm(self, account: str) -> None:
        """The screen that waits for the phone's owner."""
        screen = self._fresh_screen("confirm", f"{account}\nConfirm on your phone")
        colour = avatar_colour(Contact(account, account))
        avatar = tk.Label(screen, image=self._shapes.disc(AVATAR, colour, theme.PAPER))
        avatar.configure(text=account[0].upper(), compound="center", font=self._fonts.big)
        avatar.configure(background=theme.PAPER, foreground=theme.PAPER, borderwidth=0)
        avatar.place(relx=0.5, y=192, anchor="center")

    def close(self) -> None:
        """Take the window away."""
        self.window.destroy()
