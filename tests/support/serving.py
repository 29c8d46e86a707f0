"""A server around a `FakeCore`: in the test's own nursery, or in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import trio
from trio_websocket import WebSocketConnection

from bridge.wsclient import open_websocket
from routes.server import ServerConfig, serve
from tests.support.fakecore import TOKEN, FakeCore

ROOT = Path(__file__).parents[2]
AUTH = {"Authorization": f"Bearer {TOKEN}"}
WS_HEADERS = (
    "Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    f"Authorization: Bearer {TOKEN}\r\n"
)


@dataclass(frozen=True)
class Site:
    """Where a server listens."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def http(self, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
        """A client that knows the token."""
        async with httpx.AsyncClient(
            base_url=self.url, headers={**AUTH, **headers}, timeout=20, trust_env=False
        ) as client:
            yield client

    @asynccontextmanager
    async def events(self, query: str = "") -> AsyncIterator[WebSocketConnection]:
        """A WebSocket of events."""
        async with open_websocket(f"{self.ws_url}/api/events{query}", token=TOKEN) as connection:
            yield connection

    async def raw(self, data: bytes = b"") -> trio.SocketStream:
        """A TCP connection on which `data` was sent."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        if data:
            await stream.send_all(data)
        return stream

    async def ask_raw(self, method: str, path: str, *lines: str, body: bytes = b"") -> bytes:
        """Send one request by hand and read its answer up to the end of the connection."""
        head = "\r\n".join((f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""))
        async with await self.raw(head.encode() + body) as stream:
            return await read_to_end(stream)

    async def answers(self) -> bool:
        """Whether the server serves somebody."""
        async with self.http() as client:
            return (await client.get("/healthz")).status_code == 200


async def read_to_end(stream: trio.SocketStream) -> bytes:
    """All that comes until the peer closes; a reset ends it too."""
    received = bytearray()
    try:
        async for part in stream:
            received += part
    except trio.BrokenResourceError:
        pass
    return bytes(received)


async def read_answer(stream: trio.SocketStream) -> bytes:
    """One answer with a Content-Length, and nothing beyond it."""
    received = bytearray()
    while b"\r\n\r\n" not in received:
        part = await stream.receive_some(4096)
        assert part, "the connection ended within an answer"
        received += part
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        part = await stream.receive_some(length - len(body))
        assert part, "the connection ended within an answer"
        body += part
    assert len(body) == length
    return head + b"\r\n\r\n" + body


async def until(condition: Callable[[], Any], seconds: float = 10) -> None:
    """Wait for a condition that nobody announces."""
    with trio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110
            await trio.sleep(0.005)


@asynccontextmanager
async def serving(core: FakeCore, **config: Any) -> AsyncIterator[Site]:
    """A server in this process. At the end of the block it is closed in order."""
    async with trio.open_nursery() as nursery:
        settings = ServerConfig(**{"grace": 2.0, **config})
        _, port = await nursery.start(partial(serve, core, settings))
        try:
            yield Site(port)
        finally:
            core.closing.set()


@dataclass
class ServerProcess:
    """A server in a process of its own."""

    site: Site
    process: subprocess.Popen[str]

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    async def ended(self, seconds: float = 15) -> tuple[int, float]:
        """Exit status, and the seconds it took from now."""
        begun = time.monotonic()
        status = await trio.to_thread.run_sync(
            partial(self.process.wait, seconds), abandon_on_cancel=True
        )
        return status, time.monotonic() - begun

    def rss_kib(self) -> int:
        """Resident memory."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise LookupError("no VmRSS")


@asynccontextmanager
async def server_process(*options: str) -> AsyncIterator[ServerProcess]:
    """Start `tests.support.fakecore`; kill it at the end of the block if it still runs."""
    with subprocess.Popen(  # Popen, for signals and a wait with a timeout
        [sys.executable, "-m", "tests.support.fakecore", *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            with trio.fail_after(20):
                line = await trio.to_thread.run_sync(
                    process.stdout.readline, abandon_on_cancel=True
                )
            yield ServerProcess(Site(int(line.split()[1])), process)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
