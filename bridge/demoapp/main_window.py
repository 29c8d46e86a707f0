"""The main window: puts the two sides together and says what keys do."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable, Mapping
from typing import Protocol

from bridge.demoapp import talk, theme, titles
from bridge.demoapp.chat_view import ChatView
from bridge.demoapp.contact_list import Row, SidePanel
from bridge.demoapp.contacts import Contact, search
from bridge.demoapp.memory import Memory
from bridge.demoapp.moments import moments
from bridge.demoapp.search_state import Search
from bridge.demoapp.shapes import Shapes
from bridge.demoapp.windows import claim


class Desk(talk.Doer, Protocol):
    """What the window asks of the app behind it."""

    memory: Memory
    account: str
    asking: bool
    """A dialog is open, or about to be."""

    @property
    def offline(self) -> bool:
        """Whether the service is out of reach."""
        ...

    def send(self, contact: Contact, text: str) -> bool:
        """Send; True when it went out, so that the entry is emptied."""
        ...

    def ask_sign_out(self) -> None:
        """Open the confirmation."""
        ...


class MainWindow:
    """There while an account is signed in."""

    def __init__(
        self, root: tk.Tk, fonts: theme.Fonts, desk: Desk, on_close: Callable[[], None]
    ) -> None:
        self._desk = desk
        self.window = window = tk.Toplevel(root, class_=titles.WM_CLASS)
        claim(window, on_close)
        window.geometry(f"{theme.WIDTH}x{theme.HEIGHT}")
        window.minsize(640, 420)
        self._search: Search | None = None
        self._chat: Contact | None = None
        shapes = Shapes(window)
        self._page = tk.Frame(window, background=theme.PAPER)
        self._page.pack(fill="both", expand=True)
        self._side = SidePanel(
            self._page, fonts, shapes, account=desk.account, paste_text=self._paste_search,
            on_pick=self.open, on_menu=self._menu,
        )  # fmt: skip
        self._side.frame.pack(side="left", fill="y")
        tk.Frame(self._page, width=1, background=theme.LINE).pack(side="left", fill="y")
        self._view = ChatView(
            self._page, fonts, shapes, paste_text=self._paste_entry, on_send=self._send
        )
        self._view.frame.pack(side="left", fill="both", expand=True)
        self._menu_items = tk.Menu(window, tearoff=False, font=fonts.text)
        self._menu_items.add_command(label="Sign out…", underline=0, command=desk.ask_sign_out)
        self._menu_items.add_separator()
        for key, (words, action) in self._commands().items():
            self._menu_items.add_command(label=words, accelerator=key, command=action)
        self._bind()
        self.refresh()
        self._view.show(None, ())
        self._view.entry.focus_set()

    def _bind(self) -> None:
        box, entry = self._side.search, self._view.entry
        for field in (box, entry):
            field.bind("<Control-f>", self._open_search)
        self.window.bind("<Control-f>", self._open_search)
        self.window.bind("<F10>", self._key(self._menu))
        for name, (_, action) in self._commands().items():
            self.window.bind(f"<{name}>", self._key(action))
        box.bind("<FocusIn>", lambda _event: self._enter_search())
        box.bind("<KeyRelease>", lambda _event: self._search_changed())
        box.bind("<Down>", self._key(lambda: self._move(1)))
        box.bind("<Up>", self._key(lambda: self._move(-1)))
        box.bind("<Return>", self._key(self._open_hit))
        box.bind("<Escape>", self._key(self._leave_search))
        entry.bind("<FocusIn>", lambda _event: self._close_search())
        entry.bind("<Return>", self._key(self._send))
        entry.bind("<Shift-Return>", self._key(lambda: entry.insert("insert", "\n")))

    def _commands(self) -> Mapping[str, tuple[str, Callable[[], None]]]:
        """What can be done from here, by key."""
        desk, window = self._desk, self.window
        return {
            "F2": ("Remark…", self._with_chat(talk.remark)),
            "F3": ("Chat history…", self._with_chat(talk.history)),
            "F4": ("Friend requests…", lambda: talk.requests(desk, window)),
            "F5": ("Add friend…", lambda: talk.add_friend(desk, window)),
            "F6": ("Moments…", lambda: moments(desk, window)),
            "F7": ("Send file…", self._with_chat(talk.send_file)),
        }

    def _with_chat(
        self, action: Callable[[talk.Doer, tk.Toplevel, Contact], None]
    ) -> Callable[[], None]:
        def act() -> None:
            if self._chat is not None and not self._desk.asking:
                action(self._desk, self.window, self._chat)

        return act

    @staticmethod
    def _key(action: Callable[[], object]) -> Callable[[tk.Event[tk.Misc]], str]:
        def handler(_event: tk.Event[tk.Misc]) -> str:
            action()
            return "break"

        return handler

    def refresh(self) -> None:
        """Bring list, lamp and title up to date."""
        search_now, chat = self._search, self._chat
        contacts = self._desk.memory.contacts
        shown = search_now.hits if search_now and search_now.query else contacts
        hot = search_now.highlighted if search_now else None
        self._side.show(
            [
                Row(contact, self._desk.memory.last(contact.id), contact == chat, contact == hot)
                for contact in shown
            ]
        )
        self._side.show_connection(offline=self._desk.offline)
        part = search_now.title if search_now else None
        self.window.title(
            titles.main_title(
                self._desk.account, offline=self._desk.offline, chat=chat, search=part
            )
        )

    def reload(self) -> None:
        """Show what has changed: a message, a remark, a contact."""
        if self._chat is not None:
            self._chat = self._desk.memory.contact(self._chat.id)
        chat = self._chat
        self._view.show(chat, self._desk.memory.chat(chat.id) if chat else ())
        if self._search is not None and self._search.query:
            self._show_hits(self._search.query)
        self.refresh()

    def open(self, contact: Contact) -> None:
        """Open a chat; a draft for another contact is not taken along."""
        if self._chat is None or contact.id != self._chat.id:
            self._view.entry.delete("1.0", "end")
        self._chat = contact
        self._view.show(contact, self._desk.memory.chat(contact.id))
        self._view.entry.focus_set()
        self._close_search()
        self.refresh()

    def close(self) -> None:
        """Take the window away."""
        self.window.destroy()

    def close_menu(self) -> None:
        """Take the menu away if it is open: a dialog takes the keyboard that it holds."""
        self.window.tk.call("tk::MenuUnpost", self._menu_items)

    # search

    def _open_search(self, _event: tk.Event[tk.Misc]) -> str:
        self._side.search.focus_set()
        self._side.search.selection_range(0, "end")
        return "break"

    def _enter_search(self) -> None:
        if self._search is None:
            self._search = Search()
            self.refresh()

    def _paste_search(self, insert: Callable[[str], None]) -> None:
        text = self._clipboard()
        insert(text)
        self._search_changed()

    def _search_changed(self) -> None:
        query = self._side.search.get()
        if self._search is None or query == self._search.query:
            return
        self._desk.happened("search")
        self._desk.later(lambda: self._show_hits(query))

    def _show_hits(self, query: str) -> None:
        if self._search is None or query != self._side.search.get():
            return  # left, or typed on, while the drawing was slow
        self._search = Search(query, tuple(search(self._desk.memory.contacts, query)))
        self.refresh()

    def _move(self, steps: int) -> None:
        if self._search is not None:
            self._search = self._search.moved(steps)
            self.refresh()

    def _open_hit(self) -> None:
        if self._search is not None and self._search.highlighted is not None:
            self.open(self._search.highlighted)

    def _leave_search(self) -> None:
        self._view.entry.focus_set()
        self._close_search()

    def _close_search(self) -> None:
        if self._search is not None:
            self._search = None
            self._side.search.delete(0, "end")
            self.refresh()

    # entry

    def _paste_entry(self, insert: Callable[[str], None]) -> None:
        text = self._clipboard()
        self._desk.happened("paste")
        self._desk.later(lambda: insert(text))

    def _clipboard(self) -> str:
        try:
            return self.window.clipboard_get(type="UTF8_STRING")
        except tk.TclError:  # nobody owns it, or it holds no text
            return ""

    def _send(self) -> None:
        text = self._view.entry.get("1.0", "end-1c")
        chat = self._chat
        if chat is None or not text or not self._desk.send(chat, text):
            return
        self._view.entry.delete("1.0", "end")

    def _menu(self) -> None:
        if self._desk.asking:
            return  # the dialog holds the keyboard; a menu that opens now could not be closed
        button = self._side.menu_button
        x, y = button.winfo_rootx(), button.winfo_rooty() + button.winfo_height()
        self._menu_items.tk_popup(x, y)
