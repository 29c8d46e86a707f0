"""How a flow ended, and what that makes of its action. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.errors import BridgeError
from bridge.model import Action, Json, State

CRASH_LIMIT = 20
"""Times an action may be running while its process dies."""

_PERMANENT = frozenset(
    {
        "CONTACT_NOT_FOUND",
        "AMBIGUOUS_CONTACT",
        "INVALID_REQUEST",
        "INVALID_STATE",
        "NOT_FOUND",
        "UNSUPPORTED_BY_APP",
        "CANCELLED",
    }
)

_NOT_ITS_FAULT = frozenset({"DISPLAY_DEAD", "APP_NOT_READY", "NOT_LOGGED_IN", "SHUTTING_DOWN"})
"""Codes of a seat that is not as it was when the action was claimed."""


@dataclass(frozen=True, slots=True)
class Success:
    """The effect was seen."""

    result: Mapping[str, Json]
    evidence: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Retry:
    """Nothing happened; try again after `after` seconds (None: the usual back-off)."""

    error: BridgeError
    after: float | None = None
    queue: bool = False
    counts: bool = True
    crashed: bool = False
    evidence: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fail:
    """Nothing happened, and another try would change nothing."""

    error: BridgeError
    evidence: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unknowable:
    """The key was handed over and nothing tells whether the effect happened."""

    error: BridgeError
    evidence: Mapping[str, Json] = field(default_factory=dict)


Outcome = Success | Retry | Fail | Unknowable


def of_error(error: BridgeError, *, unhealthy: bool) -> Outcome:
    """The outcome of an error before the commit point.

    `unhealthy` tells that the app or the display was not well, which is not the action's fault.
    """
    if error.code in _PERMANENT:
        return Fail(error)
    if unhealthy or error.code in _NOT_ITS_FAULT:
        return Retry(error, after=1.0, counts=False)
    return Retry(error)


def backoff(attempt: int) -> float:
    """Seconds before try number `attempt` + 1: 5, 10, 20, 40, … at most 300."""
    return float(min(300, 5 * 2 ** max(0, attempt - 1)))


@dataclass(frozen=True, slots=True)
class Finish:
    """Close the action in `state`."""

    state: State
    error: BridgeError | None = None
    counted: bool = False
    free_key: bool = False


@dataclass(frozen=True, slots=True)
class Requeue:
    """Put the action back, to start not before `after` seconds from now."""

    after: float
    counted: bool
    crashed: bool
    error: BridgeError


def _nothing_done(error: BridgeError) -> BridgeError:
    error.executed = False
    return error


def decide(action: Action, outcome: Outcome) -> Finish | Requeue:
    """What becomes of a running action.

    A waited action gets one attempt. Others are tried again until their counted attempts, or
    the crashes counted apart from them, are used up.
    """
    match outcome:
        case Success():
            return Finish(State.SUCCEEDED)
        case Unknowable(error=error):
            return Finish(State.UNCERTAIN, error)
        case Fail(error=error):
            state = State.CANCELLED if error.code == "CANCELLED" else State.FAILED
            return Finish(state, _nothing_done(error), free_key=True)
        case Retry() as retry:
            spent = action.attempt + 1 >= action.max_attempts if retry.counts else False
            crashed_out = retry.crashed and action.crashes + 1 >= CRASH_LIMIT
            if action.waited or spent or crashed_out:
                return Finish(
                    State.FAILED, _nothing_done(retry.error), counted=retry.counts, free_key=True
                )
            after = backoff(action.attempt + 1) if retry.after is None else retry.after
            if retry.queue:
                after = 0.0  # the account's cooldown holds it; it keeps its place
            return Requeue(after, retry.counts, retry.crashed, retry.error)
