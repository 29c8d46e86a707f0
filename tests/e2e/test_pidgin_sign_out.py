"""Signing out of Pidgin by its own menu, seen in the connection that ends."""

from __future__ import annotations

import trio

from bridge.polling import poll
from tests.support.bridge import bridge_process
from tests.support.xmpp import OWNER_JID, xmpp_world


async def test_signing_out_disables_the_account_and_holds_what_waits(tmp_path):
    with trio.fail_after(150):
        async with (
            xmpp_world(tmp_path) as world,
            bridge_process(world.state_dir, DESKBRIDGE_APP="pidgin") as it,
        ):
            assert (await it.send("Bob", "before")).status_code == 200
            out = await it.http.post("/api/login/logout")
            assert out.status_code == 200, out.text
            assert out.json()["result"] == {"signed_out": True, "account": OWNER_JID}
            assert (await it.http.get("/api/login")).json()["state"] == "logged_out"
            refused = await it.send("Bob", "no")
            assert (refused.status_code, refused.json()["code"]) == (409, "NOT_LOGGED_IN")
            queued = await it.send("Bob", "later", Prefer="respond-async")
            action = await it.action(queued.json()["action"]["id"])
            assert action["waiting"]["reason"] == "signed_in"
            again = await it.http.post("/api/login/logout")
            assert again.json()["result"] == {"signed_out": False, "account": None}
            code = await it.http.post("/api/login/qr/start")
            assert (code.status_code, code.json()["code"]) == (501, "UNSUPPORTED_BY_APP")
            assert (await it.http.get("/readyz")).status_code == 200

            # a person enables the account again, by the same menu
            display = (await it.http.get("/api/status")).json()["seats"][0]["display"]["name"]
            await _enable(display)

            async def back() -> bool | None:
                return (await it.http.get("/api/login")).json()["state"] == "logged_in" or None

            assert await poll(back, 30)
            await it.settled()
            assert await world.peer.arrived(2) == [("bob", "before"), ("bob", "later")]


async def _enable(display: str) -> None:
    env = {"DISPLAY": display, "PATH": "/usr/bin:/bin"}
    for argv in (
        ["search", "--name", "Buddy List", "windowactivate", "--sync"],
        ["key", "--delay", "200", "alt+a", "Up", "Right", "Return"],
    ):
        await trio.run_process(["xdotool", *argv], env=env, capture_stdout=True)
