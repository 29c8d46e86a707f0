"""What the app remembers, read back from the journal at start: contacts, chats, requests, moments.

Whatever happens is a line of the journal first; `Memory.apply` is how that line changes the
world, at start and while the app runs alike.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bridge.demoapp.contacts import ACCOUNT, CONTACTS, STRANGERS, Contact

KEPT = 200
"""Messages kept per chat; the journal keeps all."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message in a chat. `ts` is UTC milliseconds; `mine` tells who wrote it."""

    id: str
    text: str
    ts: int
    mine: bool = True
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """Somebody who would like to become a contact."""

    id: str
    contact: str
    name: str
    greeting: str = ""
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """A post. `author` is a contact's id, empty for one's own."""

    id: str
    text: str
    author: str = ""
    images: int = 0
    liked: bool = False
    comments: tuple[str, ...] = ()


class Memory:
    """One account's world. Grows only by what the journal already holds."""

    def __init__(self, journal: Iterable[Mapping[str, Any]], account: str = ACCOUNT) -> None:
        self._account = account
        self._contacts = {contact.id: contact for contact in CONTACTS}
        self._chats: dict[str, list[Message]] = {}
        self._requests: dict[str, Request] = {}
        self._moments: dict[str, Moment] = {}
        for entry in journal:
            self.apply(entry)

    # what happens

    def apply(self, entry: Mapping[str, Any]) -> None:
        """Take one line of the journal; other accounts' lines change nothing."""
        change = _CHANGES.get(entry.get("effect", ""))
        if change is not None and entry.get("account", ACCOUNT) == self._account:
            change(self, entry)

    def _message(self, entry: Mapping[str, Any]) -> None:
        said = entry["text"] if "text" in entry else f"📄 {entry['name']}"
        mine = entry["effect"] != "message_received"
        chat = entry.get("contact") or entry["to"]
        self._add(chat, Message(entry["message"], said, entry["ts"], mine=mine))

    def _forwarded(self, entry: Mapping[str, Any]) -> None:
        self._add(entry["contact"], Message(entry["forwarded"], entry["text"], entry["ts"]))

    def _add(self, contact: str, message: Message) -> None:
        chat = self._chats.setdefault(contact, [])
        chat.append(message)
        del chat[:-KEPT]

    def _revoked(self, entry: Mapping[str, Any]) -> None:
        chat = self._chats.get(entry["contact"], [])
        for place, message in enumerate(chat):
            if message.id == entry["message"]:
                chat[place] = replace(message, text="(revoked)", revoked=True)

    def _remark(self, entry: Mapping[str, Any]) -> None:
        known = self._contacts[entry["contact"]]
        self._contacts[known.id] = replace(known, remark=entry["remark"])

    def _new_contact(self, entry: Mapping[str, Any]) -> None:
        self._contacts[entry["contact"]] = Contact(entry["contact"], entry["name"])
        request = self._requests.get(entry.get("request", ""))
        if request is not None:
            self._requests[request.id] = replace(request, accepted=True)

    def _requested(self, entry: Mapping[str, Any]) -> None:
        request = Request(
            entry["request"], entry["contact"], entry["name"], entry.get("greeting", "")
        )
        self._requests[request.id] = request

    def _posted(self, entry: Mapping[str, Any]) -> None:
        words = [entry["url"]] if "url" in entry else []
        words += [entry["text"]] if entry["text"] else []
        self._moments[entry["moment"]] = Moment(
            entry["moment"], " ".join(words), entry.get("author", ""), len(entry.get("images", ()))
        )

    def _deleted(self, entry: Mapping[str, Any]) -> None:
        self._moments.pop(entry["moment"], None)

    def _liked(self, entry: Mapping[str, Any]) -> None:
        known = self._moments[entry["moment"]]
        self._moments[known.id] = replace(known, liked=entry["effect"] == "moment_liked")

    def _commented(self, entry: Mapping[str, Any]) -> None:
        known = self._moments[entry["moment"]]
        self._moments[known.id] = replace(known, comments=(*known.comments, entry["text"]))

    # what there is

    @property
    def contacts(self) -> tuple[Contact, ...]:
        """Everybody, in the order of the list."""
        return tuple(self._contacts.values())

    def contact(self, contact_id: str) -> Contact | None:
        """One contact as it is now."""
        return self._contacts.get(contact_id)

    def stranger(self, account: str) -> Contact | None:
        """An account that exists and is no contact."""
        found = [known for known in STRANGERS if known.id == account]
        return found[0] if found and account not in self._contacts else None

    def handle(self, contact: Contact) -> str:
        """What the journal calls a contact: its name, or its id where others have that name."""
        names = [known.name for known in self.contacts]
        return contact.id if names.count(contact.name) > 1 else contact.name

    def chat(self, contact_id: str) -> list[Message]:
        """The messages of a chat, oldest first."""
        return list(self._chats.get(contact_id, ()))

    def last(self, contact_id: str) -> Message | None:
        """The newest message of a chat."""
        chat = self._chats.get(contact_id)
        return chat[-1] if chat else None

    @property
    def requests(self) -> tuple[Request, ...]:
        """The friend requests, newest first."""
        return tuple(reversed(self._requests.values()))

    @property
    def moments(self) -> tuple[Moment, ...]:
        """The posts, newest first."""
        return tuple(reversed(self._moments.values()))


_CHANGES: Mapping[str, Callable[[Memory, Mapping[str, Any]], None]] = {
    "message_sent": Memory._message,
    "message_received": Memory._message,
    "file_sent": Memory._message,
    "message_forwarded": Memory._forwarded,
    "moment_forwarded": Memory._forwarded,
    "message_revoked": Memory._revoked,
    "remark_set": Memory._remark,
    "friend_added": Memory._new_contact,
    "friend_accepted": Memory._new_contact,
    "friend_requested": Memory._requested,
    "moment_published": Memory._posted,
    "moment_shared": Memory._posted,
    "moment_received": Memory._posted,
    "moment_deleted": Memory._deleted,
    "moment_liked": Memory._liked,
    "moment_unliked": Memory._liked,
    "moment_commented": Memory._commented,
}


def new_id(letter: str) -> str:
    """An id that nothing else has, before or after a restart: `m…` messages, `p…` posts."""
    return f"{letter}{secrets.token_hex(8)}"
