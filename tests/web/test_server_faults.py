"""Faults of the web stack that the server layer puts right, each seen from outside."""

from __future__ import annotations

import json
import socket
import time
from contextlib import suppress

import pytest
import trio
from trio_websocket import ConnectionClosed

from bridge.wsclient import open_websocket
from routes import events as events_route
from routes import hypercorn_fixes
from tests.support.fakecore import FakeCore
from tests.support.serving import (
    AUTH,
    WS_HEADERS,
    read_answer,
    read_to_end,
    server_process,
    serving,
    until,
)

UPGRADE = f"GET /api/events HTTP/1.1\r\n{WS_HEADERS}\r\n".encode()
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def test_a_failing_service_ends_the_server_instead_of_leaving_a_shell() -> None:
    with trio.fail_after(20):
        async with server_process("--crash", "0.5") as server:
            status, _ = await server.ended(10)
            assert status == 1
            with pytest.raises(OSError, match=r"(?i)refused|failed|connect"):
                await trio.open_tcp_stream("127.0.0.1", server.site.port)


async def test_idle_connection_is_closed_in_time_after_a_response() -> None:
    with trio.fail_after(10):
        async with serving(FakeCore(), keep_alive=0.5) as site, await site.raw(GET) as stream:
            assert (await read_answer(stream)).startswith(b"HTTP/1.1 200")
            begun = time.monotonic()
            assert await stream.receive_some(4096) == b""
            assert 0.3 < time.monotonic() - begun < 3


async def test_connection_that_never_asks_is_closed_in_time() -> None:
    with trio.fail_after(10):
        async with serving(FakeCore(), keep_alive=0.5) as site, await site.raw() as stream:
            assert await stream.receive_some(4096) == b""


async def test_connection_is_used_again_for_the_next_request() -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, await site.raw() as stream:
            for _ in range(20):
                await stream.send_all(GET)
                assert (await read_answer(stream)).startswith(b"HTTP/1.1 200")


async def test_idle_connections_do_not_hold_up_the_end() -> None:
    core = FakeCore()
    with trio.fail_after(20):
        async with serving(core, grace=10.0) as site:
            streams = [await site.raw(GET) for _ in range(5)]
            for stream in streams:
                assert (await read_answer(stream)).startswith(b"HTTP/1.1 200")
            begun = time.monotonic()
        assert time.monotonic() - begun < 2
        for stream in streams:
            assert await stream.receive_some(1) == b""
            await stream.aclose()


