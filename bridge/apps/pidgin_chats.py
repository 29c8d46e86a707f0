"""Opens the conversation with exactly one contact, and closes what a flow left open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import trio

from bridge.apps.pidgin_files import Contact, title_is_proof
from bridge.apps.pidgin_view import CONVERSATION, PidginView, Session, require_focus
from bridge.errors import BridgeError
from bridge.flow import RetryLater
from bridge.hands import Eyes, Hands
from ui_backends.base import Window, WindowId

NEW_MESSAGE = "New Instant Message"
RETURNS = 3
"""A completion popup eats a Return now and then; so often it is pressed for the dialog."""


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation window that was opened here for one address."""

    window: WindowId
    pid: int
    jid: str
    title: str

    def is_(self, window: Window) -> bool:
        """Whether this window, as seen now, is still that one."""
        return (window.id, window.pid, window.title) == (self.window, self.pid, self.title)


class Chats:
    """Conversation windows by contact.

    A window is used again only when it was opened here, by address, and still has its title:
    a title alone could belong to a room, to a namesake, or to a stranger's choice of name.
    """

    def __init__(self, view: PidginView) -> None:
        self._view = view
        self._opened: dict[str, Chat] = {}

    async def open(
        self, hands: Hands, session: Session, contacts: Sequence[Contact], target: Contact
    ) -> Chat:
        """The conversation with `target`, raised and focused.

        Raises BridgeError when a step fails, RetryLater when the window may be somebody else's.
        """
        chat = self._opened.get(target.jid)
        if chat and any(chat.is_(w) for w in session.windows):
            if target.title in {None, chat.title}:
                await hands.activate(chat.window)
                return chat
            del self._opened[target.jid]
        window = await self._ask(hands, session, target)
        if not title_is_proof(contacts, target):
            # A namesake's window may have come up in the same moment. Asking again raises the
            # window that belongs to the address; only a window raised twice is believed.
            again = await self._ask(hands, session, target)
            if again.id != window.id:
                raise RetryLater("two windows came up for one address", counts=True)
        chat = Chat(window.id, session.pid, target.jid, window.title)
        self._opened[target.jid] = chat
        return chat

    async def _ask(self, hands: Hands, session: Session, target: Contact) -> Window:
        """Ask Pidgin for the conversation with an address; the window that it raised."""
        await hands.activate(session.buddy_list.id)
        await hands.chord("ctrl", "m", window=session.buddy_list.id)
        dialog = await hands.until(
            f"the dialog {NEW_MESSAGE!r}", lambda: _dialog(hands, session), timeout=3
        )
        await hands.activate(dialog.id)
        await hands.chord("ctrl", "a", window=dialog.id)
        before = (await hands.capture(dialog.id)).tobytes()
        await hands.paste_text(dialog.id, target.jid)

        async def written() -> bool | None:
            return (await hands.capture(dialog.id)).tobytes() != before or None

        await hands.until("the address in the dialog", written, timeout=2)
        await self._confirm(hands, dialog)
        return await hands.until(
            "the conversation", lambda: _raised(hands, session, target), timeout=3
        )

    async def _confirm(self, hands: Hands, dialog: Window) -> None:
        async def closed() -> bool | None:
            return all(w.id != dialog.id for w in await hands.windows()) or None

        for _ in range(RETURNS):
            await hands.chord("Return", window=dialog.id)
            with trio.move_on_after(0.6):
                await hands.until("the dialog's end", closed, timeout=5)
                return
        raise BridgeError("UI_ERROR", f"{NEW_MESSAGE!r} does not close", executed=False)

    async def tidy(self, hands: Hands) -> None:
        """Close the dialog and the conversations that flows opened, and with them any draft."""
        seen = await self._view.look(hands)
        if seen.buddy_list is None:
            raise BridgeError("APP_NOT_READY", "Pidgin shows no buddy list", executed=False)
        opened = {chat.window for chat in self._opened.values()}
        ours = {w.id for w in seen.windows if w.id in opened or _is_left_over(w)}
        for window in ours:
            await hands.close_window(window)
        self._opened.clear()

        async def gone() -> bool | None:
            return not ours & {w.id for w in await hands.windows()} or None

        await hands.until("the end of the windows that were closed", gone, timeout=5)
        await hands.activate(seen.buddy_list.id)
        await require_focus(hands, seen.buddy_list.id)


def _is_left_over(window: Window) -> bool:
    return window.title == NEW_MESSAGE or (window.role == CONVERSATION and window.managed)


async def _dialog(eyes: Eyes, session: Session) -> Window | None:
    windows = await eyes.windows()
    return next((w for w in windows if w.pid == session.pid and w.title == NEW_MESSAGE), None)


async def _raised(eyes: Eyes, session: Session, target: Contact) -> Window | None:
    """The conversation window with the focus, if it may be the target's by its title."""
    active = await eyes.active_window()
    for window in await eyes.windows():
        if (window.id, window.pid, window.role) == (active, session.pid, CONVERSATION):
            return window if target.title in {None, window.title} else None
    return None
