"""Who there is in the demo app's world, and how a search finds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

SEPARATOR = " / "
"""Stands between remark and name; a remark never contains it."""


@dataclass(frozen=True, slots=True)
class Contact:
    """A person or group. `id` is the account id: short, ASCII, unique."""

    id: str
    name: str
    presence: str = "online"
    remark: str = ""

    @property
    def shown(self) -> str:
        """What the contact is called on the screen: the remark if there is one."""
        return self.remark or self.name

    @property
    def label(self) -> str:
        """`remark / name [id]`, or `name [id]`: the words of the window title."""
        words = f"{self.remark}{SEPARATOR}{self.name}" if self.remark else self.name
        return f"{words} [{self.id}]"

    def matches(self, query: str) -> bool:
        """Whether the search text is a part of id, name or remark, in any case."""
        wanted = query.casefold()
        return any(wanted in part.casefold() for part in (self.id, self.name, self.remark))


ACCOUNT = "demo"
"""The account that the app signs in as."""

CONTACTS: tuple[Contact, ...] = (
    Contact("alice", "Alice"),
    Contact("alice.smith", "Alice Smith", "away"),
    Contact("bob", "Bob", "offline"),
    Contact("zhangsan", "张三"),
    Contact("lilei.1", "李雷"),
    Contact("lilei.2", "李雷", "away"),
    Contact("party", "🎉 Party", "7 members"),
)
"""The contacts of a fresh account, in the order of the list."""

STRANGERS: tuple[Contact, ...] = (Contact("carol", "Carol"),)
"""Accounts that exist and are no contacts yet."""


def search(contacts: Iterable[Contact], query: str) -> list[Contact]:
    """The contacts that match, in list order; all of them for an empty query."""
    return [contact for contact in contacts if contact.matches(query)]
