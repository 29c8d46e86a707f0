"""One log line per request, and the trace id that ties it to the rest."""

from __future__ import annotations

from typing import Any

import structlog
import trio
from quart import g, request, websocket
from quart.wrappers import Request, Websocket
from quart_trio import QuartTrio

from bridge.model import Priority
from routes.headers import trace_id

_KEY = "deskbridge"

_POLLED = frozenset({"/healthz", "/readyz", "/metrics"})
"""What supervisors ask all day; told only when the log is set to debug."""

log = structlog.get_logger("routes")


def _notes(scope: Any) -> dict[str, Any]:
    notes: dict[str, Any] = scope.setdefault(_KEY, {})
    return notes


def note(name: str, value: Any) -> None:
    """Add to the log line of the request that is being handled."""
    _notes(request.scope)[name] = value


def note_priority(priority: Priority) -> None:
    """Say how urgent the action of this request is."""
    note("priority", priority.name)


def install(app: QuartTrio) -> None:
    """Give each request of `app` a trace id."""

    def begin(asked: Request | Websocket) -> None:
        headers = asked.headers
        g.trace_id = trace_id(headers.get("X-Request-ID"), headers.get("traceparent"))
        _notes(asked.scope)["trace_id"] = g.trace_id

    async def before_request() -> None:
        begin(request)

    async def before_websocket() -> None:
        begin(websocket)

    async def after_request(response: Any) -> Any:
        response.headers["X-Request-ID"] = g.get("trace_id", "")
        return response

    app.before_request(before_request)
    app.before_websocket(before_websocket)
    app.after_request(after_request)


class RequestLog:
    """ASGI middleware that writes the line, also when the caller hung up (status 499)."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle one request or WebSocket."""
        begun = trio.current_time()
        seen: dict[str, int] = {}

        async def watched(message: Any) -> None:
            if message["type"] in {"http.response.start", "websocket.http.response.start"}:
                seen["status"] = message["status"]
            elif message["type"] == "websocket.accept":
                seen["status"] = 101
            elif message["type"] == "websocket.close":
                seen["close"] = message.get("code", 1000)
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            tell = log.debug if scope["path"] in _POLLED else log.info
            tell(
                "request",
                method=scope.get("method", "WS"),
                path=scope["path"],
                ms=round((trio.current_time() - begun) * 1000, 1),
                **{"status": 499, **seen},
                **scope.get(_KEY, {}),
            )
