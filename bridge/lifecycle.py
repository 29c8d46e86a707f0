"""Which state may follow which, who may bring it about, and which event tells of it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bridge.model import State


class Actor(enum.StrEnum):
    """Who brings a transition about."""

    CALLER = "caller"
    """Someone who posts an action, or who waited for one and left."""
    OPERATOR = "operator"
    """A person or program that manages the queue."""
    SWEEP = "sweep"
    """The bridge's own upkeep: due times, deadlines, recovery, fast failures."""
    WORKER = "worker"
    """The holder of the owner's lease, under its fence."""


class InvalidTransition(Exception):
    """Raised when a state cannot follow another, or not by this actor."""

    def __init__(self, before: State | None, after: State, by: Actor) -> None:
        super().__init__(f"{before or 'nothing'} → {after} is not for the {by}")
        self.before = before
        self.after = after
        self.by = by


@dataclass(frozen=True, slots=True)
class Rule:
    """One allowed transition; `before` None is the creation of an action."""

    before: State | None
    after: State
    by: Actor
    event: str


UNSTARTED: frozenset[State] = frozenset({State.HELD, State.SCHEDULED, State.PENDING, State.PAUSED})
"""Stored and not yet begun: these count against the capacity, expire, and can be cancelled."""

WAITABLE: frozenset[State] = frozenset({State.SCHEDULED, State.PENDING, State.PAUSED})
"""Where a waited action lies until it starts; its waiter's leaving cancels it there."""

COALESCED: frozenset[State] = WAITABLE
"""Where an older intent is replaced by a newer one of the same key."""

OUTDATES: frozenset[State] = frozenset(
    {
        State.PENDING,
        State.SCHEDULED,
        State.PAUSED,
        State.RUNNING,
        State.UNCERTAIN,
        State.SUCCEEDED,
    }
)
"""A newer action of the same key in one of these states keeps an older one from coming back."""


def _rules(
    before: Iterable[State | None], after: State, by: Iterable[Actor], event: str
) -> Iterable[Rule]:
    return [Rule(b, after, actor, event) for b in before for actor in by]


_CALLER, _OPERATOR, _SWEEP, _WORKER = (
    (Actor.CALLER,),
    (Actor.OPERATOR,),
    (Actor.SWEEP,),
    (Actor.WORKER,),
)

RULES: tuple[Rule, ...] = (
    # created
    *_rules([None], State.HELD, _CALLER, "action.held"),
    *_rules([None], State.SCHEDULED, _CALLER, "action.scheduled"),
    *_rules([None], State.PENDING, _CALLER, "action.queued"),
    # let go, edited, due
    *_rules([State.HELD], State.PENDING, _OPERATOR, "action.activated"),
    *_rules([State.HELD], State.SCHEDULED, _OPERATOR, "action.activated"),
    *_rules([State.SCHEDULED], State.PENDING, _OPERATOR, "action.edited"),
    *_rules([State.PENDING], State.SCHEDULED, _OPERATOR, "action.edited"),
    *_rules([State.SCHEDULED], State.PENDING, _SWEEP, "action.queued"),
    # set aside
    *_rules([State.SCHEDULED, State.PENDING], State.PAUSED, _OPERATOR, "action.paused"),
    *_rules([State.PAUSED], State.PENDING, _OPERATOR, "action.resumed"),
    *_rules([State.PAUSED], State.SCHEDULED, _OPERATOR, "action.resumed"),
    # carried out
    *_rules([State.PENDING], State.RUNNING, _WORKER, "action.started"),
    *_rules([State.RUNNING], State.PENDING, _WORKER, "action.retrying"),
    *_rules([State.RUNNING], State.SCHEDULED, _WORKER, "action.retrying"),
    *_rules([State.RUNNING], State.PENDING, _OPERATOR, "action.released"),
    *_rules([State.RUNNING], State.SUCCEEDED, _WORKER, "action.succeeded"),
    *_rules([State.RUNNING], State.FAILED, _WORKER, "action.failed"),
    *_rules([State.RUNNING], State.UNCERTAIN, _WORKER, "action.uncertain"),
    *_rules([State.RUNNING], State.CANCELLED, (Actor.WORKER, Actor.SWEEP), "action.cancelled"),
    *_rules([State.RUNNING], State.SUPERSEDED, _WORKER, "action.superseded"),
    # ended before it began
    *_rules(sorted(UNSTARTED), State.CANCELLED, _OPERATOR, "action.cancelled"),
    *_rules(sorted(WAITABLE), State.CANCELLED, (Actor.CALLER, Actor.SWEEP), "action.cancelled"),
    *_rules(sorted(WAITABLE), State.FAILED, _SWEEP, "action.failed"),
    *_rules(sorted(UNSTARTED), State.EXPIRED, _SWEEP, "action.expired"),
    *_rules(sorted(COALESCED), State.SUPERSEDED, _CALLER, "action.superseded"),
    # brought back or settled by a person
    *_rules(
        [State.FAILED, State.CANCELLED, State.EXPIRED, State.UNCERTAIN],
        State.PENDING,
        _OPERATOR,
        "action.queued",
    ),
    *_rules([State.UNCERTAIN], State.SUCCEEDED, _OPERATOR, "action.resolved"),
)

_BY_TRANSITION: Mapping[tuple[State | None, State, Actor], Rule] = {
    (rule.before, rule.after, rule.by): rule for rule in RULES
}


def check(before: State | None, after: State, by: Actor) -> Rule:
    """The rule that allows `before` → `after` by this actor; raises InvalidTransition."""
    try:
        return _BY_TRANSITION[before, after, by]
    except KeyError:
        raise InvalidTransition(before, after, by) from None
