"""The routes of actions: a kind's POST, its answers, and list, read and cancel."""

from __future__ import annotations

import json
import socket

import pytest
import trio

from bridge.core_types import Filter
from bridge.errors import STATUS
from bridge.model import State
from routes.body import MAX_BODY
from tests.support.fakecore import EPOCH, PICTURE, FakeCore
from tests.support.serving import AUTH, Site, serving, until

SEND = "/api/send/text"
PROBLEM = {
    *("type", "title", "status", "code", "detail", "retry_after", "trace_id", "action_id"),
    "executed",
}


def hello(text: str = "hi") -> dict[str, str]:
    return {"to": "Alice", "text": text}


async def test_success_answers_action_and_result() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            answer = await client.post(SEND, json=hello("你好 🎉\nthere"))
            assert answer.status_code == 200
            assert answer.json()["result"] == {"message": "m1"}
            assert answer.json()["action"]["state"] == "succeeded"
    (request,) = core.requests
    assert request.kind == "send_text"
    assert request.params == {"to": "Alice", "text": "你好 🎉\nthere"}
    assert (request.respond_async, request.wait, request.idempotency_key) == (False, None, None)


async def test_async_answers_where_to_look() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            answer = await client.post(
                SEND, json=hello(), headers={"Prefer": "respond-async, wait=2"}
            )
            assert answer.status_code == 202
            assert answer.headers["Location"] == "/api/actions/a1"
            assert answer.headers["Preference-Applied"] == "respond-async"
            assert answer.json()["action"]["state"] == "pending"
            assert answer.json()["action"]["waiting"] == {
                "reason": "gap",
                "until": "2027-01-15T08:00:01.250Z",
                "ahead": 2,
                "eta": None,
            }
            assert "result" not in answer.json()
            there = await client.get(answer.headers["Location"])
            assert there.json()["action"]["id"] == "a1"
    assert (core.requests[0].respond_async, core.requests[0].wait) == (True, 2.0)


async def test_screenshot_answers_its_bytes() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            answer = await client.post("/api/screenshot")
            assert (answer.status_code, answer.headers["Content-Type"]) == (200, "image/png")
            assert answer.content == PICTURE
            assert answer.headers["X-Action-Id"] == "a1"
            later = await client.post("/api/screenshot", headers={"Prefer": "respond-async"})
            assert later.status_code == 202
    assert core.requests[0].params == {"window": None, "region": None, "format": "png"}


async def test_path_of_a_kind_may_hold_params_and_have_aliases() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            assert (await client.post("/api/diagnostic/autofix/locale")).status_code == 200
            assert (await client.post("/api/app/restart", json={})).status_code == 200
            assert (await client.post("/api/other/restart")).status_code == 200
    assert core.requests[0].params == {"check": "locale", "force": False}
    assert [request.kind for request in core.requests[1:]] == ["restart_app"] * 2


async def test_kind_that_the_app_lacks() -> None:
    core = FakeCore()
    core.unsupported.add("send_text")
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            answer = await client.post(SEND, json=hello())
            assert (answer.status_code, answer.json()["code"]) == (501, "UNSUPPORTED_BY_APP")
            kinds = {
                kind["kind"]: kind for kind in (await client.get("/api/kinds")).json()["kinds"]
            }
    assert not core.requests
    assert kinds["send_text"]["supported"] is False
    assert kinds["screenshot"]["supported"] is True
    assert set(kinds["screenshot"]) >= {
        *("kind", "title", "priority", "wait_timeout_ms", "effect", "needs", "params", "enabled")
    }


@pytest.mark.parametrize("code", sorted(set(STATUS) - {"MALFORMED_JSON"}))
async def test_every_error_of_the_core_is_a_problem(code: str) -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, site.http() as client:
            answer = await client.post(SEND, json=hello(f"error {code}"))
    assert answer.status_code == STATUS[code]
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Retry-After"] == "3"
    body = answer.json()
    assert set(body) == PROBLEM
    assert (body["code"], body["status"], body["retry_after"]) == (code, STATUS[code], 3)
    assert body["executed"] is False
    assert body["trace_id"] == answer.headers["X-Request-ID"]


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("state failed VERIFY_FAILED", 502, "VERIFY_FAILED"),
        ("state failed", 500, "INTERNAL"),
        ("state failed LONG_GONE_CODE", 500, "INTERNAL"),
        ("state cancelled TIMEOUT", 504, "TIMEOUT"),
        ("state cancelled", 409, "CANCELLED"),
        ("state expired", 409, "EXPIRED"),
        ("state superseded", 409, "SUPERSEDED"),
        ("state uncertain UI_ERROR", 500, "UNCERTAIN"),
        ("state uncertain", 500, "UNCERTAIN"),
    ],
)
async def test_action_that_ended_otherwise_is_a_problem(text: str, status: int, code: str) -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, site.http() as client:
            answer = await client.post(SEND, json=hello(text))
    body = answer.json()
    assert (answer.status_code, body["code"]) == (status, code)
    assert body["action_id"] == "a1"
    if code == "UNCERTAIN":
        assert body["executed"] is None


