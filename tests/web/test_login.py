"""The sign-in state over HTTP: read at once, or waited for."""

from __future__ import annotations

import pytest
import trio

from tests.support.fakecore import FakeCore
from tests.support.serving import serving

QR = {"state": "qr", "account": None, "evidence": {"screen": "qr"}}
IN = {"state": "logged_in", "account": "demo", "evidence": {"pid": 4711, "title": "Chat"}}


async def test_the_wait_hands_state_and_time_on_and_answers_like_the_read() -> None:
    core = FakeCore()
    core.logins = [QR, IN]
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            assert (await client.get("/api/login")).json() == QR
            waited = await client.get("/api/login/qr/wait?state=qr&timeout=2.5")
            assert waited.status_code == 200
            assert waited.json() == {**IN, "evidence": {"title": "Chat"}}
            assert (await client.get("/api/login")).json() == waited.json()
            await client.get("/api/login/qr/wait")
    assert core.login_waits == [("qr", 2.5), (None, 25.0)]


@pytest.mark.parametrize(
    "query",
    ["state=asleep", "state=", "state=qr,confirm", "timeout=61", "timeout=-1", "timeout=x", "x=1"],
)
async def test_a_wrong_query_is_refused(query: str) -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.http() as client:
            refused = await client.get(f"/api/login/qr/wait?{query}")
    assert (refused.status_code, refused.json()["code"]) == (422, "INVALID_REQUEST")
    assert core.login_waits == []
