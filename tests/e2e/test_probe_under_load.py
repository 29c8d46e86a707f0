"""The probe is beside the queue: a full queue does not make it late."""

from __future__ import annotations

import trio

from bridge.demoapp.faults import switch
from bridge.polling import poll
from tests.support.bridge import bridge_process


async def test_a_change_is_seen_within_ten_seconds_while_a_hundred_wait(tmp_path):
    with trio.fail_after(150):
        async with bridge_process(tmp_path / "state", DESKBRIDGE_SEND_DELAY_MS="1000") as it:
            for n in range(101):
                queued = await it.send("Alice", f"m{n}", Prefer="respond-async")
                assert queued.status_code == 202
            assert (await it.http.get("/api/queue")).json()["pending"] >= 95

            async def state_is(wanted: str) -> bool | None:
                return (await it.http.get("/api/login")).json()["state"] == wanted or None

            switch(it.state_dir, "offline")
            assert await poll(lambda: state_is("offline"), 10)
            refused = await it.send("Alice", "no")
            assert (refused.status_code, refused.json()["code"]) == (503, "APP_NOT_READY")
            switch(it.state_dir, "offline", off=True)
            assert await poll(lambda: state_is("logged_in"), 10)
