"""The bridge as its HTTP layer sees it: accept actions, tell about them, and live and end.

`Bridge.run` works the seat; `Bridge.shutdown` lets the running flow end.
"""

from __future__ import annotations

import io
import secrets
import uuid
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from importlib.metadata import version
from typing import Any

import structlog
import trio
from PIL import Image

from bridge.apps.common import COMMON_FLOWS, PICTURE
from bridge.clock import WallClock, rfc3339
from bridge.config import Settings
from bridge.core_types import ActionRequest, Answer, Filter, Page
from bridge.diagnostics import Diagnostics
from bridge.errors import BridgeError
from bridge.events import Hub, Subscription
from bridge.kinds import Kind, request_hash
from bridge.model import FINAL, Action, Event, Json, LoginState, NewAction, Priority, State
from bridge.seat import DisplayEnded, Seat
from bridge.stats import SchedulerStats
from bridge.store import Store
from bridge.submit import Submitter
from bridge.waiters import Waiters
from bridge.waiting import Waiting

log = structlog.get_logger(__name__)

EXPIRY_MS = 24 * 3600 * 1000
"""How long an action may wait unless it says otherwise."""

MAX_WAIT = 300.0
"""The longest wait for one answer, in seconds."""

PICTURE_AGE = 600.0
"""Seconds that the picture of a finished screenshot is kept."""

UPKEEP = 60.0
"""Seconds between two rounds of upkeep."""

_SETTLED_SIGN_IN = frozenset(
    {LoginState.LOGGED_IN, LoginState.QR, LoginState.CONFIRM, LoginState.LOGGED_OUT}
)
_ENDINGS = frozenset(f"action.{state.value}" for state in FINAL) | {"action.resolved"}


class SeatLost(Exception):
    """Raised when somebody else took the display's seat."""


