"""The HTTP server: accepts, serves, and ends in order. Our nursery is the outermost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext

from bridge.lifetime import watch_signals
from routes.app import make_app
from routes.core_api import CoreApi
from routes.events import MAX_MESSAGE
from routes.hypercorn_fixes import Connection, Sends

BACKLOG = 1024


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How to serve. `port` 0 takes a free one; times in seconds.

    `grace` is what shutdown leaves to requests under way; `keep_alive` to an idle connection.
    """

    host: str = "127.0.0.1"
    port: int = 0
    grace: float = 10.0
    keep_alive: float = 30.0
    hosts: frozenset[str] = frozenset()
    """Host names beside the local ones under which the server may be called."""


def _hypercorn(config: ServerConfig) -> Config:
    settings = Config()
    settings.accesslog = None
    settings.errorlog = None
    settings.include_server_header = False
    settings.keep_alive_timeout = config.keep_alive
    settings.keep_alive_max_requests = 1_000_000
    settings.websocket_max_message_size = MAX_MESSAGE
    return settings


class Server:
    """Accepts connections until the core is closing, then ends them within the grace period."""

    def __init__(self, core: CoreApi, config: ServerConfig) -> None:
        self._core = core
        self._config = config
        self._sends = Sends()
        self._context = WorkerContext(None)
        self._open = 0
        self._all_closed = trio.Event()

    async def run(
        self, *, task_status: trio.TaskStatus[tuple[str, int]] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve. Reports the address once the port is bound.

        Raises OSError when it cannot be bound.
        """
        config = self._config
        listeners = await trio.open_tcp_listeners(config.port, host=config.host, backlog=BACKLOG)
        host, port = listeners[0].socket.getsockname()[:2]
        app = make_app(self._core, hosts=config.hosts | {config.host}, grace=config.grace)
        handler = partial(self._serve_peer, ASGIWrapper(app), _hypercorn(config))
        async with trio.open_nursery() as peers:
            async with trio.open_nursery() as accepting:
                accepting.start_soon(
                    partial(trio.serve_listeners, handler, listeners, handler_nursery=peers)
                )
                task_status.started((host, port))
                await self._core.closing.wait()
                accepting.cancel_scope.cancel()
            await self._end(peers)

    async def _serve_peer(
        self, app: ASGIWrapper, config: Config, stream: trio.SocketStream
    ) -> None:
        self._open += 1
        try:
            await Connection(app, config, self._context, self._sends, stream).run()
        finally:
            self._open -= 1
            if not self._open:
                self._all_closed.set()

    async def _end(self, peers: trio.Nursery) -> None:
        """Idle connections go at once, the others within the grace period, the rest by force."""
        await self._context.terminated.set()
        with trio.move_on_after(self._config.grace):
            while self._open:
                self._all_closed = trio.Event()
                await self._all_closed.wait()
        peers.cancel_scope.cancel()
        self._sends.cancel()


async def serve(
    core: CoreApi,
    config: ServerConfig,
    *,
    task_status: trio.TaskStatus[tuple[str, int]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve `core` until it is closing; reports (host, port) once the port is bound."""
    await Server(core, config).run(task_status=task_status)


async def serve_until(
    core: CoreApi,
    config: ServerConfig,
    services: Callable[..., Awaitable[Any]],
    *,
    hard_deadline: float,
    announce: Callable[[str, int], object] = lambda host, port: None,
) -> None:
    """Bind the port, run `services` beside the server, and end on SIGTERM or SIGINT.

    `announce` is called with host and port once `services` has started.

    `services` is started with `task_status` and is to end by itself once the core is closing;
    `hard_deadline` seconds after that the process is ended by force. An error in any of them
    ends all of them.
    """
    async with trio.open_nursery() as outermost:
        await outermost.start(partial(watch_signals, core.closing, hard_deadline_s=hard_deadline))
        async with trio.open_nursery() as nursery:
            host, port = await nursery.start(serve, core, config)
            await nursery.start(services)
            announce(host, port)
        outermost.cancel_scope.cancel()
