"""Hypercorn's connection, with what its release lacks put right.

Hypercorn parses and serialises HTTP/1.1 and WebSockets; `Connection` drives it. What differs
from Hypercorn's own:

- An error that one peer causes ends that peer's connection, nothing else.
- Every send has a deadline, and a send that was begun is never torn by a cancellation.
- A response is finished even when its handler is cancelled by the end that it provokes, so the
  connection goes back to idle and is closed in time.
- An app that ended, or does not read, blocks neither the reader nor the end of the connection.
- A request answered before its body was read is drained for a moment, so that the answer arrives.
- WebSocket peers are pinged and dropped when silent, their messages are bounded while they
  come in, and no compression is agreed on (a few bytes of it unpack to gigabytes).
- HTTP/2 is not spoken.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import Any

import h11
import structlog
import trio
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.protocol.ws_stream import (
    ASGIWebsocketState,
    FrameTooLargeError,
    WebsocketBuffer,
    WSStream,
)
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import MAX_RECV, TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ASGIReceiveEvent, ASGISendEvent, ConnectionState, Scope
from hypercorn.utils import parse_socket_addr
from wsproto.events import Message, Ping

SEND_STALL = 5.0
"""Seconds that a peer may take to accept `CHUNK` bytes."""

CHUNK = 64 * 1024
LINGER = 1.0
"""Seconds for which input is discarded after the last answer."""

PING_EVERY = 10.0
"""Seconds of silence of a WebSocket peer before it is pinged; after three of them it is dropped."""

log = structlog.get_logger(__name__)


class Abuse(Exception):
    """Raised when a peer goes on after it was told to stop."""


class Buffer(WebsocketBuffer):
    """A message that is coming in. Gives up at its limit and keeps nothing beyond it."""

    _told = False

    def extend(self, event: Message[Any]) -> None:
        """Add a part. Raises FrameTooLargeError, then Abuse for whatever still comes."""
        if self._told:
            raise Abuse("a WebSocket peer goes on with a message that is too long")
        if self.length + len(event.data) > self.max_length:
            self._told = True
            self.clear()
            raise FrameTooLargeError
        super().extend(event)


class Http1(H11Protocol):
    """HTTP/1.1 and WebSockets, never HTTP/2, never compressed."""

    async def _check_protocol(self, event: h11.Request) -> None:
        """Hypercorn would switch to HTTP/2 here."""

    async def _create_stream(self, request: h11.Request) -> None:
        headers = [
            (name, value)
            for name, value in request.headers.raw_items()
            if name.lower() != b"sec-websocket-extensions"
        ]
        await super()._create_stream(
            h11.Request(
                method=request.method,
                target=request.target,
                headers=headers,
                http_version=request.http_version,
            )
        )
        if isinstance(self.stream, WSStream):
            self.stream.buffer = Buffer(self.config.websocket_max_message_size)

    @property
    def websocket(self) -> WSStream | None:
        """The WebSocket, once it is accepted."""
        stream = self.stream
        if isinstance(stream, WSStream) and stream.state is ASGIWebsocketState.CONNECTED:
            return stream
        return None

    async def ping(self) -> None:
        """Ask the peer of the WebSocket for a sign of life."""
        if self.websocket is not None:
            await self.websocket._send_wsproto_event(Ping())


class Tasks(TaskGroup):
    """The tasks of one connection; starts the app for each request."""

    async def spawn_app(
        self,
        app: AppWrapper,
        config: Config,
        scope: Scope,
        send: Callable[[ASGISendEvent | None], Awaitable[None]],
    ) -> Callable[[ASGIReceiveEvent], Awaitable[None]]:
        """Start the app; returns how to hand it what its peer does."""
        to_app, for_app = trio.open_memory_channel[ASGIReceiveEvent](config.max_app_queue_size)
        running = trio.CancelScope()

        async def whole(message: ASGISendEvent | None) -> None:
            # Each send has its own deadline (Connection.protocol_send), so this ends.
            with trio.CancelScope(shield=True):
                await send(message)

        async def run() -> None:
            with running, for_app:
                try:
                    await app(scope, for_app.receive, whole, _no_threads, _no_threads)
                except* Exception as group:
                    log.error("the app failed", path=scope.get("path"), exc_info=group)
                finally:
                    await whole(None)

        async def put(message: ASGIReceiveEvent) -> None:
            try:
                if message["type"] in {"http.disconnect", "websocket.disconnect"}:
                    to_app.send_nowait(message)
                else:
                    await to_app.send(message)
            except trio.BrokenResourceError:
                pass  # the app has ended
            except trio.WouldBlock:
                running.cancel()  # the peer has gone, and the app does not look

        assert self._nursery is not None
        self._nursery.start_soon(run)
        return put


def _no_threads(*_: Any) -> Any:
    raise NotImplementedError("an ASGI app needs no threads from its server")


class Sends:
    """The sends of all connections that are under way, so that shutdown can end them."""

    def __init__(self) -> None:
        self._scopes: set[trio.CancelScope] = set()
        self._forced = False

    def cancel(self) -> None:
        """End those under way, and from now on every one at once."""
        self._forced = True
        for scope in self._scopes:
            scope.cancel()

    async def send(self, stream: trio.SocketStream, data: bytes) -> bool:
        """Send `data`, shielded. False when the peer did not take it in time."""
        for start in range(0, len(data), CHUNK):
            with trio.CancelScope(shield=True, deadline=trio.current_time() + SEND_STALL) as scope:
                if self._forced:
                    scope.cancel()
                self._scopes.add(scope)
                try:
                    await stream.send_all(data[start : start + CHUNK])
                finally:
                    self._scopes.discard(scope)
            if scope.cancelled_caught:
                return False
        return True


class Connection(TCPServer):
    """One connection of one peer."""

    stream: trio.SocketStream  # type: ignore[assignment]  # plain TCP only
    protocol: Http1  # type: ignore[assignment]  # one protocol only

    def __init__(
        self,
        app: AppWrapper,
        config: Config,
        context: WorkerContext,
        sends: Sends,
        stream: trio.SocketStream,
    ) -> None:
        super().__init__(app, config, context, ConnectionState({}), stream)  # type: ignore[arg-type]
        self._sends = sends
        self._reading = trio.CancelScope()
        self._linger_until: float | None = None

    async def run(self) -> None:
        """Serve the peer until either side has enough. Raises nothing that the peer can cause."""
        try:
            await self._serve()
        except* OSError:
            pass  # the peer has gone
        except* Exception as group:
            log.warning("connection failed", errors=[repr(leaf)[:300] for leaf in _leaves(group)])
        finally:
            await trio.aclose_forcefully(self.stream)

    async def _serve(self) -> None:
        socket = self.stream.socket
        client = parse_socket_addr(socket.family, socket.getpeername())
        server = parse_socket_addr(socket.family, socket.getsockname())
        async with Tasks() as tasks:
            self._task_group = tasks
            self.protocol = Http1(
                self.app,
                self.config,
                self.context,
                tasks,
                ConnectionState({}),
                False,
                client,
                server,
                self.protocol_send,
            )
            await self.idle_task.restart(tasks, self._idle_timeout)
            try:
                await self._read_data()
            finally:
                await self.idle_task.stop()

    async def protocol_send(self, event: Event) -> None:
        """Carry out what the protocol decided."""
        if isinstance(event, RawData):
            await self._send(event.data)
        elif isinstance(event, Closed):
            await self._finish()
        else:
            await super().protocol_send(event)

    async def _send(self, data: bytes) -> None:
        async with self.send_lock:
            try:
                taken = await self._sends.send(self.stream, data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                taken = False
        if not taken:
            await trio.aclose_forcefully(self.stream)
            await self.protocol.handle(Closed())

    async def _finish(self) -> None:
        """Say that nothing more comes, and let the reader discard input for a moment."""
        if self._linger_until is not None:
            return
        self._linger_until = trio.current_time() + LINGER
        self._reading.deadline = self._linger_until
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            await self.stream.send_eof()
        await self.protocol.handle(Closed())

    async def _read_data(self) -> None:
        silences = 0
        while True:
            with trio.CancelScope(deadline=self._patience()) as self._reading:
                try:
                    data = await self.stream.receive_some(MAX_RECV)
                except (trio.ClosedResourceError, trio.BrokenResourceError):
                    break
            if self._reading.cancelled_caught:
                silences += 1
                if self._linger_until is not None or silences > 2:
                    break
                await self.protocol.ping()
                continue
            silences = 0
            if self._linger_until is None:
                await self.protocol.handle(RawData(bytes(data)))
            if data == b"":
                break
        await self.protocol.handle(Closed())

    def _patience(self) -> float:
        """Until when to wait for input."""
        if self._linger_until is not None:
            return self._linger_until
        # Not only once it is accepted: that may happen while this waits.
        websocket = isinstance(self.protocol.stream, WSStream)
        return trio.current_time() + PING_EVERY if websocket else inf


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
