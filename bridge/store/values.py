"""What the store hands out beside actions and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bridge.model import Action, Priority, State


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of a new action: its row, and whether it was made now or was there already."""

    action: Action
    created: bool


@dataclass(frozen=True, slots=True)
class Sweep:
    """What one sweep moved. `next_due` (UTC ms) is when another has something to do, if ever."""

    promoted: Sequence[Action]
    expired: Sequence[Action]
    timed_out: Sequence[Action]
    next_due: int | None


@dataclass(frozen=True, slots=True)
class Counts:
    """How many actions there are. `waiting`: callers wait for them and they have not begun."""

    by_state: Mapping[State, int]
    pending_by_priority: Mapping[Priority, int]
    waiting: int
