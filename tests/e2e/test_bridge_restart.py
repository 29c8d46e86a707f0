"""The app restarted on request and by the watchdog, the display frozen: in real time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import trio

from bridge.polling import poll
from bridge.wsclient import Feed
from tests.support.bridge import BridgeProcess, bridge_process


class Heard:
    """The types of the events of a bridge, as they come."""

    def __init__(self) -> None:
        self.types: list[str] = []
        self.listening = trio.Event()

    async def listen(self, it: BridgeProcess) -> None:
        async with Feed(f"ws://127.0.0.1:{it.port}", it.token).connected() as messages:
            async for message in messages:
                if isinstance(message, dict):
                    self.listening.set()
                else:
                    self.types += [e["type"] for e in message]

    async def until(self, *kinds: str) -> None:
        """Wait until these types have come in this order."""

        async def seen() -> bool | None:
            wanted = list(kinds)
            for kind in self.types:
                if wanted and kind == wanted[0]:
                    wanted.pop(0)
            return True if not wanted else None

        assert await poll(seen, 90), f"{kinds} did not come in this order: {self.types}"


async def looks(it: BridgeProcess) -> int:
    """How often the watchdog has looked."""
    seat = (await it.http.get("/api/status")).json()["seats"][0]
    return int(seat["watchdog"]["looks"])


async def looked(it: BridgeProcess, times: int) -> bool | None:
    return await looks(it) >= times or None


async def test_a_restart_is_next_and_callers_are_told(tmp_path):
    with trio.fail_after(150):
        async with bridge_process(tmp_path / "state", DESKBRIDGE_SEND_DELAY_MS="2000") as it:
            first = await it.send("Alice", "first")
            assert first.status_code == 200
            before = it.record("app")
            answers = {}

            async def waited(n: int) -> None:
                answers[n] = await it.send("Bob", f"waited {n}", Prefer="wait=60")

            async with trio.open_nursery() as nursery:
                for n in range(5):
                    queued = await it.send("Alice", f"async {n}", Prefer="respond-async")
                    assert queued.status_code == 202
                    nursery.start_soon(waited, n)

                async def all_wait() -> bool | None:
                    return (await it.http.get("/api/queue")).json()["pending"] >= 9 or None

                assert await poll(all_wait, 20)
                restarted = await it.http.post("/api/app/restart", json={})
            assert restarted.status_code == 200, restarted.text
            assert restarted.json()["result"]["pid"] == it.record("app") != before
            told = [answers[n] for n in answers if answers[n].status_code != 200]
            assert len(told) >= 4  # one of them may have been running
            assert {(a.status_code, a.json()["code"]) for a in told} == {(503, "APP_NOT_READY")}
            assert {a.headers["Retry-After"] for a in told} == {"5"}
            await it.settled()
            texts = [text for _, text in it.sent()]
            assert [t for t in texts if t.startswith("async")] == [f"async {n}" for n in range(5)]
            refused = 5 - len([t for t in texts if t.startswith("waited")])
            assert refused == len(told)


async def test_a_frozen_app_is_restarted_and_an_innocent_twin_survives(tmp_path):
    """Drain, dead, killed, started, ready, in that order; only the proven process is signalled."""
    with trio.fail_after(200):
        async with bridge_process(tmp_path / "state") as it, trio.open_nursery() as nursery:
            heard = Heard()
            nursery.start_soon(heard.listen, it)
            await heard.listening.wait()
            assert (await it.send("Alice", "before")).status_code == 200
            # the watchdog must have had an answer once before silence means anything
            assert await poll(partial(looked, it, 1), 30)
            twin = subprocess.Popen(
                [sys.executable, "-c", "import time; time.sleep(600)", "-m", "bridge.demoapp"]
            )
            try:
                pid = it.record("app")
                os.kill(pid, signal.SIGSTOP)
                queued = await it.send("Bob", "meanwhile", Prefer="respond-async")
                assert queued.status_code == 202
                await heard.until("app.dead", "app.killed", "app.started", "app.ready")
                await it.settled()
                assert it.record("app") != pid
                assert not Path(f"/proc/{pid}").exists()
                assert twin.poll() is None
            finally:
                twin.kill()
                twin.wait()
            assert sorted(text for _, text in it.sent()) == ["before", "meanwhile"]
            nursery.cancel_scope.cancel()


async def test_a_frozen_display_is_reported_and_the_app_left_alone(tmp_path):
    with trio.fail_after(200):
        async with bridge_process(tmp_path / "state") as it:
            assert (await it.send("Alice", "before")).status_code == 200
            app, xvfb = it.record("app"), it.record("xvfb")
            os.kill(xvfb, signal.SIGSTOP)
            try:

                async def noticed() -> bool | None:
                    seat = (await it.http.get("/api/status")).json()["seats"][0]
                    return True if not seat["display"]["alive"] else None

                assert await poll(noticed, 30)
                refused = await it.send("Bob", "no")
                assert (refused.status_code, refused.json()["code"]) == (503, "DISPLAY_DEAD")
                queued = await it.send("Bob", "later", Prefer="respond-async")
                assert queued.status_code == 202
                assert (await it.http.get("/readyz")).status_code == 503
                before = await looks(it)
                assert await poll(
                    partial(looked, it, before + 3), 90
                )  # two would do for a hung app
            finally:
                os.kill(xvfb, signal.SIGCONT)
            await it.settled()
            assert it.record("app") == app
            assert [text for _, text in it.sent()] == ["before", "later"]


async def test_autofix_restarts_the_app_and_releases_keys(tmp_path):
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state") as it:
            before = it.record("app")
            for check in ("app_running", "wechat_running"):
                mended = await it.http.post(f"/api/diagnostic/autofix/{check}")
                assert mended.status_code == 200, mended.text
                assert mended.json()["result"]["pid"] == it.record("app") != before
                before = it.record("app")
            display = (await it.http.get("/api/status")).json()["seats"][0]["display"]["name"]
            env = {"DISPLAY": display, "PATH": "/usr/bin:/bin"}
            await trio.run_process(["xdotool", "keydown", "shift"], env=env)
            keys = await it.http.post("/api/diagnostic/autofix/keyboard")
            assert keys.json()["result"]["released"] == ["Shift_L"]
            unknown = await it.http.post("/api/diagnostic/autofix/the_weather")
            assert (unknown.status_code, unknown.json()["code"]) == (422, "INVALID_REQUEST")
            assert (await it.send("Alice", "after")).status_code == 200