class Bridge:
    """Everything that routes may call. Made by `bridge.opening.open_bridge`."""

    def __init__(
        self,
        *,
        settings: Settings,
        store: Store,
        hub: Hub,
        clock: WallClock,
        kinds: Mapping[str, Kind],
        seat: Seat,
        stats: SchedulerStats,
        token: str,
        seat_lost: Callable[[], Awaitable[object]],
        closing: trio.Event,
        diagnostics: Diagnostics,
    ) -> None:
        self.closing = closing
        self.settings = settings
        self.kinds = kinds
        self.seat = seat
        self._store = store
        self._hub = hub
        self._clock = clock
        self._stats = stats
        self._token = token
        self._seat_lost = seat_lost
        self._diagnostics = diagnostics
        self._waiters = Waiters()
        self._submitter = Submitter(
            store=store,
            waiters=self._waiters,
            kinds=kinds,
            view=seat.view,
            clock=clock,
            pace=settings.pace,
            limits=settings.limits,
            stats=stats,
        )
        self._waiting = Waiting(
            seat=seat,
            store=store,
            kinds=kinds,
            clock=clock,
            stats=stats,
            send_delay_ms=settings.pace.send_delay_ms,
        )
        self._metrics_limiter = trio.CapacityLimiter(1)
        hub.listen(self._on_events)

    # -- life ----------------------------------------------------------------------------

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work the seat until cancelled. Raises SeatLost, DisplayEnded."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._upkeep)
            nursery.start_soon(self._guard_seat)
            await nursery.start(self.seat.run)
            task_status.started()

    async def _guard_seat(self) -> None:
        await self._seat_lost()
        if not await self.seat.backend.alive():
            raise DisplayEnded("the X server has ended; the next start brings up another")
        raise SeatLost("another program took the display's seat; this bridge presses nothing more")

    async def shutdown(self) -> None:
        """Refuse new work, let waiting callers know, let the running flow end within the grace.

        Afterwards cancel `run`. Async actions stay pending for the next start.
        """
        self.closing.set()
        self.seat.known.closing = True
        error = BridgeError(
            "SHUTTING_DOWN", "the bridge is shutting down", retry_after=5, executed=False
        )
        with trio.move_on_after(self.settings.grace):
            try:
                await self._store.cancel_waiting(
                    self.seat.scheduler.owners(), now=self._clock.now_ms(), error=error
                )
            except BridgeError as problem:
                log.error("waiting actions not told", code=problem.code)
            await self.seat.close()

    async def _upkeep(self) -> None:
        while True:
            await trio.sleep(UPKEEP)
            try:
                await self.seat.evidence.expire(PICTURE, PICTURE_AGE)
                await self.seat.files.expire(await self._needed_uploads())
                await self._store.vacuum(self._clock.now_ms())
            except (BridgeError, OSError) as error:
                log.error("upkeep failed", error=str(error))

    async def _needed_uploads(self) -> set[str]:
        """The SHA-256 of each upload that an action which has not ended names."""
        fields = {kind.name: kind.upload for kind in self.kinds.values() if kind.upload}
        needed, page, seen = set(), 1, 0
        while True:
            found = await self._store.list_actions(
                Filter(frozenset(State) - FINAL, frozenset(fields), page=page, per_page=100)
            )
            for action in found.actions:
                upload = action.params.get(fields[action.kind])
                if upload:
                    needed.add(upload["sha256"])
            seen, page = seen + len(found.actions), page + 1
            if not found.actions or seen >= found.total:
                return needed

    async def keep_upload(self, name: str, chunks: AsyncIterable[bytes]) -> Mapping[str, Json]:
        """Keep an uploaded file for an action to come: `{name, size, sha256}`."""
        return (await self.seat.files.receive(name, chunks)).model_dump()

    def _on_events(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.type in _ENDINGS and event.action is not None:
                self._waiters.ended(event.action)
        self.seat.scheduler.wake()

    # -- acting --------------------------------------------------------------------------

    def supports(self, kind: str) -> bool:
        """Whether this app can do it."""
        return kind in self.seat.adapter.flows or kind in COMMON_FLOWS

    async def submit(self, request: ActionRequest) -> Answer:
        """Accept an action and wait for it as asked. Cancelling this is the caller hanging up."""
        kind = self.kinds[request.kind]
        if not self.supports(kind.name):
            raise BridgeError(
                "UNSUPPORTED_BY_APP",
                f"{self.seat.adapter.name} has no {kind.name}; GET /api/kinds lists what it has",
                executed=False,
            )
        new = self._new_action(kind, request)
        if request.respond_async:
            action = await self._submitter.enqueue(new)
            if request.wait:
                action = await self._observe(action, min(request.wait, MAX_WAIT))
            return Answer(action)
        wait = kind.wait_timeout_ms / 1000 if request.wait is None else request.wait
        action = await self._submitter.execute(new, min(wait, MAX_WAIT))
        return Answer(action)

    def _new_action(self, kind: Kind, request: ActionRequest) -> NewAction:
        now = self._clock.now_ms()
        priority = kind.priority if request.priority is None else request.priority
        if priority is Priority.CRITICAL and kind.priority is not Priority.CRITICAL:
            raise BridgeError(
                "INVALID_REQUEST", f"{kind.name} cannot be CRITICAL; HIGH is the most it can be"
            )
        coalesce_key = request.coalesce_key
        if coalesce_key is None and kind.coalesce is not None:
            coalesce_key = kind.coalesce(request.params)
        idempotency_key = request.idempotency_key
        if idempotency_key is None and kind.key is not None:
            idempotency_key = kind.key(request.params)
        return NewAction(
            id=uuid.uuid4().hex,
            seat=self.seat.name,
            owner=self._owner(kind),
            kind=kind.name,
            params=request.params,
            request_hash=request_hash(kind.name, request.params),
            priority=priority,
            effect=kind.effect,
            trace_id=request.trace_id,
            idempotency_key=idempotency_key,
            coalesce_key=coalesce_key,
            delay_ms=request.delay_ms,
            not_before=request.not_before,
            expires_at=now + EXPIRY_MS if request.expires_at is None else request.expires_at,
            hold=request.hold,
        )

    def _owner(self, kind: Kind) -> str:
        if not kind.signed_in:
            return self.seat.scheduler.seat_owner
        owner = self.seat.known.owner
        if owner is None:
            raise BridgeError(
                "NOT_LOGGED_IN", "no account has signed in on this seat yet", executed=False
            )
        return owner

    async def cancel(self, action_id: str, *, revision: int) -> Action:
        """Cancel an action; one that runs ends before its commit point, if it still can."""
        action = await self._store.cancel(
            action_id, revision=revision, now=self._clock.now_ms(), who="api"
        )
        if action.state is State.RUNNING:
            self.seat.scheduler.request_cancel(action_id)
        return action

    async def acquire_hands_on(self, lease: str | None, who: str) -> Mapping[str, Json]:
        """Give the seat to a person: `{lease, expires_at, seconds}`. HANDS_ON when it is taken."""
        held = await self.seat.take_hands_on(lease, who)
        left = max(0.0, held.until - trio.current_time())
        return {
            "lease": held.id,
            "expires_at": rfc3339(self._clock.now_ms() + round(left * 1000)),
            "seconds": round(left, 1),
        }

    async def release_hands_on(self, lease: str | None) -> Mapping[str, Json]:
        """Take the seat back: `{released}`."""
        return {"released": await self.seat.end_hands_on(lease)}

    # -- telling -------------------------------------------------------------------------

    async def action(self, action_id: str, wait: float = 0) -> Action:
        """One action, if asked after up to `wait` seconds of waiting for its end. NOT_FOUND."""
        return await self._observe(await self._store.get(action_id), min(wait, MAX_WAIT))

    async def _observe(self, action: Action, wait: float) -> Action:
        if action.final or wait <= 0:
            return action
        with self._waiters.hold(action.id, observer=True) as ended:
            row = await self._store.get(action.id)
            if not row.final:
                with trio.move_on_after(wait):
                    await ended.wait()
        return await self._store.get(action.id)

    async def actions(self, which: Filter) -> Page:
        """A page of actions."""
        return await self._store.list_actions(which)

    async def waiting(self, action: Action) -> Mapping[str, Json] | None:
        """Why an action waits, until when, behind how many; None when it does not wait."""
        return await self._waiting.of_action(action)

    async def queue(self) -> Mapping[str, Json]:
        """Counts, what holds the queue and until when."""
        return await self._waiting.of_queue()

    async def login(self) -> Mapping[str, Json]:
        """The cached sign-in state."""
        known = self.seat.known
        return {
            "state": known.login.value,
            "account": known.account,
            "evidence": dict(known.reading),
        }

    async def login_wait(self, state: str | None, seconds: float) -> Mapping[str, Json]:
        """The sign-in state once it is not `state` (None: the present one), or after `seconds`."""
        if state is None or state == self.seat.known.login.value:
            with trio.move_on_after(min(seconds, MAX_WAIT)):
                await self._login_changed()
        return await self.login()

    async def _login_changed(self) -> None:
        """Wait for a change of the sign-in, read eagerly meanwhile, or for the shutdown."""
        async with trio.open_nursery() as nursery:

            async def first(event: trio.Event) -> None:
                await event.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(first, self.seat.login_changed)
            nursery.start_soon(first, self.closing)
            with self.seat.watch_login():
                await trio.sleep_forever()

    async def status(self) -> Mapping[str, Json]:
        """The whole state in one answer."""
        pending = await self._pending()
        return {
            "version": version("deskbridge"),
            "seats": [self.seat.describe()],
            "login": await self.login(),
            "ui_scheduler": self._stats.snapshot(pending),
            "send_queue_pending": pending,
            "events": {
                "epoch": self._store.epoch,
                "seq": self._store.last_seq,
                "subscribers": self._hub.subscribers,
            },
        }

    async def _pending(self) -> int:
        counts = await self._store.counts()
        return counts.by_state.get(State.PENDING, 0)

    async def ready(self) -> tuple[bool, Mapping[str, Json]]:
        """Whether work can be done or a person can sign in, and why not."""
        view = self.seat.view()
        parts = {
            "display": view.display_alive,
            "app": view.app_up,
            "signed_in_or_waiting": view.login in _SETTLED_SIGN_IN,
        }
        return all(parts.values()) and not self.closing.is_set(), parts

    async def diagnose(self, check: str | None) -> Mapping[str, Json]:
        """One check of the diagnosis, or all of them. NOT_FOUND names the checks there are."""
        if check is None:
            return await self._diagnostics.all()
        return await self._diagnostics.run(check)

    async def metrics(self) -> tuple[bytes, str]:
        """Prometheus text and its media type."""
        pending = await self._pending()
        body = await trio.to_thread.run_sync(
            self._stats.exposition, pending, limiter=self._metrics_limiter
        )
        return body, "text/plain; version=0.0.4; charset=utf-8"

    async def picture(self, action: Action) -> tuple[bytes, str]:
        """The bytes of a picture that is an action's result, and their media type. NOT_FOUND."""
        picture = await self.seat.evidence.load(action.id, PICTURE)
        if picture is None:
            raise BridgeError(
                "NOT_FOUND", "the picture is gone; it is kept for ten minutes, take another"
            )
        jpeg = action.params.get("format") == "jpeg"
        body = await trio.to_thread.run_sync(partial(_encode, picture, jpeg=jpeg))
        return body, "image/jpeg" if jpeg else "image/png"

    def subscribe(self, since: tuple[str, int] | None) -> AbstractAsyncContextManager[Subscription]:
        """Watch the events."""
        return self._hub.subscribe(self._store, since, self._snapshot)

    async def _snapshot(self) -> dict[str, Any]:
        return {"status": await self.status(), "queue": await self.queue()}

    def check_token(self, presented: str) -> bool:
        """Whether this is the token; takes the same time either way."""
        return secrets.compare_digest(presented.encode(), self._token.encode())


def _encode(picture: Image.Image, *, jpeg: bool) -> bytes:
    buffer = io.BytesIO()
    if jpeg:
        picture.save(buffer, format="JPEG", quality=80)
    else:
        picture.save(buffer, format="PNG", compress_level=1)
    return buffer.getvalue()
