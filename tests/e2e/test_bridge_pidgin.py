"""The whole bridge on Pidgin: software that nobody here wrote, a real server, a real peer."""

from __future__ import annotations

import pytest
import trio

from bridge.polling import poll
from tests.support.bridge import bridge_process
from tests.support.xmpp import OWNER_JID, xmpp_world

TEXTS = [
    "plain",
    "你好，世界",
    "🎉 emoji 👩‍👩‍👧‍👦",
    "two\nlines\n\nand a blank one",
    '<b>not bold</b> &amp; a < b > c "quoted"',
    "-leading dash",
]


async def test_fifty_messages_arrive_once_in_order_at_the_right_contact(tmp_path):
    with trio.fail_after(400):
        async with (
            xmpp_world(tmp_path) as world,
            bridge_process(world.state_dir, DESKBRIDGE_APP="pidgin") as it,
        ):
            login = (await it.http.get("/api/login")).json()
            assert (login["state"], login["account"]) == ("logged_in", OWNER_JID)
            expected = []
            for n in range(50):
                name, user = (("Bob", "bob"), ("Bobby", "bobby"))[n // 10 % 2]
                text = f"{n} {TEXTS[n % len(TEXTS)]}"
                response = await it.send(name, text)
                assert response.status_code == 200, response.text
                assert response.json()["action"]["state"] == "succeeded"
                expected.append((user, text))
            assert await world.peer.arrived(50) == expected


async def test_a_contact_that_does_not_exist(tmp_path):
    with trio.fail_after(120):
        async with (
            xmpp_world(tmp_path) as world,
            bridge_process(world.state_dir, DESKBRIDGE_APP="pidgin") as it,
        ):
            unknown = await it.send("Bo", "no")
            assert (unknown.status_code, unknown.json()["code"]) == (404, "CONTACT_NOT_FOUND")
            several = await it.send("李雷", "no")
            assert (several.status_code, several.json()["code"]) == (409, "AMBIGUOUS_CONTACT")
            assert (await it.send("Bob", "yes")).status_code == 200
            assert await world.peer.arrived(1) == [("bob", "yes")]


async def test_pidgin_that_ends_is_started_again(tmp_path):
    with trio.fail_after(180):
        async with (
            xmpp_world(tmp_path) as world,
            bridge_process(world.state_dir, DESKBRIDGE_APP="pidgin") as it,
        ):
            assert (await it.send("Bob", "one")).status_code == 200
            pid = it.record("app")
            (await trio.run_process(["kill", "-KILL", str(pid)]))
            assert (await it.send("Bob", "two", Prefer="respond-async")).status_code == 202
            await it.settled()
            assert await world.peer.arrived(2) == [("bob", "one"), ("bob", "two")]


async def sign_in_is(it, *wanted: str) -> str:
    """Wait for one of these sign-in states; the one that came."""

    async def state() -> str | None:
        found = (await it.http.get("/api/login")).json()["state"]
        return found if found in wanted else None

    found = await poll(state, 60)
    assert found, f"not {wanted}, but {(await it.http.get('/api/login')).text}"
    return found


async def refused(it) -> tuple[int, str]:
    """How a send is answered that cannot start."""
    answer = await it.send("Bob", "no")
    assert answer.json()["executed"] is False
    return answer.status_code, answer.json()["code"]


async def test_a_lost_connection_and_its_return(tmp_path):
    with trio.fail_after(240):
        async with (
            xmpp_world(tmp_path) as world,
            bridge_process(world.state_dir, DESKBRIDGE_APP="pidgin") as it,
        ):
            assert (await it.send("Bob", "before")).status_code == 200
            await world.server.stop()
            await sign_in_is(it, "offline")
            assert await refused(it) == (503, "APP_NOT_READY")
            assert (await it.send("Bob", "later", Prefer="respond-async")).status_code == 202
            await world.server.start()
            await sign_in_is(it, "logged_in")
            await it.settled(120)
            assert {a["state"] for a in await it.all_actions(kind="send_text")} == {"succeeded"}


@pytest.mark.parametrize(
    ("seed", "states", "told"),
    [
        ({"enabled": False}, ("logged_out",), {(409, "NOT_LOGGED_IN")}),
        (
            {"password": "wrong"},
            ("logged_out", "offline", "starting"),
            {(409, "NOT_LOGGED_IN"), (503, "APP_NOT_READY")},
        ),
    ],
)
async def test_an_account_that_is_not_signed_in(tmp_path, seed, states, told):
    with trio.fail_after(180):
        async with (
            xmpp_world(tmp_path, **seed) as world,
            bridge_process(world.state_dir, start=False, DESKBRIDGE_APP="pidgin") as it,
        ):
            await it.launch()
            await sign_in_is(it, *states)
            assert await refused(it) in told
            assert world.peer.messages() == []
