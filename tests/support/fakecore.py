"""A core that does what the text of a `send_text` says. Run as a module, it serves itself."""

from __future__ import annotations

import argparse
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
import trio

from bridge.core_types import ActionRequest, Answer, Filter, Page
from bridge.errors import BridgeError
from bridge.kinds import CATALOGUE, Kind, Params, request_hash
from bridge.model import Action, Effect, Event, Priority, State
from routes.server import ServerConfig, serve_until

TOKEN = "let-me-in"
EPOCH = "e1"
NOW = 1_800_000_000_250
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(200_000)


class Check(Params):
    check: str
    force: bool = False


AUTOFIX = Kind(
    name="autofix",
    title="Repair",
    path="/diagnostic/autofix/{check}",
    params=Check,
    priority=Priority.CRITICAL,
    wait_timeout_ms=30_000,
    effect=Effect.IDEMPOTENT,
    needs=frozenset(),
)
RESTART = Kind(
    name="restart_app",
    title="Restart the app",
    path="/app/restart",
    aliases=("/other/restart",),
    params=Params,
    priority=Priority.CRITICAL,
    wait_timeout_ms=60_000,
    effect=Effect.IDEMPOTENT,
    needs=frozenset(),
)


def make_action(request: ActionRequest, number: int, **changes: Any) -> Action:
    action = Action(
        id=f"a{number}",
        ord=number,
        seat="s0",
        owner="demo",
        kind=request.kind,
        params=request.params,
        request_hash=request_hash(request.kind, request.params),
        priority=Priority.NORMAL,
        state=State.SUCCEEDED,
        effect=Effect.ONCE,
        trace_id=request.trace_id,
        waited=not request.respond_async,
        start_by=None,
        attempt=0,
        max_attempts=5,
        crashes=0,
        idempotency_key=request.idempotency_key,
        coalesce_key=None,
        batch_id=None,
        delay_ms=None,
        not_before=None,
        expires_at=None,
        created_at=NOW,
        started_at=NOW,
        finished_at=NOW,
        revision=3,
        fence=7,
        cancel_requested=False,
        mark={"launch": "secret-launch"},
        steps=(),
        evidence={"pid": 4711, "title": "Chat"},
        result={"message": "m1"},
        error=None,
    )
    return replace(action, **changes)


def make_event(seq: int, **changes: Any) -> Event:
    event = Event(
        seq=seq, ts=NOW, type="action.queued", seat="s0", owner="demo", action=f"a{seq}", data={}
    )
    return replace(event, **changes)


class FakeFeed:
    """At most `limit` events wait; one more ends it."""

    def __init__(self, hello: Mapping[str, Any], limit: int) -> None:
        self.hello = hello
        self._limit = limit
        self._waiting: deque[Event] = deque()
        self._more = trio.Event()
        self._over = False
        self.broken = False

    def put(self, event: Event) -> None:
        if len(self._waiting) >= self._limit:
            self._over = True
        elif not self._over:
            self._waiting.append(event)
        self._more.set()

    def wake(self) -> None:
        self._more.set()

    async def frame(self) -> Sequence[Event] | None:
        await self._more.wait()
        if self.broken:
            raise RuntimeError("the feed broke")
        if self._over and not self._waiting:
            return None
        events = list(self._waiting)
        self._waiting.clear()
        if not self._over:
            self._more = trio.Event()
        return events


