"""What the HTTP layer asks of the core. `bridge.core` offers it; tests script a double of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import trio

from bridge.core_types import ActionRequest, Answer, Filter, Page, Subscription
from bridge.kinds import Kind
from bridge.model import Action, Json


class CoreApi(Protocol):
    """The core as the routes see it. Every method may raise BridgeError."""

    @property
    def closing(self) -> trio.Event:
        """Set when shutdown begins."""
        ...

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """Every kind that has a route, by name."""
        ...

    def supports(self, kind: str) -> bool:
        """Whether the app of this bridge can carry out the kind."""
        ...

    def check_token(self, presented: str) -> bool:
        """Whether the token is one of this bridge; in constant time."""
        ...

    async def submit(self, request: ActionRequest) -> Answer:
        """Store the action and wait as asked. Being cancelled means that the caller hung up."""
        ...

    async def action(self, id: str, wait: float = 0) -> Action:
        """The action; waits up to `wait` seconds for its end. Raises NOT_FOUND."""
        ...

    async def actions(self, filter: Filter) -> Page:
        """One page of the queue, newest first."""
        ...

    async def cancel(self, id: str, *, revision: int) -> Action:
        """Cancel it if its revision is still this one. Raises NOT_FOUND, STALE_REVISION."""
        ...

    async def acquire_hands_on(self, lease: str | None, who: str) -> Mapping[str, Json]:
        """Give the seat to a person, or renew the lease. Raises HANDS_ON."""
        ...

    async def release_hands_on(self, lease: str | None) -> Mapping[str, Json]:
        """Take the seat back from the person. Raises HANDS_ON."""
        ...

    async def waiting(self, action: Action) -> Mapping[str, Json] | None:
        """Why it has not started: `{reason, until, ahead, eta}`; None if it does not wait."""
        ...

    async def queue(self) -> Mapping[str, Json]:
        """Counts, and what holds the queue."""
        ...

    async def status(self) -> Mapping[str, Json]:
        """The figures of the bridge."""
        ...

    async def login(self) -> Mapping[str, Json]:
        """`{state, account, evidence}`, as the probe last read it."""
        ...

    async def login_wait(self, state: str | None, seconds: float) -> Mapping[str, Json]:
        """The same once the state is not `state` (None: the present one), or after `seconds`."""
        ...

    async def diagnose(self, check: str | None) -> Mapping[str, Json]:
        """One check, `{check, status, detail, advice, data, ms}`, or `{status, checks}` of all.

        Raises NOT_FOUND, naming the checks there are.
        """
        ...

    async def picture(self, action: Action) -> tuple[bytes, str]:
        """The result of a picture kind: its bytes and media type. Raises NOT_FOUND once gone."""
        ...

    async def ready(self) -> tuple[bool, Mapping[str, Json]]:
        """Whether display and app are up, and the particulars."""
        ...

    async def metrics(self) -> tuple[bytes, str]:
        """The Prometheus exposition and its media type."""
        ...

    def subscribe(self, since: tuple[str, int] | None) -> AbstractAsyncContextManager[Subscription]:
        """The events after `since` (epoch, seq), or from now on."""
        ...
