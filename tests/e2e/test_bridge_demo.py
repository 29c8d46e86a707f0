"""The whole bridge on the demo app: HTTP in, a real window worked, the journal as the truth."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import trio

from bridge.polling import poll
from tests.support.bridge import bridge_process
from tests.support.tools import Tools


async def test_a_message_goes_in_by_http_and_is_seen_in_the_app(tmp_path):
    with trio.fail_after(90):
        async with bridge_process(tmp_path / "state") as it:
            response = await it.send("Alice", "hello")
            assert response.status_code == 200, response.text
            body = response.json()
            assert body["action"]["state"] == "succeeded"
            assert it.sent() == [("alice", "hello")]
            (entry,) = [e for e in it.journal() if e["effect"] == "message_sent"]
            assert body["result"]["message"] == entry["message"]
            assert body["action"]["steps"]
            assert not {"fence", "pid", "mark", "launch"} & set(body["action"])


async def test_the_printed_curl_works(tmp_path):
    with trio.fail_after(90):
        async with bridge_process(tmp_path / "state") as it:

            async def greeting() -> str | None:
                return it.log() if "curl " in it.log() else None

            printed = await poll(greeting, 10)  # it comes a moment after the app is ready
            start = printed.index("curl ")
            command = printed[start : printed.index("\n\n", start)]
            done = await trio.run_process(["bash", "-c", command], capture_stdout=True)
            assert json.loads(done.stdout)["action"]["state"] == "succeeded"
            assert it.sent() == [("alice", "hello")]


TEXTS = [
    "plain",
    "-rf --leading dash",
    "你好，世界",
    "🎉 👩‍👩‍👧‍👦 emoji",
    "two\nlines\n\nand a blank one",
    "tab\there",
    "e\u0301 combining and \u05e9\u05dc\u05d5\u05dd",
    "x" * 3000,
]


async def test_every_text_arrives_equal_at_every_contact(tmp_path):
    contacts = {
        "Alice": "alice",
        "Alice Smith": "alice.smith",
        "Bob": "bob",
        "张三": "zhangsan",
        "🎉 Party": "party",
        "lilei.2": "lilei.2",
    }
    expected = []
    with trio.fail_after(240):
        async with bridge_process(tmp_path / "state") as it:
            for n, text in enumerate(TEXTS):
                name = list(contacts)[n % len(contacts)]
                response = await it.send(name, text)
                assert response.status_code == 200, response.text
                expected.append((contacts[name], text))
            assert it.sent() == expected


async def test_nobody_by_that_name_and_two_by_that_name(tmp_path):
    with trio.fail_after(90):
        async with bridge_process(tmp_path / "state") as it:
            unknown = await it.send("Ali", "no")
            assert (unknown.status_code, unknown.json()["code"]) == (404, "CONTACT_NOT_FOUND")
            assert unknown.json()["executed"] is False
            several = await it.send("李雷", "no")
            assert (several.status_code, several.json()["code"]) == (409, "AMBIGUOUS_CONTACT")
            assert {c["id"] for c in several.json()["candidates"]} == {"lilei.1", "lilei.2"}
            assert it.sent() == []
            assert (await it.send("lilei.1", "yes")).status_code == 200
            assert it.sent() == [("lilei.1", "yes")]


async def test_thirty_at_once_do_not_mix(tmp_path):
    """Waited and async mixed: flows do not overlap, answers agree with the journal."""
    with trio.fail_after(300):
        async with bridge_process(tmp_path / "state") as it:
            answers: dict[str, object] = {}
            contacts = ["Alice", "Alice Smith", "Bob", "张三", "lilei.1"]

            async def send(n: int) -> None:
                headers = {"Prefer": "respond-async"} if n % 2 else {"Prefer": "wait=200"}
                answers[f"m{n}"] = await it.send(contacts[n % 5], f"m{n}", **headers)

            async with trio.open_nursery() as nursery:
                for n in range(30):
                    nursery.start_soon(send, n)
            await it.settled(240)
            refused = [a.text for a in answers.values() if a.status_code not in {200, 202}]
            assert refused == []
            assert Counter(text for _, text in it.sent()) == Counter(f"m{n}" for n in range(30))
            actions = await it.all_actions(kind="send_text")
            assert {a["state"] for a in actions} == {"succeeded"}
            spans = sorted(
                (a["steps"][0]["at"], a["steps"][-1]["at"]) for a in actions if a["steps"]
            )
            assert len(spans) == 30
            for (_, ended), (began, _) in itertools.pairwise(spans):
                assert ended <= began


async def test_a_stopped_scrot_fails_its_step_after_five_seconds(tmp_path):
    tools = Tools(tmp_path / "tools")
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state", PATH=tools.path) as it:
            assert (await it.http.post("/api/screenshot", json={})).status_code == 200
            tools.stop_next("scrot")
            begun = trio.current_time()
            response = await it.http.post("/api/screenshot", json={}, headers={"Prefer": "wait=30"})
            took = trio.current_time() - begun
            assert (response.status_code, response.json()["code"]) == (504, "STEP_TIMEOUT")
            assert 4.9 <= took < 15
            action = await it.action(response.json()["action_id"])
            (step,) = [s for s in action["steps"] if s["name"] == "capture" and not s["ok"]]
            assert step["ms"] == pytest.approx(5000, abs=1500)
            assert not Path(f"/proc/{tools.stopped_pid('scrot')}").exists()
            again = await it.http.post("/api/screenshot", json={})
            assert again.status_code == 200
            assert again.content.startswith(b"\x89PNG")


async def test_an_xdotool_that_dies_with_return_down_sends_nothing_twice(tmp_path):
    tools = Tools(tmp_path / "tools")
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state", PATH=tools.path) as it:
            assert (await it.send("Alice", "before")).status_code == 200
            # the entry's Return, not the search's: the conversation is open already
            tools.die_in_return()
            response = await it.send("alice", "in the middle")
            assert not tools.armed("xdotool")
            assert response.status_code in {200, 502}, response.text
            assert (await it.send("alice", "after")).status_code == 200
            texts = Counter(text for _, text in it.sent())
            assert texts["before"] == texts["after"] == 1
            assert texts["in the middle"] == (1 if response.status_code == 200 else 0)
            assert sum(texts.values()) == texts["in the middle"] + 2


async def test_a_caller_who_hangs_up_before_the_start_sends_nothing(tmp_path):
    with trio.fail_after(150):
        async with bridge_process(tmp_path / "state", DESKBRIDGE_SEND_DELAY_MS="8000") as it:
            assert (await it.send("Alice", "first")).status_code == 200  # now there is a gap
            with trio.move_on_after(1):
                await it.send("Bob", "gone", **{"Idempotency-Key": "k"})

            async def cancelled() -> bool | None:
                (row,) = [a for a in await it.all_actions() if a["params"].get("text") == "gone"]
                return True if row["state"] == "cancelled" else None

            assert await poll(cancelled, 10)
            await it.kill(signal.SIGKILL)
            await it.start()
            again = await it.send("Bob", "by key", **{"Idempotency-Key": "k"})
            assert again.status_code == 200, again.text
            assert [text for _, text in it.sent()] == ["first", "by key"]


async def test_a_wait_that_ends_before_the_start_sends_nothing(tmp_path):
    with trio.fail_after(150):
        async with bridge_process(tmp_path / "state", DESKBRIDGE_SEND_DELAY_MS="8000") as it:
            assert (await it.send("Alice", "first")).status_code == 200
            late = await it.send("Bob", "late", Prefer="wait=1", **{"Idempotency-Key": "k"})
            assert (late.status_code, late.json()["code"]) == (504, "TIMEOUT")
            assert late.json()["executed"] is False
            assert late.headers["Retry-After"] == "8"
            await it.kill(signal.SIGKILL)
            await it.start()
            again = await it.send("Bob", "late", **{"Idempotency-Key": "k"})
            assert again.status_code == 200
            assert [text for _, text in it.sent()] == ["first", "late"]


async def test_same_key_same_request_is_one_action(tmp_path):
    with trio.fail_after(90):
        async with bridge_process(tmp_path / "state") as it:
            one = await it.send("Alice", "once", **{"Idempotency-Key": "k"})
            two = await it.send("Alice", "once", **{"Idempotency-Key": "k"})
            other = await it.send("Alice", "another", **{"Idempotency-Key": "k"})
            assert one.json()["action"]["id"] == two.json()["action"]["id"]
            assert (other.status_code, other.json()["code"]) == (409, "IDEMPOTENCY_CONFLICT")
            assert it.sent() == [("alice", "once")]


async def test_the_app_that_ends_is_started_again_and_work_goes_on(tmp_path):
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state") as it:
            assert (await it.send("Alice", "one")).status_code == 200
            pid = it.record("app")
            subprocess.run(["kill", "-KILL", str(pid)], check=True)
            queued = await it.send("Alice", "two", Prefer="respond-async")
            assert queued.status_code == 202
            await it.settled()
            assert it.record("app") != pid
            assert [text for _, text in it.sent()] == ["one", "two"]


async def test_a_killed_bridge_adopts_its_display_and_app(tmp_path):
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state") as it:
            assert (await it.send("Alice", "one")).status_code == 200
            before = [it.record(name) for name in ("xvfb", "wm", "app")]
            await it.kill(signal.SIGKILL)
            await it.start()
            assert [it.record(name) for name in ("xvfb", "wm", "app")] == before
            assert (await it.send("Alice", "two")).status_code == 200
            starts = [e for e in it.journal() if e["effect"] == "started"]
            assert len(starts) == 1
            assert [text for _, text in it.sent()] == ["one", "two"]


async def test_sigterm_ends_all_that_was_started(tmp_path):
    with trio.fail_after(90):
        async with bridge_process(tmp_path / "state") as it:
            assert (await it.send("Alice", "one")).status_code == 200
            pids = [it.record(name) for name in ("xvfb", "wm", "app")]
            begun = trio.current_time()
            assert await it.kill(signal.SIGTERM) == 0, it.log()
            assert trio.current_time() - begun < 15
            assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


async def test_sigterm_lets_the_running_flow_end_and_keeps_async_work(tmp_path):
    with trio.fail_after(150):
        async with bridge_process(tmp_path / "state") as it:
            for n in range(6):
                await it.send("Alice", f"m{n}", Prefer="respond-async")

            async def one_sent() -> bool | None:
                return True if it.sent() else None

            assert await poll(one_sent, 30)
            assert await it.kill(signal.SIGTERM) == 0, it.log()
            sent_before = len(it.sent())
            assert sent_before < 6
            await it.start()
            await it.settled()
            assert [text for _, text in it.sent()] == [f"m{n}" for n in range(6)]
            assert {a["state"] for a in await it.all_actions(kind="send_text")} == {"succeeded"}


async def test_a_second_bridge_on_the_same_state_directory_refuses(tmp_path):
    with trio.fail_after(90):
        async with bridge_process(tmp_path / "state") as it:
            second = await trio.run_process(
                [str(Path(it.popen.args[0])), "serve"],
                env={
                    "PATH": "/usr/bin:/bin",
                    "DESKBRIDGE_STATE_DIR": str(it.state_dir),
                    "DESKBRIDGE_PORT": "0",
                },
                check=False,
                capture_stderr=True,
            )
            assert second.returncode == 1
            assert b"works on this database already" in second.stderr
            assert (await it.send("Alice", "still fine")).status_code == 200


async def test_status_metrics_and_health(tmp_path):
    with trio.fail_after(90):
        async with bridge_process(tmp_path / "state") as it:
            await it.send("Alice", "one")
            status = (await it.http.get("/api/status")).json()
            assert status["ui_scheduler"]["executed_by_priority"]["NORMAL"] == 1
            assert status["ui_scheduler"]["executed_total"] == 1
            assert status["send_queue_pending"] == 0
            assert (await it.http.get("/api/login")).json()["account"] == "demo"
            metrics = (await it.http.get("/metrics")).text
            assert 'deskbridge_ui_action_executed_total{priority="NORMAL"} 1.0' in metrics
            assert "deskbridge_send_queue_pending 0.0" in metrics
            bare = {"Authorization": ""}
            assert (await it.http.get("/healthz", headers=bare)).status_code == 200
            assert (await it.http.get("/readyz", headers=bare)).status_code == 200
            assert (await it.http.get("/api/status", headers=bare)).status_code == 401
