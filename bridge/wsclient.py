"""A client of the event feed: connects within a deadline, and resumes where it was cut off."""

from __future__ import annotations

import json
import math
import random
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import trio
from trio_websocket import (
    ConnectionClosed,
    DisconnectionTimeout,
    HandshakeError,
    WebSocketConnection,
    wrap_client_stream,
)

CONNECT_TIMEOUT = 10.0
CLOSE_TIMEOUT = 2.0
SILENCE = 40.0
"""Seconds without a frame after which the bridge is taken for gone; it sends one every 15."""

MAX_MESSAGE = 16 * 1024 * 1024


class FeedRefused(Exception):
    """Raised when the bridge will not let this client in; trying again would not help."""


@asynccontextmanager
async def open_websocket(
    url: str, *, token: str, connect_timeout: float = CONNECT_TIMEOUT
) -> AsyncIterator[WebSocketConnection]:
    """A WebSocket to `url`.

    The deadline covers a peer that accepts and then says nothing, and leaving takes at most
    CLOSE_TIMEOUT. Raises trio.TooSlowError, HandshakeError or OSError.
    """
    failure: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery, AsyncExitStack() as stack:
            try:
                with trio.fail_after(connect_timeout):
                    connection = await _connect(nursery, stack, url, token)
            except (trio.TooSlowError, HandshakeError, OSError) as error:
                failure = error  # raised below, or the nursery would wrap it
            else:
                try:
                    yield connection
                finally:
                    with trio.move_on_after(_close_time(), shield=True):
                        await connection.aclose()
            nursery.cancel_scope.cancel()
    except* HandshakeError as group:  # a refusal comes out of the library's reading task
        failure = _first(group)
    if failure is not None:
        raise failure


def _close_time() -> float:
    """Seconds for saying good-bye. When we are cancelled nobody reads the peer's answer."""
    cancelled = trio.current_effective_deadline() == -math.inf
    return CLOSE_TIMEOUT / 20 if cancelled else CLOSE_TIMEOUT


async def _connect(
    nursery: trio.Nursery, stack: AsyncExitStack, url: str, token: str
) -> WebSocketConnection:
    """Connect over a stream of our own: the library leaves it open when it is refused."""
    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "wss"
    port = parts.port or (443 if secure else 80)
    stream: trio.SocketStream | trio.SSLStream[trio.SocketStream]
    if secure:
        stream = await trio.open_ssl_over_tcp_stream(host, port, https_compatible=True)
    else:
        stream = await trio.open_tcp_stream(host, port)
    stack.push_async_callback(trio.aclose_forcefully, stream)
    return await wrap_client_stream(
        nursery,
        stream,
        parts.netloc.rpartition("@")[2],
        f"{parts.path}?{parts.query}" if parts.query else parts.path,
        extra_headers=[(b"Authorization", f"Bearer {token}".encode())],
        max_message_size=MAX_MESSAGE,
    )


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@dataclass
class Feed:
    """The events of the bridge at `base` (such as `ws://127.0.0.1:8655`), across reconnects.

    `since` is where the next connection resumes: it moves with every frame.
    """

    base: str
    token: str
    connect_timeout: float = CONNECT_TIMEOUT
    since: tuple[str, int] | None = None
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack, repr=False)

    @property
    def url(self) -> str:
        """Where the next connection goes."""
        if self.since is None:
            return f"{self.base}/api/events"
        epoch, seq = self.since
        return f"{self.base}/api/events?since={quote(f'{epoch}:{seq}', safe='')}"

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[AsyncIterator[Any]]:
        """One connection: yields its messages, `hello` (an object) first, then lists of events.

        The messages end when the connection does. Raises FeedRefused, HandshakeError, OSError
        or trio.TooSlowError.
        """
        try:
            async with (
                open_websocket(
                    self.url, token=self.token, connect_timeout=self.connect_timeout
                ) as connection,
                aclosing(self._messages(connection)) as messages,
            ):
                yield messages
        except HandshakeError as error:
            status = getattr(error, "status_code", None)
            if status is not None and status < 500:
                raise FeedRefused(f"the bridge answered {status}") from error
            raise

    async def _messages(self, connection: WebSocketConnection) -> AsyncGenerator[Any, None]:
        while True:
            try:
                with trio.fail_after(SILENCE):
                    text = await connection.get_message()
            except (ConnectionClosed, DisconnectionTimeout, trio.TooSlowError):
                return
            message = json.loads(text)
            self._advance(message)
            yield message

    def _advance(self, message: Any) -> None:
        if isinstance(message, Mapping):
            if message.get("type") == "hello":
                self.since = (message["epoch"], message["seq"])
        elif self.since is not None:
            for event in message:
                self.since = (self.since[0], max(self.since[1], event.get("seq", 0)))


def pause(failures: int) -> float:
    """Seconds before another try after so many failures in a row: 0.25 to 10, with jitter."""
    return float(min(10.0, 0.25 * 2 ** min(failures, 10)) * random.uniform(0.5, 1.0))
