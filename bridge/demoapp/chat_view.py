"""The right side: the open chat's name, its bubbles, and the entry."""

from __future__ import annotations

import time
import tkinter as tk
from collections.abc import Callable, Sequence
from tkinter import font as tkfont

from bridge.demoapp import theme
from bridge.demoapp.contacts import Contact
from bridge.demoapp.editing import PasteText, make_text
from bridge.demoapp.memory import Message
from bridge.demoapp.shapes import Shapes, rounded

RADIUS = 14
PAD_X, PAD_Y = 14, 9
SHOWN = 1_500
"""Characters of a message that its bubble shows; the journal has all."""


class ChatView:
    """Draws one chat at a time; the entry keeps its draft when nothing else is opened."""

    def __init__(
        self,
        parent: tk.Misc,
        fonts: theme.Fonts,
        shapes: Shapes,
        *,
        paste_text: PasteText,
        on_send: Callable[[], None],
    ) -> None:
        self._fonts, self._shapes = fonts, shapes
        self._measure = tkfont.Font(font=fonts.small).measure
        self.frame = tk.Frame(parent, background=theme.CHAT_BG)
        self._head = tk.Canvas(self.frame, height=64, background=theme.PAPER, highlightthickness=0)
        self._head.pack(fill="x")
        tk.Frame(self.frame, height=1, background=theme.LINE).pack(fill="x")
        self._composer(paste_text, on_send)
        self._bubbles = tk.Canvas(self.frame, background=theme.CHAT_BG, highlightthickness=0)
        self._bubbles.pack(fill="both", expand=True)
        self._bubbles.bind("<Button-4>", lambda _event: self._bubbles.yview_scroll(-2, "units"))
        self._bubbles.bind("<Button-5>", lambda _event: self._bubbles.yview_scroll(2, "units"))
        self._bubbles.bind("<Configure>", lambda _event: self._draw_bubbles())
        self._contact: Contact | None = None
        self._messages: Sequence[Message] = ()

    def _composer(self, paste_text: PasteText, on_send: Callable[[], None]) -> None:
        panel = tk.Frame(self.frame, height=theme.COMPOSER, background=theme.PAPER)
        panel.pack(side="bottom", fill="x")
        tk.Frame(self.frame, height=1, background=theme.LINE).pack(side="bottom", fill="x")
        left, top, right, bottom = theme.ENTRY_INSET
        self.entry = make_text(panel, self._fonts.text, paste_text)
        self.entry.place(
            x=left, y=top, relwidth=1, width=-left - right, relheight=1, height=-top - bottom
        )
        hint = tk.Label(panel, text="Return sends · Shift+Return starts a new line")
        hint.configure(font=self._fonts.small, background=theme.PAPER, foreground=theme.DEAD)
        hint.place(x=left - 2, rely=1, y=-30)
        send = tk.Button(panel, text="Send", font=self._fonts.bold, command=on_send, takefocus=0)
        send.configure(relief="flat", borderwidth=0, highlightthickness=0)
        send.configure(background=theme.PAPER, foreground=theme.ACCENT)
        send.place(relx=1, rely=1, x=-16, y=-6, anchor="se", height=28)

    def show(self, contact: Contact | None, messages: Sequence[Message]) -> None:
        """Show this chat, its end in sight; None shows an empty page."""
        self._contact, self._messages = contact, messages
        self._draw_head()
        self._draw_bubbles()

    def _draw_head(self) -> None:
        self._head.delete("all")
        if self._contact is None:
            return
        self._head.create_text(
            20, 22, text=self._contact.shown, font=self._fonts.title, fill=theme.INK, anchor="w"
        )
        presence = self._contact.presence
        colour = theme.PRESENCE.get(presence, theme.GOOD)
        self._head.create_image(25, 46, image=self._shapes.disc(9, colour, theme.PAPER))
        self._head.create_text(
            36, 45, text=presence, font=self._fonts.small, fill=theme.MUTED, anchor="w"
        )

    def _draw_bubbles(self) -> None:
        self._bubbles.delete("all")
        if self._contact is None or not self._messages:
            words = "No messages yet" if self._contact else "Choose a contact"
            middle = self._bubbles.winfo_width() // 2, self._bubbles.winfo_height() // 2
            self._bubbles.create_text(*middle, text=words, font=self._fonts.text, fill=theme.MUTED)
            return
        bottom = 14
        for message in self._messages:
            bottom = self._draw_bubble(bottom, message) + 8
        height = max(bottom + 6, self._bubbles.winfo_height())
        self._bubbles.configure(scrollregion=(0, 0, self._bubbles.winfo_width(), height))
        self._bubbles.yview_moveto(1.0)

    def _draw_bubble(self, top: int, message: Message) -> int:
        """Draw one bubble below `top` and return where it ends."""
        draw, width = self._bubbles, self._bubbles.winfo_width()
        when = time.strftime("%H:%M", time.localtime(message.ts / 1000))
        text = draw.create_text(
            0, 0, text=bubble_text(message.text), font=self._fonts.text, fill=theme.INK,
            anchor="nw", width=min(400, width - 120),
        )  # fmt: skip
        left, upper, right, lower = draw.bbox(text)
        inner = max(right - left, self._measure(when))
        bubble_width = inner + 2 * PAD_X
        x = width - 18 - bubble_width if message.mine else 18
        end = top + (lower - upper) + 2 * PAD_Y + 16
        colour = theme.MINE if message.mine else theme.THEIRS
        corners = self._shapes.corners(RADIUS, colour, theme.CHAT_BG)
        rounded(draw, (x, top, x + bubble_width, end), RADIUS, corners, colour)
        draw.coords(text, x + PAD_X, top + PAD_Y)
        draw.tag_raise(text)
        draw.create_text(
            x + bubble_width - PAD_X, end - 5, text=when, font=self._fonts.small,
            fill=theme.MUTED, anchor="se",
        )  # fmt: skip
        return end


def bubble_text(text: str) -> str:
    """What a bubble shows of a message."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text):,} characters)"
