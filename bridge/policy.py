"""What starts next and when: order, ageing, gap, window, needs and refusals.

Pure: everything here is a function of its arguments, takes the time and does no I/O.
Wall-clock times are UTC milliseconds, `at`/`now` in seconds are monotonic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bridge.config import Pace
from bridge.errors import BridgeError
from bridge.kinds import Kind
from bridge.model import Candidate, Effect, LoginState, Need, Priority


def effective_class(priority: Priority, waited_ms: int, pace: Pace) -> int:
    """The class an action counts in: one higher after `age_after_ms`, never CRITICAL by age."""
    if priority is Priority.CRITICAL or waited_ms < pace.age_after_ms:
        return int(priority)
    return max(int(Priority.HIGH), int(priority) - 1)


def in_order(candidates: Sequence[Candidate], now_ms: int, pace: Pace) -> list[Candidate]:
    """Candidates, the most urgent first; first in, first out within one effective class."""
    return sorted(
        candidates,
        key=lambda c: (effective_class(c.priority, now_ms - c.created_at, pace), c.ord),
    )


@dataclass(frozen=True, slots=True)
class LastFlow:
    """The flow that ran last: when it ended (monotonic seconds) and what it was."""

    ended: float
    priority: Priority
    delay_ms: int | None
    contact: str | None


def gap_ms(last: LastFlow | None, contact: str | None, pace: Pace) -> int:
    """Milliseconds between the end of `last` and the start of a next action to `contact`."""
    if last is None:
        return 0
    if last.delay_ms is not None:
        return max(last.delay_ms, pace.min_gap_ms)
    if last.priority is Priority.CRITICAL:
        return 0
    if contact is not None and contact == last.contact:
        return min(pace.same_contact_ms, pace.send_delay_ms)
    return pace.send_delay_ms


@dataclass(slots=True)
class RateWindow:
    """At most `most` starts in any one second."""

    most: int
    starts: list[float] = field(default_factory=list)

    def free_at(self, now: float) -> float:
        """When another start is allowed (monotonic seconds; `now` when it is now)."""
        self.starts = [at for at in self.starts if at > now - 1.0]
        return now if len(self.starts) < self.most else self.starts[-self.most] + 1.0

    def note(self, now: float) -> None:
        """Count a start."""
        self.starts.append(now)


@dataclass(frozen=True, slots=True)
class Choice:
    """Start `id` now; or, with `id` None, look again at `until` because of `reason`."""

    id: str | None
    until: float | None = None
    reason: str | None = None


def choose(
    candidates: Sequence[Candidate],
    *,
    now: float,
    now_ms: int,
    last: LastFlow | None,
    window: RateWindow,
    pace: Pace,
    contact_of: Callable[[Candidate], str | None],
) -> Choice:
    """Pick the one action to start: the first in order, once gap and window let it."""
    if not candidates:
        return Choice(None)
    first = in_order(candidates, now_ms, pace)[0]
    if first.priority is Priority.CRITICAL:
        return Choice(first.id)
    after_gap = 0.0 if last is None else last.ended + gap_ms(last, contact_of(first), pace) / 1000
    if after_gap > now:
        return Choice(None, after_gap, "gap")
    free = window.free_at(now)
    if free > now:
        return Choice(None, free, "window")
    return Choice(first.id)


@dataclass(frozen=True, slots=True)
class SeatView:
    """What is known of a seat at one moment; what may start depends on nothing else.

    `login` is the last answer that was not `unknown`; `account` the account seen with it;
    `owner` the last confirmed account. `dead_until` is monotonic seconds.
    """

    display_alive: bool = False
    app_up: bool = False
    login: LoginState = LoginState.UNKNOWN
    account: str | None = None
    owner: str | None = None
    hands_on: bool = False
    paused: bool = False
    cooldown_until_ms: int | None = None
    dead_until: float = 0.0
    closing: bool = False

    def signed_in_as(self, owner: str) -> bool:
        """Whether `owner` is the account that is signed in."""
        return self.login is LoginState.LOGGED_IN and self.account == owner


COOLDOWNS = (30.0, 60.0, 120.0, 240.0, 300.0)
"""Seconds an account rests after its 1st, 2nd, … throttle in a row; the last one repeats."""

COOLDOWN_JITTER = 0.2
MAX_RETRY_AFTER = 1_800.0
"""Seconds up to which a service that names its own pause is believed."""


def cooldown_seconds(throttles: int, named: float | None, jitter: float) -> float:
    """How long an account rests after `throttles` (1, 2, …) in a row.

    `named` is what the service asked for, if it did; `jitter` a random number from -1 to 1.
    """
    if named is not None:
        return min(named, MAX_RETRY_AFTER)
    usual = COOLDOWNS[min(throttles, len(COOLDOWNS)) - 1]
    return usual * (1 + COOLDOWN_JITTER * jitter)


APP_RETRY_AFTER = 5
_NOT_READY = frozenset({LoginState.UNKNOWN, LoginState.STARTING, LoginState.OFFLINE})


def app_not_ready(why: str) -> BridgeError:
    """The answer while the app is away or on its way up."""
    return BridgeError(
        "APP_NOT_READY", f"{why}; try again shortly", retry_after=APP_RETRY_AFTER, executed=False
    )


def exempt(kind: Kind, priority: Priority) -> bool:
    """Whether pause, cooldown and hands-on leave it alone: reads and CRITICAL."""
    return priority is Priority.CRITICAL or kind.effect is Effect.READ


def sign_in_refusal(view: SeatView, owner: str) -> BridgeError | None:
    """Why nothing can be done for `owner`, as far as the sign-in goes; None when it can."""
    if view.signed_in_as(owner):
        return None
    if view.login is LoginState.BLOCKED:
        return BridgeError(
            "PAUSED", "the app asks for a person; sign in by hand and resume", executed=False
        )
    if view.login in _NOT_READY:
        return app_not_ready(f"the app is {view.login.value}")
    if view.login is LoginState.LOGGED_IN:
        return BridgeError(
            "NOT_LOGGED_IN",
            "another account is signed in; sign in as the account this is for",
            executed=False,
        )
    return BridgeError(
        "NOT_LOGGED_IN", "nobody is signed in; sign in first (GET /api/login)", executed=False
    )


def refusal(
    kind: Kind, priority: Priority, owner: str, view: SeatView, *, now: float, now_ms: int
) -> tuple[str, BridgeError] | None:
    """Why an action may not start now, as (waiting reason, error); None when it may.

    The order of the tests is the order in which a caller is told.
    """
    if Need.DISPLAY in kind.needs and not view.display_alive:
        return "display", BridgeError(
            "DISPLAY_DEAD", "the X display does not answer", retry_after=5, executed=False
        )
    if Need.APP in kind.needs:
        if now < view.dead_until and priority is not Priority.CRITICAL:
            return "app", app_not_ready("the app is being restarted")
        if not view.app_up:
            return "app", app_not_ready("the app is not up")
    if Need.SIGNED_IN in kind.needs and (error := sign_in_refusal(view, owner)):
        return ("app" if error.code == "APP_NOT_READY" else "signed_in"), error
    if exempt(kind, priority):
        return None
    if view.hands_on:
        return "hands_on", BridgeError(
            "HANDS_ON", "a person works the app; wait until the seat is given back", executed=False
        )
    if view.paused:
        return "paused", BridgeError("PAUSED", "the queue is paused; resume it", executed=False)
    if view.cooldown_until_ms is not None and now_ms < view.cooldown_until_ms:
        seconds = max(1, (view.cooldown_until_ms - now_ms) // 1000)
        return "cooldown", BridgeError(
            "COOLDOWN", "the account is cooling down", retry_after=seconds, executed=False
        )
    return None