def deaf_socket(port: int, data: bytes) -> socket.socket:
    """A client that asks and then reads nothing."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(data)
    return client


async def test_peer_that_stops_reading_does_not_hold_up_the_end() -> None:
    with trio.fail_after(30):
        async with server_process("--flood", "2000", "--grace", "1", "--hard", "20") as server:
            with deaf_socket(server.site.port, UPGRADE):
                async with server.site.events() as other:
                    for _ in range(20):  # the flood runs, so the deaf one's buffers fill
                        await other.get_message()
                    server.signal()
                    status, seconds = await server.ended()
        assert status == 0
        assert seconds < 4


async def test_peer_that_stops_reading_is_dropped_and_costs_the_others_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hypercorn_fixes, "SEND_STALL", 0.5)
    core = FakeCore(limit=20_000)
    with trio.fail_after(30):
        async with serving(core) as site, site.events() as other:
            assert json.loads(await other.get_message())["seq"] == 0
            with deaf_socket(site.port, UPGRADE):
                await until(lambda: len(core.feeds) == 2)
                for _ in range(10):
                    core.publish(1000, data={"text": "x" * 2000})
                    await trio.sleep(0.01)
                seen = [e["seq"] for e in await read_events(other, 10_000)]
                await until(lambda: len(core.feeds) == 1)
            assert seen == list(range(1, 10_001))


async def read_events(connection: object, count: int) -> list[dict[str, int]]:
    seen: list[dict[str, int]] = []
    while len(seen) < count:
        seen += json.loads(await connection.get_message())  # type: ignore[attr-defined]
    return seen


async def test_peer_that_leaves_is_noticed_by_a_feed_with_nothing_to_send() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site:
            async with site.events() as connection:
                await connection.get_message()
                assert len(core.feeds) == 1
            await until(lambda: not core.feeds)


async def test_peer_that_vanishes_without_a_close_is_noticed() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site:
            stream = await site.raw(UPGRADE)
            await until(lambda: core.feeds)
            await stream.aclose()
            await until(lambda: not core.feeds)


async def test_what_a_peer_says_is_read_and_dropped() -> None:
    core = FakeCore()
    with trio.fail_after(20):
        async with serving(core) as site, site.events() as connection:
            await connection.get_message()
            for _ in range(1000):
                await connection.send_message("x" * 1000)
            core.publish()
            assert [e["seq"] for e in await read_events(connection, 1)] == [1]


async def test_message_that_is_too_long_ends_the_websocket() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.events() as connection:
            await connection.get_message()
            await connection.send_message("x" * (events_route.MAX_MESSAGE + 1))
            with pytest.raises(ConnectionClosed) as caught:
                await connection.get_message()
            assert caught.value.reason.code == 1009
            await until(lambda: not core.feeds)


async def send_zeros(stream: trio.SocketStream, count: int) -> None:
    for _ in range(0, count, 100_000):
        await stream.send_all(bytes(100_000))


async def test_message_without_end_fills_no_memory() -> None:
    with trio.fail_after(40):
        async with server_process() as server:
            before = server.rss_kib()
            head = b"\x81\xff" + (1 << 40).to_bytes(8, "big") + bytes(4)
            async with await server.site.raw(UPGRADE) as stream:
                assert (await stream.receive_some(4096)).startswith(b"HTTP/1.1 101")
                await stream.send_all(head)
                with pytest.raises(trio.BrokenResourceError):
                    await send_zeros(stream, 100_000_000)
            assert server.rss_kib() - before < 20_000
            assert await server.site.answers()


async def test_compression_is_not_agreed_on() -> None:
    offer = UPGRADE[:-2] + b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, await site.raw(offer) as stream:
            head = (await stream.receive_some(4096)).lower()
            assert head.startswith(b"http/1.1 101")
            assert b"sec-websocket-extensions" not in head


PINGED = b"\x89\x00"
PONG = b"\x8a\x80\0\0\0\0"


async def test_silent_peer_is_pinged_and_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypercorn_fixes, "PING_EVERY", 0.2)
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, await site.raw(UPGRADE) as stream:
            received = await read_to_end(stream)
            assert received.count(PINGED) == 2
            await until(lambda: not core.feeds)


async def test_peer_that_answers_pings_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypercorn_fixes, "PING_EVERY", 0.2)
    core = FakeCore()
    pings = 0
    with trio.fail_after(10):
        async with serving(core) as site, await site.raw(UPGRADE) as stream:
            while pings < 8:
                part = await stream.receive_some(4096)
                assert part, "the server left"
                for _ in range(part.count(PINGED)):
                    pings += 1
                    await stream.send_all(PONG)
            assert core.feeds


async def test_quiet_feed_is_told_that_the_bridge_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_route, "HEARTBEAT", 0.1)
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, site.events() as connection:
            assert json.loads(await connection.get_message())["type"] == "hello"
            assert await connection.get_message() == "[]"
            assert await connection.get_message() == "[]"


async def test_shutdown_closes_a_websocket_as_going_away() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.events() as connection:
            await connection.get_message()
            core.closing.set()
            with pytest.raises(ConnectionClosed) as caught:
                await connection.get_message()
            assert caught.value.reason.code == 1001


async def test_failing_feed_closes_its_websocket_as_failed() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.events() as connection:
            await connection.get_message()
            for feed in core.feeds:
                feed.broken = True
                feed.wake()
            with pytest.raises(ConnectionClosed) as caught:
                await connection.get_message()
            assert caught.value.reason.code == 1011
            assert await site.answers()


async def test_slow_answer_is_not_cut_off() -> None:
    """The framework's own deadline for sending a response is switched off: sends have one each."""
    with trio.fail_after(30):
        async with serving(FakeCore()) as site:
            head = b"POST /api/screenshot HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            auth = f"Authorization: {AUTH['Authorization']}\r\n\r\n".encode()
            with deaf_socket(site.port, head + auth) as client:
                client.settimeout(5)
                total = 0
                while True:
                    part = await trio.to_thread.run_sync(client.recv, 8192)
                    if not part:
                        break
                    total += len(part)
                    await trio.sleep(0.01)
            assert total > 200_000


