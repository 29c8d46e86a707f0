"""A person takes the seat: the running flow ends first, the queue waits, the screen is tidied."""

from __future__ import annotations

import subprocess

import trio

from bridge.polling import poll
from tests.support.bridge import bridge_process


async def test_a_person_takes_the_seat_and_gives_it_back(tmp_path):
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state") as it:
            assert (await it.send("Alice", "before")).status_code == 200
            taken = await it.http.post("/api/hands-on/acquire", json={"who": "Ann"})
            assert taken.status_code == 200, taken.text
            lease = taken.json()["lease"]
            refused = await it.send("Bob", "no")
            assert (refused.status_code, refused.json()["code"]) == (503, "HANDS_ON")
            queued = await it.send("Bob", "later", Prefer="respond-async")
            action = await it.action(queued.json()["action"]["id"])
            assert action["waiting"]["reason"] == "hands_on"
            other = await it.http.post("/api/hands-on/acquire", json={"who": "Ben"})
            assert (other.status_code, other.json()["code"]) == (503, "HANDS_ON")
            # she leaves half a sentence in the entry
            display = (await it.http.get("/api/status")).json()["seats"][0]["display"]["name"]
            subprocess.run(
                ["xdotool", "type", "--delay", "5", "half a sent"],
                env={"DISPLAY": display, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
                check=True,
            )
            given = await it.http.post("/api/hands-on/release", json={"lease": lease})
            assert given.json() == {"released": True}
            await it.settled()
            assert [text for _, text in it.sent()] == ["before", "later"]


async def test_a_pointer_that_somebody_moves_stops_the_flow(tmp_path):
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state") as it:
            display = (await it.http.get("/api/status")).json()["seats"][0]["display"]["name"]
            env = {"DISPLAY": display, "PATH": "/usr/bin:/bin"}
            moving = True

            async def move() -> None:
                n = 0
                while moving:
                    n += 1
                    await trio.run_process(
                        ["xdotool", "mousemove", str(100 + n % 300), "300"], env=env, check=False
                    )

            async with trio.open_nursery() as nursery:
                nursery.start_soon(move)
                answer = await it.send("Alice", "disturbed")
                moving = False
            assert (answer.status_code, answer.json()["code"]) == (502, "FOCUS_LOST"), answer.text
            assert answer.json()["executed"] is False
            assert it.sent() == []

            async def works() -> bool | None:
                return (await it.send("Alice", "in peace")).status_code == 200 or None

            assert await poll(works, 30)
            assert [text for _, text in it.sent()] == ["in peace"]