async def test_defect_in_the_core_is_a_problem_and_nothing_leaks() -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, site.http() as client:
            answer = await client.post(SEND, json=hello("bug"))
            assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL")
            assert "a bug in the core" not in answer.text
            assert await site.answers()


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b'{"to": "Alice"', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"to": "Alice", "text": NaN}', "application/json", 400),
        (b'{"to": "A", "to": "B", "text": "x"}', "application/json", 400),
        (b'{"to": "A", "text": "\\ud800"}', "application/json", 400),
        (b"[" * 500_000, "application/json", 400),
        (b'{"to":' + b"[" * 40 + b"]" * 40 + b"}", "application/json", 400),
        (b'{"to": "A", "text": "a\\u0000b"}', "application/json", 422),
        (b'{"to": "Alice"}', "application/json", 422),
        (b'{"to": "Alice", "text": "x", "more": 1}', "application/json", 422),
        (b'{"to": "Alice", "text": 5}', "application/json", 422),
        (b'{"to": "Alice", "text": ""}', "application/json", 422),
        (b"[]", "application/json", 422),
        (b"", "application/json", 422),
        (b'{"to": "Alice", "text": "x"}', "text/plain", 422),
        (b'{"to": "Alice", "text": "x"}', "", 422),
    ],
)
async def test_bad_body_is_refused(body: bytes, content_type: str, status: int) -> None:
    core = FakeCore()
    with trio.fail_after(20):
        async with serving(core) as site, site.http() as client:
            headers = {"Content-Type": content_type} if content_type else {}
            answer = await client.post(SEND, content=body, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (status, "INVALID_REQUEST")
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert answer.json()["executed"] is False
    assert not core.requests


async def test_every_wrong_member_is_told() -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, site.http() as client:
            answer = await client.post(SEND, json={"to": 1, "more": 2})
    assert sorted(error["loc"] for error in answer.json()["errors"]) == [["more"], ["text"], ["to"]]


@pytest.mark.parametrize("chunked", [False, True])
async def test_body_that_is_too_large(chunked: bool) -> None:
    core = FakeCore()
    data = json.dumps(hello("x" * MAX_BODY)).encode()
    kind = "application/json"
    lines = (
        f"Content-Type: {kind}",
        f"Authorization: {AUTH['Authorization']}",
        "Connection: close",
    )
    with trio.fail_after(20):
        async with serving(core) as site:
            if chunked:
                body = f"{len(data):x}\r\n".encode() + data + b"\r\n0\r\n\r\n"
                answer = await site.ask_raw(
                    "POST", SEND, *lines, "Transfer-Encoding: chunked", body=body
                )
            else:
                answer = await site.ask_raw(
                    "POST", SEND, *lines, f"Content-Length: {len(data)}", body=data
                )
    assert answer.startswith(b"HTTP/1.1 413")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "PAYLOAD_TOO_LARGE"
    assert not core.requests


@pytest.mark.parametrize(
    "headers",
    [
        {"Idempotency-Key": ""},
        {"Idempotency-Key": "a b"},
        {"Idempotency-Key": "x" * 192},
        {"Prefer": "wait=301"},
    ],
)
async def test_bad_header_is_refused(headers: dict[str, str]) -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            answer = await client.post(SEND, json=hello(), headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_REQUEST")
    assert not core.requests


async def test_key_is_handed_on() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            await client.post(SEND, json=hello(), headers={"Idempotency-Key": "k" * 191})
    assert core.requests[0].idempotency_key == "k" * 191


async def hang_up(site: Site, core: FakeCore, how: str) -> None:
    body = json.dumps(hello("wait")).encode()
    head = (
        f"POST {SEND} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Authorization: {AUTH['Authorization']}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    stream = await site.raw(head.encode() + body)
    await until(lambda: core.waiters == 1)
    if how == "reset":
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    await stream.aclose()


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_caller_who_hangs_up_is_noticed(how: str) -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site:
            await hang_up(site, core, how)
            await until(lambda: core.hung_up == 1)
            assert core.waiters == 0
            assert await site.answers()


async def test_client_that_gives_up_is_noticed() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            with trio.move_on_after(0.5):
                await client.post(SEND, json=hello("wait"))
            await until(lambda: core.hung_up == 1)


async def test_list_passes_its_filter_on() -> None:
    core = FakeCore()
    core.seq = 17
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            await client.post(SEND, json=hello(), headers={"Prefer": "respond-async"})
            page = await client.get(
                "/api/actions?state=failed,pending&state=held&kind=send_text&owner=demo"
                "&q=%E4%BD%A0&page=2&per_page=100"
            )
            assert page.status_code == 200
            assert set(page.json()) == {
                *("actions", "total", "page", "per_page", "epoch", "revision")
            }
            assert (page.json()["epoch"], page.json()["revision"]) == (EPOCH, 17)
            assert page.json()["actions"][0]["waiting"]["reason"] == "gap"
            assert (await client.get("/api/actions")).json()["per_page"] == 10
    assert core.filters[0] == Filter(
        states=frozenset({State.FAILED, State.PENDING, State.HELD}),
        kinds=frozenset({"send_text"}),
        owner="demo",
        text="你",
        page=2,
        per_page=100,
    )
    assert core.filters[1] == Filter()


@pytest.mark.parametrize(
    "query",
    [
        *("state=nope", "kind=nope", "page=0", "page=-1", "per_page=101", "per_page=x", "what=1"),
        "q=" + "x" * 201,
    ],
)
async def test_bad_filter_is_refused(query: str) -> None:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, site.http() as client:
            answer = await client.get(f"/api/actions?{query}")
            assert (answer.status_code, answer.json()["code"]) == (422, "INVALID_REQUEST")


async def test_read_waits_as_asked_and_refuses_other_waits() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            await client.post(SEND, json=hello(), headers={"Prefer": "respond-async"})
            begun = trio.current_time()
            answer = await client.get("/api/actions/a1?wait=0.5")
            assert trio.current_time() - begun >= 0.5
            assert (answer.status_code, answer.headers["ETag"]) == (200, '"3"')
            for wait in ("-1", "x", "301", "inf", "1e3"):
                assert (await client.get(f"/api/actions/a1?wait={wait}")).status_code == 422
            assert (await client.get("/api/actions/nope")).status_code == 404


async def test_read_that_waits_is_answered_when_the_bridge_closes() -> None:
    core = FakeCore()
    answers: list[int] = []

    async def read(site: Site) -> None:
        async with site.http() as client:
            answers.append((await client.get("/api/actions/a1?wait=60")).status_code)

    with trio.fail_after(10):
        async with serving(core, grace=5.0) as site, site.http() as client:
            await client.post(SEND, json=hello(), headers={"Prefer": "respond-async"})
            async with trio.open_nursery() as nursery:
                nursery.start_soon(read, site)
                await client.get("/api/status")
                await trio.sleep(0.1)
                core.closing.set()
    assert answers == [200]


@pytest.mark.parametrize("if_match", ["3", '"3"', 'W/"3"'])
async def test_cancel_takes_the_revision_quoted_or_not(if_match: str) -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            await client.post(SEND, json=hello(), headers={"Prefer": "respond-async"})
            answer = await client.post("/api/actions/a1/cancel", headers={"If-Match": if_match})
            assert answer.status_code == 200
            assert answer.json()["action"]["state"] == "cancelled"
            assert answer.headers["ETag"] == '"4"'
    assert core.cancels == [("a1", 3)]


@pytest.mark.parametrize(
    ("if_match", "status", "code"),
    [
        (None, 428, "REVISION_REQUIRED"),
        ("2", 412, "STALE_REVISION"),
        ("*", 422, "INVALID_REQUEST"),
        ("three", 422, "INVALID_REQUEST"),
        ("9" * 30, 422, "INVALID_REQUEST"),
    ],
)
async def test_cancel_without_the_right_revision(
    if_match: str | None, status: int, code: str
) -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            await client.post(SEND, json=hello(), headers={"Prefer": "respond-async"})
            headers = {} if if_match is None else {"If-Match": if_match}
            answer = await client.post("/api/actions/a1/cancel", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert core.cancels == []