async def test_port_is_bound_before_services_start_and_takes_many_at_once() -> None:
    with trio.fail_after(30):
        async with serving(FakeCore()) as site:
            # All connect before the server gets to accept one.
            clients = [socket.create_connection(("127.0.0.1", site.port), 2) for _ in range(400)]
            for client in clients:
                client.close()
            assert await site.answers()


async def test_address_in_use_is_an_error_at_start() -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site:
            with pytest.RaisesGroup(OSError, flatten_subgroups=True):
                async with serving(FakeCore(), port=site.port):
                    pytest.fail("two servers on one port")


async def test_client_gives_up_on_a_server_that_says_nothing() -> None:
    with trio.fail_after(10):
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listener.socket.getsockname()[1]
        begun = time.monotonic()
        with pytest.raises(trio.TooSlowError):
            async with open_websocket(f"ws://127.0.0.1:{port}/x", token="t", connect_timeout=0.3):
                pytest.fail("connected to nobody")
        assert time.monotonic() - begun < 3
        await listener.aclose()


async def test_client_leaves_a_server_that_does_not_answer_its_close() -> None:
    with trio.fail_after(10):
        async with server_process() as server:
            begun = 0.0
            async with server.site.events() as connection:
                await connection.get_message()
                server.process.send_signal(19)  # SIGSTOP
                begun = time.monotonic()
            assert time.monotonic() - begun < 4
            server.process.send_signal(18)


async def test_answer_to_a_large_body_that_nobody_reads_still_arrives() -> None:
    body = bytes(3_000_000)
    head = (
        "POST /api/send/text HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    ).encode()
    core = FakeCore()
    with trio.fail_after(20):
        async with serving(core, grace=0.1) as site:
            for _ in range(20):
                async with await site.raw() as stream, trio.open_nursery() as nursery:

                    @nursery.start_soon
                    async def push(stream: trio.SocketStream = stream) -> None:
                        with suppress(trio.BrokenResourceError):  # it need not take all
                            await stream.send_all(head + body)

                    answer = await read_to_end(stream)
                    assert answer.startswith(b"HTTP/1.1 401")
                    nursery.cancel_scope.cancel()
            assert await site.answers()


async def test_body_in_many_parts_that_nobody_reads_holds_up_nothing() -> None:
    """The app is done before its peer is: the reader must not wait for the app any more."""
    head = b"POST /api/send/text HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with trio.fail_after(20):
        async with serving(FakeCore(), grace=10.0) as site:
            for _ in range(5):
                async with await site.raw(head + b"1\r\nx\r\n" * 20_000) as stream:
                    assert (await read_answer(stream)).startswith(b"HTTP/1.1 401")
            begun = time.monotonic()
        assert time.monotonic() - begun < 3  # no connection was left over


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", b"HTTP/1.1 4"),
        (
            GET[:-2] + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
            b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
            b"HTTP/1.1 200",
        ),
    ],
    ids=["at once", "by upgrade"],
)
async def test_http_2_is_not_spoken(request_: bytes, status: bytes) -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, await site.raw(request_) as stream:
            assert (await stream.receive_some(4096)).startswith(status)
