"""What the app remembers: the messages of each chat, read back from the journal at start."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bridge.demoapp.contacts import ACCOUNT

KEPT = 200
"""Messages kept per chat for the screen; the journal keeps all."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message in a chat. `ts` is UTC milliseconds; `mine` tells who wrote it."""

    id: str
    text: str
    ts: int
    mine: bool = True


class Memory:
    """One account's chats by contact id. Grows only by what the journal already holds."""

    def __init__(self, journal: Iterable[Mapping[str, Any]], account: str = ACCOUNT) -> None:
        self._chats: dict[str, list[Message]] = {}
        for entry in journal:
            mine = entry.get("account", ACCOUNT) == account
            if mine and entry.get("effect") == "message_sent":
                self.add(
                    entry.get("contact", entry["to"]),
                    Message(entry["message"], entry["text"], entry["ts"]),
                )

    def add(self, contact_id: str, message: Message) -> None:
        """Remember one more message of a chat."""
        chat = self._chats.setdefault(contact_id, [])
        chat.append(message)
        del chat[:-KEPT]

    def chat(self, contact_id: str) -> list[Message]:
        """The messages of a chat, oldest first."""
        return list(self._chats.get(contact_id, ()))

    def last(self, contact_id: str) -> Message | None:
        """The newest message of a chat."""
        chat = self._chats.get(contact_id)
        return chat[-1] if chat else None


def new_message_id() -> str:
    """An id that no other message has, before or after a restart."""
    return f"m{secrets.token_hex(8)}"
