"""The search above the contact list as a value: query, hits, and which one is highlighted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bridge.demoapp.contacts import Contact
from bridge.demoapp.titles import search_part


@dataclass(frozen=True, slots=True)
class Search:
    """A search that is open. `position` counts from 0 and lies within `hits`, or is 0."""

    query: str = ""
    hits: tuple[Contact, ...] = ()
    position: int = 0

    def moved(self, steps: int) -> Search:
        """With the highlight further down (or up); it stops at the ends."""
        last = max(0, len(self.hits) - 1)
        return replace(self, position=max(0, min(last, self.position + steps)))

    @property
    def highlighted(self) -> Contact | None:
        """The hit that Return opens."""
        return self.hits[self.position] if self.query and self.hits else None

    @property
    def title(self) -> str:
        """What the window title says of it."""
        return search_part(self.query, list(self.hits), self.position)
