"""The diagnosis over HTTP."""

from __future__ import annotations

import trio

from tests.support.fakecore import FakeCore
from tests.support.serving import serving


async def test_all_checks_and_one() -> None:
    with trio.fail_after(20):
        async with serving(FakeCore()) as site, site.http() as client:
            everything = await client.get("/api/diagnostic")
            one = await client.get("/api/diagnostic/run/disk")
    assert (everything.status_code, one.status_code) == (200, 200)
    assert everything.json()["status"] == "ok"
    assert [check["check"] for check in everything.json()["checks"]] == ["disk"]
    assert one.json() == everything.json()["checks"][0]


async def test_an_unknown_check_is_told_which_there_are() -> None:
    with trio.fail_after(20):
        async with serving(FakeCore()) as site, site.http() as client:
            answer = await client.get("/api/diagnostic/run/nonsense")
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert "disk" in answer.json()["detail"]


async def test_it_takes_a_token_and_only_reads() -> None:
    with trio.fail_after(20):
        async with serving(FakeCore()) as site, site.http() as client:
            assert (await client.post("/api/diagnostic/run/disk", json={})).status_code == 405
            del client.headers["Authorization"]
            assert (await client.get("/api/diagnostic")).status_code == 401
            assert (await client.get("/api/diagnostic/run/disk")).status_code == 401
