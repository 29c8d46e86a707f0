"""Callers that wait for the end of an action."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import trio


@dataclass(slots=True)
class _Crowd:
    """Those who wait for one action; it is listed while somebody does."""

    ended: trio.Event = field(default_factory=trio.Event)
    callers: int = 0
    """Those whose leaving matters to a waited action."""
    observers: int = 0


class Waiters:
    """Who waits for which action; an action's end wakes all of its waiters."""

    def __init__(self) -> None:
        self._crowds: dict[str, _Crowd] = {}

    @contextmanager
    def hold(self, action_id: str, *, observer: bool = False) -> Iterator[trio.Event]:
        """Be counted among those who wait for the action; yields the event of its end.

        Read the action again after entering: it may have ended before. An `observer` only
        looks: a waited action does not stay in the queue for his sake.
        """
        crowd = self._crowds.setdefault(action_id, _Crowd())
        field_name = "observers" if observer else "callers"
        setattr(crowd, field_name, getattr(crowd, field_name) + 1)
        try:
            yield crowd.ended
        finally:
            setattr(crowd, field_name, getattr(crowd, field_name) - 1)
            nobody = not crowd.callers and not crowd.observers
            if nobody and self._crowds.get(action_id) is crowd:
                del self._crowds[action_id]

    def callers(self, action_id: str) -> int:
        """How many callers wait for it."""
        crowd = self._crowds.get(action_id)
        return 0 if crowd is None else crowd.callers

    def ended(self, action_id: str) -> None:
        """Wake the action's waiters."""
        crowd = self._crowds.pop(action_id, None)
        if crowd is not None:
            crowd.ended.set()
