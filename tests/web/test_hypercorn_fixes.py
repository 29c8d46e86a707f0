"""The joints between connection and app that no timing from outside hits for sure."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from hypercorn.config import Config
from hypercorn.protocol.ws_stream import FrameTooLargeError
from wsproto.events import TextMessage

from routes.hypercorn_fixes import Abuse, Buffer, Sends, Tasks

BODY: Any = {"type": "http.request", "body": b"x", "more_body": True}
GONE: Any = {"type": "http.disconnect"}
SCOPE: Any = {"type": "http", "path": "/"}


async def sink(message: Any) -> None:
    await trio.lowlevel.checkpoint()


async def test_app_that_has_ended_does_not_block_the_reader() -> None:
    async def app(*_: Any) -> None:
        await trio.lowlevel.checkpoint()

    with trio.fail_after(5):
        async with Tasks() as tasks:
            put = await tasks.spawn_app(app, Config(), SCOPE, sink)
            for _ in range(50):
                await put(BODY)


async def test_app_that_does_not_look_is_cancelled_when_its_peer_goes() -> None:
    ended: list[str] = []

    async def app(*_: Any) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append("cancelled")

    with trio.fail_after(5):
        async with Tasks() as tasks:
            config = Config()
            put = await tasks.spawn_app(app, config, SCOPE, sink)
            for _ in range(config.max_app_queue_size):
                await put(BODY)
            await put(GONE)
    assert ended == ["cancelled"]


async def test_app_that_looks_is_told_that_its_peer_has_gone() -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, *_: Any) -> None:
        while not seen or seen[-1] != "http.disconnect":
            seen.append((await receive())["type"])

    with trio.fail_after(5):
        async with Tasks() as tasks:
            put = await tasks.spawn_app(app, Config(), SCOPE, sink)
            await put(BODY)
            await put(GONE)
    assert seen == ["http.request", "http.disconnect"]


async def test_failing_app_ends_its_request_alone() -> None:
    sent: list[Any] = []

    async def app(*_: Any) -> None:
        await trio.lowlevel.checkpoint()
        raise RuntimeError("a defect")

    async def send(message: Any) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(message)

    with trio.fail_after(5):
        async with Tasks() as tasks:
            await tasks.spawn_app(app, Config(), SCOPE, send)
    assert sent == [None]  # the server answers in its place


async def test_begun_send_is_not_torn_by_a_cancellation() -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any, *_: Any) -> None:
        with trio.CancelScope() as scope_:
            scope_.cancel()
            await send("whole")

    async def send(message: Any) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(message)

    with trio.fail_after(5):
        async with Tasks() as tasks:
            await tasks.spawn_app(app, Config(), SCOPE, send)
    assert sent == ["whole", None]


async def test_forced_sends_end_at_once_also_those_that_come_later() -> None:
    with trio.fail_after(10):
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        async with listener:
            client = await trio.open_tcp_stream(*listener.socket.getsockname())
            server = await listener.accept()
            sends = Sends()
            results: list[bool] = []

            async def send() -> None:
                results.append(await sends.send(server, bytes(50_000_000)))

            async with client, server, trio.open_nursery() as nursery:
                nursery.start_soon(send)
                await trio.testing.wait_all_tasks_blocked()
                sends.cancel()
                await trio.testing.wait_all_tasks_blocked()
                await send()
    assert results == [False, False]


def test_buffer_keeps_nothing_beyond_its_limit() -> None:
    buffer = Buffer(10)
    buffer.extend(TextMessage("12345"))
    buffer.extend(TextMessage("67890"))
    with pytest.raises(FrameTooLargeError):
        buffer.extend(TextMessage("1"))
    assert buffer.value is None
    with pytest.raises(Abuse):
        buffer.extend(TextMessage(""))
