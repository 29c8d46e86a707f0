"""What the demo app's window titles say, as values. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bridge.demoapp.contacts import SEPARATOR
from bridge.demoapp.titles import APP

_MAIN = re.compile(
    rf"{re.escape(APP)} - (?P<account>[A-Za-z0-9._-]+?)(?P<offline> \(offline\))?"
    r"(?: - (?P<rest>.*))?",
    re.DOTALL,
)
_HIT = re.compile(r"search (?P<position>\d+)/(?P<count>\d+): (?P<label>.*)", re.DOTALL)
_LABEL = re.compile(r"(?P<words>.*) \[(?P<id>[A-Za-z0-9._-]+)\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Person:
    """A contact as a title names it."""

    id: str
    name: str
    remark: str = ""

    def called(self, to: str) -> bool:
        """Whether `to` is its id, name or remark, exactly."""
        return to in {self.id, self.name, self.remark} - {""}


@dataclass(frozen=True, slots=True)
class MainTitle:
    """The main window's title. At most one of `chat` and `searching` is set.

    While searching, `count` is the number of hits (None before the first result), `position`
    counts from 1, and `hit` is the highlighted one.
    """

    account: str
    offline: bool = False
    chat: Person | None = None
    searching: bool = False
    count: int | None = None
    position: int = 0
    hit: Person | None = None


def person(label: str) -> Person | None:
    """`name [id]` or `remark / name [id]`; None for anything else."""
    found = _LABEL.fullmatch(label)
    if found is None:
        return None
    remark, split, name = found["words"].partition(SEPARATOR)
    return Person(found["id"], name, remark) if split else Person(found["id"], found["words"])


def main_title(title: str) -> MainTitle | None:
    """The main window's title; None for a window that is another."""
    found = _MAIN.fullmatch(title)
    if found is None:
        return None
    account, offline, rest = found["account"], bool(found["offline"]), found["rest"]
    if rest is None:
        return MainTitle(account, offline)
    if rest == "search":
        return MainTitle(account, offline, searching=True)
    if rest == "search: no hits":
        return MainTitle(account, offline, searching=True, count=0)
    hit = _HIT.fullmatch(rest)
    if hit is not None:
        return MainTitle(
            account,
            offline,
            searching=True,
            count=int(hit["count"]),
            position=int(hit["position"]),
            hit=person(hit["label"]),
        )
    return MainTitle(account, offline, chat=person(rest))
