"""The diagnosis of a whole bridge: all well, then one trouble after the other; and the doctor."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import trio

from bridge.polling import poll
from tests.support.bridge import DESKBRIDGE, BridgeProcess, bridge_process

CHECKS = [
    *("display", "window_manager", "keyboard", "locale", "fonts", "clipboard", "x_clients"),
    *("app_running", "app_window", "app_responding", "accessibility", "login", "store", "disk"),
]


async def diagnosis(it: BridgeProcess) -> dict[str, Any]:
    answer = await it.http.get("/api/diagnostic")
    assert answer.status_code == 200, answer.text
    assert [check["check"] for check in answer.json()["checks"]] == CHECKS
    return {check["check"]: check for check in answer.json()["checks"]}


async def check(it: BridgeProcess, name: str) -> dict[str, Any]:
    answer = await it.http.get(f"/api/diagnostic/run/{name}")
    assert answer.status_code == 200, answer.text
    assert answer.json()["check"] == name
    return dict(answer.json())


async def doctor(it: BridgeProcess, *options: str) -> tuple[int, str]:
    env = {**os.environ, "DESKBRIDGE_STATE_DIR": str(it.state_dir), "LC_ALL": "C.UTF-8"}
    done = await trio.run_process(
        [str(DESKBRIDGE), "doctor", *options], env=env, capture_stdout=True, check=False
    )
    return done.returncode, done.stdout.decode()


async def test_all_is_well_and_nothing_is_changed(tmp_path):
    with trio.fail_after(90):
        async with bridge_process(tmp_path / "state", LC_ALL="C.UTF-8") as it:
            found = await diagnosis(it)
            assert {name: c["status"] for name, c in found.items()} == dict.fromkeys(CHECKS, "ok")
            assert found["app_running"]["data"]["pid"] == it.record("app")
            assert found["login"]["data"]["account"] == "demo"
            for name in CHECKS:
                assert (await check(it, name))["status"] == "ok"
            missing = await it.http.get("/api/diagnostic/run/nonsense")
            assert missing.status_code == 404
            assert all(name in missing.json()["detail"] for name in CHECKS)
            assert await it.all_actions() == []  # nothing was queued
            status, told = await doctor(it)
            assert status == 0, told
            assert "All is well." in told
            assert f"The bridge at http://127.0.0.1:{it.port}" in told


async def test_troubles_are_named_while_work_goes_on(tmp_path):
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state", LC_ALL="C.UTF-8") as it:
            display = (await check(it, "display"))["data"]["display"]
            await trio.run_process(["setxkbmap", "-display", display, "ru"])
            os.kill(it.record("wm"), signal.SIGKILL)

            async def bare() -> dict[str, Any] | None:
                found = await check(it, "window_manager")  # the bridge brings up another one soon
                return found if found["status"] == "failed" else None

            manager = await poll(bare, 20)
            assert manager
            assert "icewm" in manager["advice"]
            found = await diagnosis(it)
            assert found["keyboard"]["status"] == "failed"
            assert "setxkbmap" in found["keyboard"]["advice"]
            assert found["app_running"]["status"] == "ok"

            status, told = await doctor(it, "--json")
            assert status == 1
            document = json.loads(told)
            assert document["status"] == "failed"
            failed = {c["check"] for c in document["bridge"]["checks"] if c["status"] == "failed"}
            assert "keyboard" in failed


async def test_looking_disturbs_no_work_and_sees_no_key_of_it(tmp_path):
    texts = [f"message {n} 张三" for n in range(10)]
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state", LC_ALL="C.UTF-8") as it:
            seen: list[dict[str, Any]] = []

            async def watch() -> None:
                while True:
                    seen.append(await diagnosis(it))

            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(watch)
                for text in texts:
                    answer = await it.send("Alice", text, Prefer="wait=60")
                    assert answer.status_code == 200, answer.text
                nursery.cancel_scope.cancel()
            assert [text for _, text in it.sent()] == texts
            assert len(seen) >= len(texts) / 2
            # The keys of a flow are pressed and released within one command, under the lock.
            assert {found["keyboard"]["status"] for found in seen} == {"ok"}


async def test_a_stopped_app_and_a_frozen_display_are_told_apart(tmp_path):
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state") as it:
            assert (await check(it, "app_responding"))["status"] == "ok"
            app, server = it.record("app"), it.record("xvfb")
            os.kill(app, signal.SIGSTOP)
            stopped = await diagnosis(it)
            os.kill(app, signal.SIGCONT)
            assert stopped["app_running"]["status"] == "ok"
            assert stopped["app_responding"]["status"] == "failed"
            assert "stopped" in stopped["app_responding"]["detail"]
            assert stopped["display"]["status"] == "ok"

            os.kill(server, signal.SIGSTOP)
            try:
                begun = trio.current_time()
                frozen = await diagnosis(it)
                took = trio.current_time() - begun
            finally:
                os.kill(server, signal.SIGCONT)
            assert took < 10
            assert frozen["display"]["status"] == "failed"
            assert "kill -CONT" in frozen["display"]["advice"]
            assert frozen["app_running"]["status"] == "ok"
            assert "display" in frozen["app_window"]["advice"]
            assert frozen["store"]["status"] == frozen["disk"]["status"] == "ok"

            async def answers() -> bool | None:
                return (await check(it, "display"))["status"] == "ok" or None

            assert await poll(answers, 20)


async def test_the_c_locale_of_the_bridge_alone(tmp_path):
    with trio.fail_after(60):
        async with bridge_process(tmp_path / "state", LC_ALL="C") as it:
            found = await check(it, "locale")
            assert found["status"] == "warning"
            assert found["data"] == {"bridge": "C", "app": "C.UTF-8"}
            assert "LC_ALL=C.UTF-8" in found["advice"]


async def test_a_doctor_of_a_hung_bridge(tmp_path):
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state") as it:
            assert it.popen is not None
            it.popen.send_signal(signal.SIGSTOP)
            try:
                status, told = await doctor(it, "--json")
            finally:
                it.popen.send_signal(signal.SIGCONT)
            assert status == 1
            [check] = json.loads(told)["bridge"]["checks"]
            assert (check["check"], check["status"]) == ("bridge", "failed")
            assert "start it anew" in check["advice"]
