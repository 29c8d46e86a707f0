"""Modal dialogs: a question or a notice in front of the main window."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable, Sequence

from bridge.demoapp import theme, titles
from bridge.demoapp.windows import claim

Choice = tuple[str, Callable[[], None] | None]


class Dialog:
    """A transient window that takes focus and input until it is answered.

    The first choice is what Return presses; Escape closes the dialog and does nothing.
    """

    def __init__(
        self,
        parent: tk.Toplevel,
        fonts: theme.Fonts,
        *,
        title: str,
        text: str,
        choices: Sequence[Choice],
        on_close: Callable[[], None],
    ) -> None:
        self._on_close = on_close
        self.window = window = tk.Toplevel(
            parent, class_=titles.WM_CLASS, background=theme.PAPER, padx=24, pady=20
        )
        window.withdraw()
        window.title(title)
        window.transient(parent)
        window.attributes("-type", "dialog")
        window.resizable(False, False)
        claim(window, self.close)
        window.bind("<Escape>", lambda _event: self.close())
        self._draw(fonts, title, text, choices)
        self._show(parent)

    def _draw(self, fonts: theme.Fonts, title: str, text: str, choices: Sequence[Choice]) -> None:
        label = tk.Label(self.window, text=title, font=fonts.title, anchor="w")
        label.configure(background=theme.PAPER, foreground=theme.INK)
        label.pack(fill="x")
        body = tk.Label(self.window, text=text, font=fonts.text, justify="left", wraplength=300)
        body.configure(background=theme.PAPER, foreground=theme.INK)
        body.pack(fill="x", pady=(8, 18))
        bar = tk.Frame(self.window, background=theme.PAPER)
        bar.pack(fill="x")
        for index, (words, action) in enumerate(choices):
            self._button(bar, fonts, words, action, first=index == 0)

    def _button(
        self,
        bar: tk.Frame,
        fonts: theme.Fonts,
        words: str,
        action: Callable[[], None] | None,
        *,
        first: bool,
    ) -> None:
        back, ink = (theme.ACCENT, theme.PAPER) if first else (theme.LINE, theme.INK)
        button = tk.Button(bar, text=words, font=fonts.text, command=lambda: self._answer(action))
        button.configure(background=back, foreground=ink, activebackground=back)
        button.configure(activeforeground=ink, relief="flat", borderwidth=0, padx=16, pady=5)
        button.bind("<Return>", lambda _event: button.invoke())
        button.pack(side="right", padx=(8, 0))
        if first:
            self._first = button

    def _show(self, parent: tk.Toplevel) -> None:
        """Appear in the upper part of the parent, so that the entry stays in sight."""
        self.window.update_idletasks()
        left = parent.winfo_rootx() + (parent.winfo_width() - self.window.winfo_reqwidth()) // 2
        self.window.geometry(f"+{max(0, left)}+{parent.winfo_rooty() + 120}")
        self.window.deiconify()
        self.window.wait_visibility()
        self.window.grab_set()
        self.window.focus_force()
        self._first.focus_set()

    def _answer(self, action: Callable[[], None] | None) -> None:
        self.close()
        if action is not None:
            action()

    def close(self) -> None:
        """Take the dialog away; idempotent."""
        if self.window.winfo_exists():
            self.window.grab_release()
            self.window.destroy()
            self._on_close()
