"""The procedure that carries out one action, and the commit point in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from PIL import Image

from bridge.apps.base import Verdict
from bridge.errors import BridgeError
from bridge.files import OpenFile, no_files
from bridge.hands import Eyes, Hands
from bridge.kinds import Params
from bridge.model import Json, LoginState

P = TypeVar("P", bound=Params)


class RetryLater(Exception):
    """Raised by a flow that should be tried again, before its commit point.

    Args:
        detail: what was seen.
        after: seconds to wait; None for the usual back-off.
        queue: True when the whole account has to cool down (a throttle shown by the app).
        counts: whether this is one of the action's counted attempts.
    """

    def __init__(
        self, detail: str, *, after: float | None = None, queue: bool = False, counts: bool = True
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.after = after
        self.queue = queue
        self.counts = counts


class SecurityStop(Exception):
    """Raised when the app shows words that call for a person: the account is paused."""


class Commit(Protocol):
    """Goes through the commit point: mark on disk, look again, then the one key."""

    async def __call__(
        self,
        mark: Mapping[str, Json],
        *,
        recheck: Callable[[], Awaitable[None]],
        act: Callable[[], Awaitable[None]],
    ) -> None:
        """Write `mark`, run `recheck`, run `act`.

        `mark` holds the app's history position from before the act and whatever `Flow.verify`
        needs to find the effect behind it, or the draft still in front of it. An error in
        `recheck` withdraws the mark and is an ordinary failure; an error in `act` leads to
        `Flow.verify`.
        """
        ...


class AppControl(Protocol):
    """What a flow may ask of its seat beside the screen."""

    async def restart_app(self, *, dead_for: float, force: bool) -> int:
        """Mark the app dead for `dead_for` seconds, restart it, and return the new pid.

        INVALID_STATE while somebody signs in, unless `force`; APP_NOT_READY when it does not
        get ready.
        """
        ...

    async def reread_login(self) -> LoginState:
        """Read the sign-in state now and let it count; for flows that change it."""
        ...


class NoControl:
    """The control of a flow that runs without a seat."""

    async def restart_app(self, *, dead_for: float, force: bool) -> int:
        """There is no app to restart."""
        raise BridgeError("UNSUPPORTED_BY_APP", "there is no seat here", executed=False)

    async def reread_login(self) -> LoginState:
        """Nobody reads it."""
        return LoginState.UNKNOWN


@dataclass(frozen=True)
class FlowContext(Generic[P]):
    """What a flow is given. `save` keeps a picture as evidence and returns its name."""

    action_id: str
    attempt: int
    params: P
    hands: Hands
    commit: Commit
    save: Callable[[str, Image.Image], Awaitable[str]]
    evidence: dict[str, Json] = field(default_factory=dict)
    control: AppControl = field(default_factory=NoControl)
    owner: str | None = None
    """The account this is for; None when it does not matter who is signed in."""
    open_file: OpenFile = no_files


@dataclass(frozen=True)
class VerifyContext(Generic[P]):
    """What a verifier is given. `app_ended` tells that the process that was pressed has ended.

    `load` reads back a picture that was kept by `save`; None when it is gone.
    """

    action_id: str
    params: P
    mark: Mapping[str, Json]
    eyes: Eyes
    app_ended: bool
    load: Callable[[str], Awaitable[Image.Image | None]]


class Flow(Protocol[P]):
    """How one app carries out one kind."""

    async def run(self, ctx: FlowContext[P]) -> Mapping[str, Json]:
        """Carry it out and return the result, or raise BridgeError, UiError or RetryLater.

        A flow of effect `once` goes through `ctx.commit` exactly once and returns only after it
        saw the effect in the app.
        """
        ...

    async def verify(self, ctx: VerifyContext[P]) -> Verdict:
        """Look for the effect behind the mark. Changes nothing; called any time later."""
        ...
