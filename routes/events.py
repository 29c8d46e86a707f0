"""The WebSocket of events: a snapshot, then coalesced frames, for as long as the peer keeps up."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import structlog
import trio
from quart import g, websocket
from quart_trio import QuartTrio

from bridge.core_types import Subscription
from bridge.model import Event
from routes import headers, render
from routes.core_api import CoreApi

MAX_MESSAGE = 64 * 1024
"""Bytes that a message of a peer may have. What a peer says is not looked at."""

HEARTBEAT = 15.0
"""Seconds of quiet after which an empty frame tells the peer that the bridge lives."""

PACE = 0.05
"""Seconds between two frames; what happens meanwhile shares the next one."""

CLOSE_WAIT = 1.0
"""Seconds that the peer is given to answer a close."""

GOING_AWAY, FAILURE, TRY_AGAIN = 1001, 1011, 1013

log = structlog.get_logger(__name__)


class Events:
    """The handler. One per app, so that clients share the encoded events."""

    def __init__(self, core: CoreApi) -> None:
        self._core = core
        self._frames = render.Frames()

    async def serve(self) -> None:
        """Serve one client to its end."""
        since = headers.since(websocket.args.get("since"))
        async with self._core.subscribe(since) as feed:
            await websocket.accept(subprotocol=g.subprotocol)
            await _say_good_bye(*await self._until_end(feed))

    async def _until_end(self, feed: Subscription) -> tuple[int, str]:
        """Send frames until there is a reason to close; returns its code and words."""
        reason = (FAILURE, "the bridge failed")

        async def pump() -> None:
            nonlocal reason
            try:
                await self._send_all(feed)
                reason = (TRY_AGAIN, "too slow; connect again with since")
            except Exception as error:
                log.error("event feed failed", trace_id=g.trace_id, exc_info=error)
            nursery.cancel_scope.cancel()

        async def stop() -> None:
            nonlocal reason
            await self._core.closing.wait()
            reason = (GOING_AWAY, "the bridge is shutting down")
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(pump)
            nursery.start_soon(stop)
            nursery.start_soon(_drain)
        return reason

    async def _send_all(self, feed: Subscription) -> None:
        await websocket.send(json.dumps(feed.hello, ensure_ascii=False))
        while True:
            events = await _within(HEARTBEAT, feed.frame)
            if events is None:
                return
            for text in self._frames.split(events) if events else ("[]",):
                await websocket.send(text)
            await trio.sleep(PACE)


async def _within(
    seconds: float, ask: Callable[[], Awaitable[Sequence[Event] | None]]
) -> Sequence[Event] | None:
    """What `ask` returns, or an empty list when that takes too long."""
    with trio.move_on_after(seconds):
        return await ask()
    return []


async def _drain() -> None:
    """Read on, or the end of the peer would go unseen and its words pile up."""
    while True:
        await websocket.receive()


async def _say_good_bye(code: int, reason: str) -> None:
    """Close, and give the peer a moment to answer: its answer cancels this handler."""
    await websocket.close(code, reason)
    with suppress(trio.TooSlowError), trio.fail_after(CLOSE_WAIT):
        await _drain()


def install(app: QuartTrio, core: CoreApi) -> None:
    """Add the route."""
    app.add_websocket("/api/events", "events", Events(core).serve)
