"""What an accessibility tree is made of, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class Ref(NamedTuple):
    """Where an element lives: the app's name on the bus, and the object's path there.

    It stays good until the app ends or takes the element away.
    """

    bus: str
    path: str


@dataclass(frozen=True, slots=True)
class AccessibleApp:
    """A program that offers its tree. `pid` is told by the bus, not by the program."""

    ref: Ref
    name: str
    pid: int


STATES: dict[int, str] = {
    1: "active",
    3: "busy",
    4: "checked",
    5: "collapsed",
    6: "defunct",
    7: "editable",
    8: "enabled",
    9: "expandable",
    10: "expanded",
    11: "focusable",
    12: "focused",
    15: "iconified",
    16: "modal",
    17: "multi_line",
    20: "pressed",
    22: "selectable",
    23: "selected",
    24: "sensitive",
    25: "showing",
    26: "single_line",
    30: "visible",
    41: "checkable",
    43: "read_only",
}
"""AtspiStateType bits that say something about a chat window; the others are left out."""


def states_of(low: int, high: int) -> frozenset[str]:
    """The names of the bits in the two words of GetState."""
    bits = low | high << 32
    return frozenset(name for bit, name in STATES.items() if bits >> bit & 1)


@dataclass(frozen=True, slots=True)
class Element:
    """One element.

    `role` is the protocol's English word ("push button"); `text` holds at most `Limits.text`
    characters and is None when the element has no text; `actions` are what the app calls them.
    """

    ref: Ref
    role: str
    name: str
    states: frozenset[str]
    text: str | None = None
    actions: tuple[str, ...] = ()
    children: tuple[Element, ...] = field(default=(), repr=False)

    @property
    def showing(self) -> bool:
        """Whether it is on the screen, as the app says."""
        return {"showing", "visible"} <= self.states

    @property
    def usable(self) -> bool:
        """Whether it is on the screen and takes input."""
        return self.showing and bool(self.states & {"enabled", "sensitive"})

    def walk(self) -> Iterator[Element]:
        """The element itself and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def find(
        self,
        role: str | None = None,
        name: str | None = None,
        where: Callable[[Element], bool] | None = None,
    ) -> list[Element]:
        """Every element below (and this one) of exactly that role and name, that `where` takes."""
        return [
            e
            for e in self.walk()
            if role in {None, e.role} and name in {None, e.name} and (where is None or where(e))
        ]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a tree is read: a long list of messages must not cost minutes."""

    elements: int = 2_000
    depth: int = 40
    children: int = 400
    """Of one element; of a longer list the last ones are read, where a chat's newest are."""
    text: int = 20_000


@dataclass(frozen=True, slots=True)
class Tree:
    """One reading. `complete` is False when a limit cut it short."""

    root: Element
    complete: bool
    count: int
