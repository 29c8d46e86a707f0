"""Malformed input ends its own connection at most: others are served during and after it."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio

from tests.support.fakecore import FakeCore
from tests.support.serving import WS_HEADERS, read_to_end, serving

UPGRADE = f"GET /api/events HTTP/1.1\r\n{WS_HEADERS}".encode()
PING = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
H2C = b"Host: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"

ONE_SHOT = {
    "websocket with trailing bytes": UPGRADE + b"\r\nx\n",
    "websocket with trailing frames": UPGRADE + b"\r\n" + b"\x81\x81\0\0\0\0a" * 50,
    "websocket without key": b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n"
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n",
    "websocket without version": b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n"
    b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "websocket with strange extensions": UPGRADE + b"Sec-WebSocket-Extensions: \xff;;=\r\n\r\n",
    "websocket with strange protocols": UPGRADE + b"Sec-WebSocket-Protocol: \xff\xfe, ,\r\n\r\n",
    "path of high bytes": b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "path that is not UTF-8": b"GET /%ff%fe?\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "host of high bytes": b"GET /healthz HTTP/1.1\r\nHost: \xff\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "absolute address": b"GET http://a:b@c:99999/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "upgrade to HTTP/2": b"GET /healthz HTTP/1.1\r\n"
    + H2C
    + b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    "upgrade to HTTP/2 with bad settings": b"GET /healthz HTTP/1.1\r\n"
    + H2C
    + b"HTTP2-Settings: !!!\r\n\r\n",
    "HTTP/2 at once": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    "HTTP/2 garbage": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 100,
    "bad content length": b"POST /healthz HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: abc\r\n\r\n",
    "two ways to say the length": b"POST /healthz HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "binary garbage": bytes(range(256)) * 4,
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * 200,
    "pipelined": PING * 5,
    "bad cookie and query": b"GET /healthz?a=%ff&b=%zz HTTP/1.1\r\nHost: localhost\r\n"
    b"Cookie: \x80=\xff\r\n\r\n",
    "headers without end": b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000,
    "asterisk": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "body cut off": b"POST /api/send/text HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Length: 100\r\n\r\nabc",
    "bad chunk": b"POST /api/send/text HTTP/1.1\r\nHost: localhost\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
}
TWO_STEPS = {
    "garbage frame": b"\xff\xff\xff\xff",
    "unmasked frame": b"\x81\x01a",
    "text that is not UTF-8": b"\x81\x82\0\0\0\0\xff\xfe",
    "control frame too long": b"\x89\xfe\x01\x00\0\0\0\0" + b"a" * 256,
    "data after close": b"\x88\x82\0\0\0\0\x03\xe8\x81\x81\0\0\0\0a",
    "close with a bad code": b"\x88\x82\0\0\0\0\x00\x01",
    "compressed garbage": b"\xc1\x84\0\0\0\0abcd",
    "message that is too long": b"\x81\xff" + (1 << 40).to_bytes(8, "big") + bytes(4 + 300_000),
}


@pytest.mark.parametrize("data", ONE_SHOT.values(), ids=ONE_SHOT)
async def test_malformed_request_harms_nobody_else(data: bytes) -> None:
    with trio.fail_after(20):
        async with serving(FakeCore()) as site, site.events() as bystander:
            assert "hello" in await bystander.get_message()
            async with await site.raw() as stream:
                with trio.move_on_after(5):
                    with suppress(trio.BrokenResourceError):  # it may have enough before
                        await stream.send_all(data)
                        await stream.send_eof()
                    await read_to_end(stream)
                assert await site.answers()
            await bystander.ping()


@pytest.mark.parametrize("frame", TWO_STEPS.values(), ids=TWO_STEPS)
async def test_malformed_frame_ends_its_websocket_alone(frame: bytes) -> None:
    core = FakeCore()
    with trio.fail_after(20):
        async with serving(core) as site, site.events() as bystander:
            assert "hello" in await bystander.get_message()
            async with await site.raw(
                UPGRADE + b"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
            ) as stream:
                assert (await stream.receive_some(4096)).startswith(b"HTTP/1.1 101")
                with suppress(trio.BrokenResourceError):  # it may have enough before the end
                    await stream.send_all(frame)
                await read_to_end(stream)  # ends: the server closes
            assert await site.answers()
            await bystander.ping()
            assert len(core.feeds) == 1


async def test_a_body_is_announced_and_then_sent() -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site:
            head = (
                b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
                b"Connection: close\r\nContent-Length: 5\r\n\r\n"
            )
            async with await site.raw(head) as stream:
                assert (await stream.receive_some(4096)).startswith(b"HTTP/1.1 ")
                await stream.send_all(b"hello")
                await read_to_end(stream)
            assert await site.answers()
