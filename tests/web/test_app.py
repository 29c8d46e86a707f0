"""What holds for every route: token, host, trace id, problems, the log line; and the reads."""

from __future__ import annotations

import pytest
import structlog
import trio
from trio_websocket import HandshakeError

from bridge.wsclient import open_websocket
from routes.auth import bearer, host_name, subprotocol
from tests.support.fakecore import TOKEN, FakeCore
from tests.support.serving import AUTH, serving, until

PROTECTED = ["/api/queue", "/api/status", "/api/openapi.json", "/metrics", "/api/nope", "/nope"]


@pytest.mark.parametrize("path", PROTECTED)
@pytest.mark.parametrize(
    "authorization", [None, "Bearer wrong", "Basic bGV0LW1lLWlu", f"Bearer{TOKEN}", "Bearer", TOKEN]
)
async def test_nothing_is_told_without_the_token(path: str, authorization: str | None) -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, site.http() as client:
            del client.headers["Authorization"]
            headers = {} if authorization is None else {"Authorization": authorization}
            answer = await client.get(path, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
            assert (await client.get(f"{path}?token={TOKEN}")).status_code == 401


async def test_health_is_open() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            del client.headers["Authorization"]
            assert (await client.get("/healthz")).json() == {"status": "ok"}
            assert (await client.get("/readyz")).json() == {"ready": True, "display": ":9"}


async def test_reads() -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, site.http() as client:
            assert (await client.get("/api/queue")).json() == {"pending": 0}
            assert (await client.get("/api/status")).json()["waiters"] == 0
            login = (await client.get("/api/login")).json()
            assert login == {"state": "logged_in", "account": "demo", "evidence": {}}
            metrics = await client.get("/metrics")
            assert metrics.text == "deskbridge_up 1\n"
            assert metrics.headers["Content-Type"].startswith("text/plain; version=0.0.4")


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil", "a b"]
)
async def test_other_hosts_are_refused_before_the_token(host: str) -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, site.http() as client:
            answer = await client.get("/healthz", headers={"Host": host})
            assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1:1", "[::1]:8655", "box"])
async def test_known_hosts_are_served(host: str) -> None:
    with trio.fail_after(10):
        async with serving(FakeCore(), hosts=frozenset({"Box"})) as site, site.http() as client:
            assert (await client.get("/healthz", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/nope", 404, "NOT_FOUND"),
        ("GET", "/api/queue/", 404, "NOT_FOUND"),
        ("GET", "/api//queue", 404, "NOT_FOUND"),
        ("GET", "/api/send/text", 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", "/api/queue", 405, "METHOD_NOT_ALLOWED"),
        ("GET", "/api/events", 400, "INVALID_REQUEST"),
    ],
)
async def test_errors_of_the_framework_are_problems(
    method: str, path: str, status: int, code: str
) -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, site.http() as client:
            answer = await client.request(method, site.url + path)
            assert (answer.status_code, answer.json()["code"]) == (status, code)
            assert answer.headers["Content-Type"] == "application/problem+json"
            if status == 405:
                assert answer.headers["Allow"]


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"X-Request-ID": "order-17"}, "order-17"),
        ({"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}, "ab" * 16),
        ({"X-Request-ID": "mine", "traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}, "mine"),
    ],
)
async def test_trace_id_of_the_caller_goes_all_the_way(
    headers: dict[str, str], expected: str
) -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            answer = await client.post(
                "/api/send/text", json={"to": "A", "text": "x"}, headers=headers
            )
            assert answer.headers["X-Request-ID"] == expected
            assert answer.json()["action"]["trace_id"] == expected
    assert core.requests[0].trace_id == expected


@pytest.mark.parametrize("value", ["", "x" * 129, "a b", f"00-{'0' * 32}-{'cd' * 8}-01"])
async def test_useless_trace_ids_are_replaced(value: str) -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, site.http() as client:
            headers = {"traceparent" if value.startswith("00-") else "X-Request-ID": value}
            first = (await client.get("/healthz", headers=headers)).headers["X-Request-ID"]
            second = (await client.get("/healthz", headers=headers)).headers["X-Request-ID"]
    assert first != second
    assert len(first) == len(second) == 32


async def test_one_log_line_per_request() -> None:
    core = FakeCore()
    with trio.fail_after(10), structlog.testing.capture_logs() as lines:
        async with serving(core) as site, site.http() as client:
            await client.post("/api/send/text", json={"to": "A", "text": "private"})
            await client.get("/api/nope?token=private")
            with trio.move_on_after(0.3):
                await client.post("/api/send/text", json={"to": "A", "text": "wait"})
            await until(lambda: len(lines) == 3)
    assert [(line["path"], line["status"]) for line in lines] == [
        ("/api/send/text", 200),
        ("/api/nope", 404),
        ("/api/send/text", 499),
    ]
    assert lines[0]["priority"] == "NORMAL"
    assert lines[0]["action"] == "a1"
    assert lines[0]["trace_id"] == core.requests[0].trace_id
    assert "private" not in str(lines)


async def test_websocket_takes_the_token_in_header_or_subprotocol() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site:
            for protocols, chosen in [
                ("deskbridge, bearer.let-me-in", "deskbridge"),
                ("bearer.let-me-in", "bearer.let-me-in"),
            ]:
                stream = await site.raw(upgrade(f"Sec-WebSocket-Protocol: {protocols}\r\n"))
                head = (await stream.receive_some(4096)).decode().lower()
                await stream.aclose()
                assert head.startswith("http/1.1 101")
                assert f"sec-websocket-protocol: {chosen}\r\n" in head
            for bad in ("", "Sec-WebSocket-Protocol: deskbridge, bearer.wrong\r\n"):
                stream = await site.raw(upgrade(bad))
                head = (await stream.receive_some(4096)).decode()
                await stream.aclose()
                assert head.startswith("HTTP/1.1 401")
            await until(lambda: not core.feeds)
    assert len(core.since) == 2


def upgrade(lines: str, host: str = "localhost") -> bytes:
    return (
        f"GET /api/events HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{lines}\r\n"
    ).encode()


async def test_websocket_checks_host_and_address() -> None:
    core = FakeCore()
    auth = f"Authorization: {AUTH['Authorization']}\r\n"
    with trio.fail_after(10):
        async with serving(core) as site:
            async with await site.raw(upgrade(auth, host="evil.example")) as stream:
                assert (await stream.receive_some(4096)).startswith(b"HTTP/1.1 403")
            for path in ("/api/nope", "/api/events?since=nonsense"):
                with pytest.raises(HandshakeError):
                    async with open_websocket(f"{site.ws_url}{path}", token=TOKEN):
                        pytest.fail("let in")
    assert not core.since


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("localhost:1", "localhost"),
        ("[::1]:2", "::1"),
        ("Box", "box"),
        (None, None),
        ("", None),
        ("a:b:c", None),
        ("[::1", None),
    ],
)
def test_host_name(value: str | None, name: str | None) -> None:
    assert host_name(value) == name


def test_bearer() -> None:
    assert bearer("bearer  abc-_.~+/=") == "abc-_.~+/="
    assert bearer("Bearer a b") is None
    assert bearer(None) is None


def test_subprotocol() -> None:
    assert subprotocol([]) == (None, None)
    assert subprotocol(["chat"]) == (None, None)
    assert subprotocol(["deskbridge"]) == (None, "deskbridge")
    assert subprotocol(["bearer.t", "deskbridge"]) == ("t", "deskbridge")