class FakeCore:
    """What a text does: `wait` waits for ever, `stuck` also through shutdown, `error CODE` raises
    it, `state STATE [CODE]` ends so, `bug` fails, anything else succeeds.
    """

    def __init__(self, *, limit: int = 1024) -> None:
        self.closing = trio.Event()
        self.kinds = {**CATALOGUE, "autofix": AUTOFIX, "restart_app": RESTART}
        self.unsupported: set[str] = set()
        self.requests: list[ActionRequest] = []
        self.waiters = 0
        self.hung_up = 0
        self.feeds: set[FakeFeed] = set()
        self.since: list[tuple[str, int] | None] = []
        self.seq = 0
        self.filters: list[Filter] = []
        self.cancels: list[tuple[str, int]] = []
        self.logins: list[dict[str, Any]] = [
            {"state": "logged_in", "account": "demo", "evidence": {"pid": 4711}}
        ]
        """The sign-in states, one after another; the first is the present one."""
        self.scripted: dict[str, list[dict[str, Any] | BridgeError]] = {}
        """What actions of a kind come to, one after another, before the texts count."""
        self.login_waits: list[tuple[str | None, float]] = []
        self._limit = limit

    def supports(self, kind: str) -> bool:
        return kind not in self.unsupported

    def check_token(self, presented: str) -> bool:
        return presented == TOKEN

    async def submit(self, request: ActionRequest) -> Answer:
        self.requests.append(request)
        number = len(self.requests)
        if request.respond_async:
            return Answer(self.pending(request, number))
        if self.scripted.get(request.kind):
            told = self.scripted[request.kind].pop(0)
            if isinstance(told, BridgeError):
                raise told
            return Answer(make_action(request, number, result=told))
        word, _, rest = str(request.params.get("text", "")).partition(" ")
        if word in {"wait", "stuck"}:
            await self._wait(number, heed_closing=word == "wait")
        if word == "error":
            raise BridgeError(rest, f"told to fail with {rest}", retry_after=3, executed=False)
        if word == "bug":
            raise RuntimeError("a bug in the core")
        if word == "state":
            return Answer(self.ended(request, number, *rest.split()))
        await trio.lowlevel.checkpoint()
        return Answer(make_action(request, number))

    async def _wait(self, number: int, *, heed_closing: bool) -> None:
        self.waiters += 1
        try:
            if heed_closing:
                await self.closing.wait()
            else:
                await trio.sleep_forever()
        except trio.Cancelled:
            self.hung_up += 1
            raise
        finally:
            self.waiters -= 1
        raise BridgeError(
            "SHUTTING_DOWN", "never started", retry_after=5, executed=False, action_id=f"a{number}"
        )

    def pending(self, request: ActionRequest, number: int) -> Action:
        return make_action(
            request, number, state=State.PENDING, started_at=None, finished_at=None, result=None
        )

    def ended(self, request: ActionRequest, number: int, state: str, code: str = "") -> Action:
        error = BridgeError(code, f"it was {code}", executed=False).to_json() if code else None
        return make_action(request, number, state=State(state), error=error, result=None)

    async def action(self, id: str, wait: float = 0) -> Action:
        await trio.lowlevel.checkpoint()
        for number, request in enumerate(self.requests, 1):
            if id == f"a{number}":
                await trio.sleep(wait)
                return self.pending(request, number)
        raise BridgeError("NOT_FOUND", f"there is no action {id}")

    async def actions(self, filter: Filter) -> Page:
        await trio.lowlevel.checkpoint()
        self.filters.append(filter)
        rows = [self.pending(request, n) for n, request in enumerate(self.requests, 1)]
        return Page(rows, len(rows), filter.page, filter.per_page, EPOCH, self.seq)

    async def cancel(self, id: str, *, revision: int) -> Action:
        action = await self.action(id)
        if revision != action.revision:
            raise BridgeError("STALE_REVISION", f"it is at revision {action.revision}")
        self.cancels.append((id, revision))
        return replace(action, state=State.CANCELLED, revision=revision + 1)

    async def waiting(self, action: Action) -> Mapping[str, Any] | None:
        await trio.lowlevel.checkpoint()
        return {"reason": "gap", "until": NOW + 1000, "ahead": 2, "eta": None}

    async def queue(self) -> Mapping[str, Any]:
        await trio.lowlevel.checkpoint()
        return {"pending": 0}

    async def status(self) -> Mapping[str, Any]:
        await trio.lowlevel.checkpoint()
        return {"waiters": self.waiters, "hung_up": self.hung_up, "feeds": len(self.feeds)}

    async def login(self) -> Mapping[str, Any]:
        await trio.lowlevel.checkpoint()
        return self.logins[0]

    async def login_wait(self, state: str | None, seconds: float) -> Mapping[str, Any]:
        """Whoever waits for the present state sees the next one come."""
        await trio.lowlevel.checkpoint()
        self.login_waits.append((state, seconds))
        if len(self.logins) > 1 and state in {None, self.logins[0]["state"]}:
            self.logins.pop(0)
        return self.logins[0]

    async def acquire_hands_on(self, lease: str | None, who: str) -> Mapping[str, Any]:
        await trio.lowlevel.checkpoint()
        return {"lease": lease or "l1", "expires_at": None, "seconds": 60.0}

    async def release_hands_on(self, lease: str | None) -> Mapping[str, Any]:
        await trio.lowlevel.checkpoint()
        return {"released": True}

    async def diagnose(self, check: str | None) -> Mapping[str, Any]:
        await trio.lowlevel.checkpoint()
        one = {"check": "disk", "status": "ok", "detail": "", "advice": None, "data": {}, "ms": 1.0}
        if check is None:
            return {"status": "ok", "checks": [one]}
        if check != "disk":
            raise BridgeError("NOT_FOUND", f"there is no check {check!r}; there are disk")
        return one

    async def picture(self, action: Action) -> tuple[bytes, str]:
        await trio.lowlevel.checkpoint()
        return PICTURE, "image/png"

    async def ready(self) -> tuple[bool, Mapping[str, Any]]:
        await trio.lowlevel.checkpoint()
        return True, {"display": ":9"}

    async def metrics(self) -> tuple[bytes, str]:
        await trio.lowlevel.checkpoint()
        return b"deskbridge_up 1\n", "text/plain; version=0.0.4; charset=utf-8"

    @asynccontextmanager
    async def subscribe(self, since: tuple[str, int] | None) -> AsyncIterator[FakeFeed]:
        self.since.append(since)
        hello = {"type": "hello", "epoch": EPOCH, "seq": self.seq, "snapshot": {"pending": 0}}
        feed = FakeFeed(hello, self._limit)
        self.feeds.add(feed)
        try:
            yield feed
        finally:
            self.feeds.discard(feed)

    def publish(self, count: int = 1, **changes: Any) -> None:
        """Let `count` events happen."""
        for _ in range(count):
            self.seq += 1
            event = make_event(self.seq, **changes)
            for feed in self.feeds:
                feed.put(event)


