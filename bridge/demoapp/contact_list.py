"""The left side: who is signed in, the search box, and the list of contacts."""

from __future__ import annotations

import time
import tkinter as tk
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bridge.demoapp import theme
from bridge.demoapp.contacts import CONTACTS, Contact
from bridge.demoapp.editing import make_entry
from bridge.demoapp.memory import Message
from bridge.demoapp.shapes import Shapes

ROW = 60
AVATAR = 42


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the list: a contact, its newest message, and whether it stands out."""

    contact: Contact
    last: Message | None
    open: bool
    hot: bool


def initials(name: str) -> str:
    """One or two signs that stand for a name."""
    words = name.split()
    latin = [word[0] for word in words if word[0].isascii()]
    return "".join(latin[:2]).upper() if len(words) == len(latin) else name[0]


def avatar_colour(contact: Contact) -> str:
    """The colour of a contact's avatar; the same on every start."""
    ids = [known.id for known in CONTACTS]
    place = ids.index(contact.id) if contact.id in ids else sum(contact.id.encode())
    return theme.AVATARS[place % len(theme.AVATARS)]


class SidePanel:
    """Draws the left side; what a click or key means is decided by the callbacks."""

    def __init__(
        self,
        parent: tk.Misc,
        fonts: theme.Fonts,
        shapes: Shapes,
        *,
        account: str,
        paste_text: Callable[[Callable[[str], None]], None],
        on_pick: Callable[[Contact], None],
        on_menu: Callable[[], None],
    ) -> None:
        self._fonts, self._shapes = fonts, shapes
        self._on_pick = on_pick
        self._rows: Sequence[Row] = ()
        self.frame = frame = tk.Frame(parent, width=theme.SIDE, background=theme.SIDE_BG)
        frame.pack_propagate(False)
        self._head(account, on_menu)
        self.search = self._search_box(paste_text)
        self._list = tk.Canvas(frame, background=theme.SIDE_BG, highlightthickness=0)
        self._list.pack(fill="both", expand=True)
        self._list.bind("<Button-1>", self._clicked)
        self._list.bind("<Button-4>", lambda _event: self._list.yview_scroll(-1, "units"))
        self._list.bind("<Button-5>", lambda _event: self._list.yview_scroll(1, "units"))

    def _head(self, account: str, on_menu: Callable[[], None]) -> None:
        head = tk.Canvas(self.frame, height=64, background=theme.SIDE_BG, highlightthickness=0)
        head.pack(fill="x")
        disc = self._shapes.disc(36, theme.ACCENT, theme.SIDE_BG)
        head.create_image(32, 34, image=disc)
        head.create_text(32, 34, text=account[0].upper(), font=self._fonts.avatar, fill=theme.PAPER)
        head.create_text(60, 25, text=account, font=self._fonts.bold, fill=theme.INK, anchor="w")
        self._head_canvas = head
        self._lamp = head.create_image(66, 46)
        self._lamp_text = head.create_text(
            77, 45, font=self._fonts.small, fill=theme.MUTED, anchor="w"
        )
        self.menu_button = tk.Button(self.frame, text="☰", font=self._fonts.title, command=on_menu)
        self.menu_button.configure(relief="flat", borderwidth=0, highlightthickness=0)
        self.menu_button.configure(background=theme.SIDE_BG, foreground=theme.MUTED, takefocus=0)
        self.menu_button.place(x=theme.SIDE - 48, y=16, width=36, height=36)
        self.show_connection(offline=False)

    def _search_box(self, paste_text: Callable[[Callable[[str], None]], None]) -> tk.Entry:
        box = tk.Frame(self.frame, background=theme.PAPER)
        box.configure(highlightthickness=1, highlightbackground=theme.LINE)
        box.configure(highlightcolor=theme.ACCENT)
        box.pack(fill="x", padx=12, pady=(0, 10))
        glass = tk.Label(box, text="⌕", font=self._fonts.title, foreground=theme.MUTED)
        glass.configure(background=theme.PAPER)
        glass.pack(side="left", padx=(8, 2))
        entry = make_entry(box, self._fonts.text, paste_text)
        entry.pack(side="left", fill="x", expand=True, ipady=5, padx=(0, 8))
        return entry

    def show_connection(self, *, offline: bool) -> None:
        """The lamp under the account's name."""
        colour, words = (theme.DEAD, "offline") if offline else (theme.GOOD, "online")
        disc = self._shapes.disc(9, colour, theme.SIDE_BG)
        self._head_canvas.itemconfigure(self._lamp, image=disc)
        self._head_canvas.itemconfigure(self._lamp_text, text=words)

    def show(self, rows: Sequence[Row]) -> None:
        """Draw the list anew."""
        self._rows = rows
        self._list.delete("all")
        for index, row in enumerate(rows):
            self._draw_row(index * ROW, row)
        if not rows:
            self._list.create_text(
                theme.SIDE // 2, 40, text="No hits", font=self._fonts.text, fill=theme.MUTED
            )
        self._list.configure(scrollregion=(0, 0, theme.SIDE, max(ROW, len(rows) * ROW)))

    def _draw_row(self, top: int, row: Row) -> None:
        back = theme.SIDE_HOT if row.hot else theme.SIDE_OPEN if row.open else theme.SIDE_BG
        draw, middle, left = self._list, top + ROW // 2, 66
        draw.create_rectangle(0, top, theme.SIDE, top + ROW, fill=back, width=0)
        disc = self._shapes.disc(AVATAR, avatar_colour(row.contact), back)
        draw.create_image(34, middle, image=disc)
        letters = initials(row.contact.shown)
        draw.create_text(34, middle, text=letters, font=self._fonts.avatar, fill=theme.PAPER)
        if row.contact.presence in ("online", "away"):
            lamp = self._shapes.disc(11, theme.PRESENCE[row.contact.presence], back)
            draw.create_image(49, middle + 15, image=lamp)
        draw.create_text(
            left, middle - 10, text=row.contact.shown, font=self._fonts.bold, fill=theme.INK,
            anchor="w",
        )  # fmt: skip
        under = one_line(row.last.text) if row.last else row.contact.presence
        draw.create_text(
            left, middle + 11, text=under, font=self._fonts.small, fill=theme.MUTED, anchor="w"
        )
        if row.last:
            when = time.strftime("%H:%M", time.localtime(row.last.ts / 1000))
            draw.create_text(
                theme.SIDE - 12, middle - 10, text=when, font=self._fonts.small,
                fill=theme.MUTED, anchor="e",
            )  # fmt: skip

    def _clicked(self, event: tk.Event[tk.Canvas]) -> None:
        index = int(self._list.canvasy(event.y)) // ROW
        if 0 <= index < len(self._rows):
            self._on_pick(self._rows[index].contact)


def one_line(text: str, limit: int = 24) -> str:
    """The start of a text without line breaks."""
    words = " ".join(text[: 4 * limit].split())
    return words if len(words) <= limit else words[: limit - 1] + "…"