async def _flood(core: FakeCore, rate: float) -> None:
    while not core.closing.is_set():
        core.publish(data={"text": "x" * 1000})
        await trio.sleep(1 / rate)


async def _services(
    core: FakeCore, options: argparse.Namespace, *, task_status: trio.TaskStatus[None]
) -> None:
    task_status.started()
    with trio.CancelScope(shield=options.stubborn):
        if options.stubborn:
            await trio.sleep_forever()
    if options.crash:
        await trio.sleep(options.crash)
        raise RuntimeError("a service failed")
    if options.flood:
        await _flood(core, options.flood)
    await core.closing.wait()


async def _main(options: argparse.Namespace) -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    core = FakeCore(limit=options.limit)

    async def services(*, task_status: trio.TaskStatus[None]) -> None:
        await _services(core, options, task_status=task_status)

    await serve_until(
        core,
        ServerConfig(grace=options.grace, keep_alive=options.keep_alive),
        services,
        hard_deadline=options.hard,
        announce=partial(print, flush=True),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--grace", type=float, default=2.0)
    parser.add_argument("--hard", type=float, default=8.0)
    parser.add_argument("--keep-alive", type=float, default=30.0)
    parser.add_argument("--limit", type=int, default=1024)
    parser.add_argument("--crash", type=float, default=0.0)
    parser.add_argument("--flood", type=float, default=0.0)
    parser.add_argument("--stubborn", action="store_true")
    trio.run(_main, parser.parse_args())
