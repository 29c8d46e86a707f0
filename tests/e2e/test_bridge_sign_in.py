"""The whole bridge while accounts come and go: a phone by command, the journal as the truth."""

from __future__ import annotations

import base64
import io
import itertools
import subprocess
from functools import partial
from typing import Any

import httpx
import pytest
import trio
from PIL import Image

from bridge.demoapp import phone
from bridge.polling import poll
from tests.support.bridge import DESKBRIDGE, BridgeProcess, bridge_process
from ui_backends.qr import read_codes

MANUAL = {"DESKBRIDGE_DEMO_SIGN_IN": "manual"}
ASYNC = {"Prefer": "respond-async"}


async def play(it: BridgeProcess, move: str, **options: Any) -> None:
    await trio.to_thread.run_sync(partial(phone.play, it.state_dir, move, **options))


async def login(it: BridgeProcess) -> dict[str, Any]:
    return dict((await it.http.get("/api/login")).json())


async def login_is(it: BridgeProcess, state: str, account: str | None = None) -> None:
    """Wait by the long poll until the bridge says so."""
    known = await login(it)
    while (known["state"], known["account"]) != (state, account):
        query = {"state": known["state"], "timeout": "30"}
        answer = await it.http.get("/api/login/qr/wait", params=query)
        assert answer.status_code == 200, answer.text
        known = answer.json()


async def code(it: BridgeProcess) -> dict[str, Any]:
    answer = await it.http.post("/api/login/qr/start")
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["result"])


async def sign_in(it: BridgeProcess, account: str) -> None:
    await play(it, "scan", account=account)
    await play(it, "confirm")
    await login_is(it, "logged_in", account)


async def sign_out(it: BridgeProcess) -> None:
    answer = await it.http.post("/api/login/logout")
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"]["signed_out"] is True


def said(answer: httpx.Response) -> tuple[int, str | None]:
    return answer.status_code, answer.json().get("code")


def sent_by(it: BridgeProcess) -> list[tuple[str, str]]:
    return [(e["account"], e["text"]) for e in it.journal() if e["effect"] == "message_sent"]


async def waiting(it: BridgeProcess, answer: httpx.Response) -> str:
    assert answer.status_code == 202, answer.text
    return str((await it.action(answer.json()["action"]["id"]))["waiting"]["reason"])


async def test_from_the_code_to_the_first_message(tmp_path):
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state", **MANUAL) as it:
            # it was ready (readyz 200) at its code
            assert (await login(it))["state"] == "qr"
            assert said(await it.send("Alice", "too early")) == (409, "NOT_LOGGED_IN")
            shown = await code(it)
            picture = Image.open(io.BytesIO(base64.b64decode(shown["image"].split(",", 1)[1])))
            (read,) = read_codes(picture.convert("RGB"))
            assert read.payload == shown["payload"]
            answers: list[httpx.Response] = []

            async def wait() -> None:
                answers.append(await it.http.get("/api/login/qr/wait?state=qr&timeout=50"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                await play(it, "scan", payload=shown["payload"])
            assert answers[0].json()["state"] == "confirm"
            assert said(await it.http.post("/api/login/qr/start")) == (409, "INVALID_STATE")
            await play(it, "confirm")
            await login_is(it, "logged_in", "demo")
            assert (await it.send("Alice", "hello")).status_code == 200
            refused = await it.http.post("/api/login/qr/start")
            assert said(refused) == (409, "INVALID_STATE")
            assert refused.json()["executed"] is False
            # and is not tried again when nobody waits for it
            queued = await it.http.post("/api/login/qr/start", headers=ASYNC)
            await it.settled(20)
            action = await it.action(queued.json()["action"]["id"])
            assert (action["state"], action["error"]["code"]) == ("failed", "INVALID_STATE")
            assert sent_by(it) == [("demo", "hello")]


async def test_a_wait_without_a_change_ends_in_its_time(tmp_path):
    with trio.fail_after(60):
        async with bridge_process(tmp_path / "state", **MANUAL) as it:
            begun = trio.current_time()
            answer = await it.http.get("/api/login/qr/wait?state=qr&timeout=1")
            assert 1 <= trio.current_time() - begun < 5
            assert answer.json() == await login(it)
            # and one for a state that is over is answered at once
            answer = await it.http.get("/api/login/qr/wait?state=confirm&timeout=60")
            assert answer.json()["state"] == "qr"


async def test_refused_and_expired_codes_are_followed_by_fresh_ones(tmp_path):
    with trio.fail_after(120):
        async with bridge_process(
            tmp_path / "state", DESKBRIDGE_DEMO_QR_SECONDS="6", **MANUAL
        ) as it:
            first = await code(it)
            await play(it, "scan", payload=first["payload"])
            await login_is(it, "confirm")
            await play(it, "refuse")
            await login_is(it, "qr")
            second = await code(it)
            assert second["payload"] != first["payload"]

            async def expired() -> bool | None:
                return (await login(it))["evidence"].get("screen") == "expired" or None

            assert await poll(expired, 30)
            assert (await login(it))["state"] == "qr"
            assert (await it.http.get("/readyz")).status_code == 200
            third = await code(it)
            assert third["payload"] not in {first["payload"], second["payload"]}
            await play(it, "scan", payload=third["payload"])
            await play(it, "confirm")
            await login_is(it, "logged_in", "demo")


async def test_the_code_is_there_for_a_person_who_has_the_seat(tmp_path):
    with trio.fail_after(60):
        async with bridge_process(tmp_path / "state", **MANUAL) as it:
            taken = await it.http.post("/api/hands-on/acquire", json={"who": "a person"})
            assert taken.status_code == 200
            await play(it, "scan", payload=(await code(it))["payload"])


async def test_a_restart_waits_for_force_while_somebody_signs_in(tmp_path):
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state", **MANUAL) as it:
            before, first = it.record("app"), await code(it)
            assert said(await it.http.post("/api/app/restart")) == (409, "INVALID_STATE")
            assert (it.record("app"), await code(it)) == (before, first)
            await play(it, "scan")
            await login_is(it, "confirm")
            assert said(await it.http.post("/api/app/restart")) == (409, "INVALID_STATE")
            forced = await it.http.post("/api/app/restart", json={"force": True})
            assert forced.status_code == 200, forced.text
            assert it.record("app") == forced.json()["result"]["pid"] != before
            await login_is(it, "qr")
            assert (await code(it))["payload"] != first["payload"]


async def test_what_waits_for_one_account_never_goes_out_as_another(tmp_path):
    with trio.fail_after(180):
        async with bridge_process(tmp_path / "state") as it:
            await login_is(it, "logged_in", "demo")
            assert (await it.send("Alice", "one")).status_code == 200
            await sign_out(it)
            # the answer is true when it goes out
            assert (await login(it))["state"] == "qr"
            begun = trio.current_time()
            refused = await it.send("Alice", "nobody's")
            assert said(refused) == (409, "NOT_LOGGED_IN")
            assert trio.current_time() - begun < 2
            assert refused.json()["executed"] is False
            queued = [await it.send("Alice", f"demo's {n}", **ASYNC) for n in range(3)]
            assert [await waiting(it, answer) for answer in queued] == ["signed_in"] * 3
            await sign_in(it, "carol")
            assert [await waiting(it, answer) for answer in queued] == ["other_owner"] * 3
            own = await it.send("Bob", "carol's")
            assert own.status_code == 200, own.text
            assert own.json()["action"]["owner"] == "carol"
            assert sent_by(it) == [("demo", "one"), ("carol", "carol's")]
            await sign_out(it)
            await sign_in(it, "demo")
            await it.settled()
            assert sent_by(it)[2:] == [("demo", f"demo's {n}") for n in range(3)]
            again = await it.http.post("/api/login/logout")
            assert again.json()["result"]["signed_out"] is True
            again = await it.http.post("/api/login/logout")
            assert again.json()["result"] == {"signed_out": False, "account": None}


async def test_an_account_that_changes_behind_the_probes_back_sends_nothing_for_another(tmp_path):
    """A phone ends the session and another one signs in, faster than the probe looks."""
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state") as it:
            await login_is(it, "logged_in", "demo")
            await play(it, "sign_out")
            await play(it, "scan", account="carol")
            await play(it, "confirm")

            async def in_again() -> bool | None:
                return it.journal()[-1].get("account") == "carol" or None

            assert await poll(in_again, 10)
            queued = await it.send("Alice", "stored for demo", **ASYNC)
            refused = await it.send("Alice", "waited for demo")
            # either the flow saw it, or the probe had by then; never was it sent by carol
            if refused.status_code == 200:
                assert refused.json()["action"]["owner"] == "carol"
            else:
                assert said(refused) == (409, "NOT_LOGGED_IN")
                assert refused.json()["executed"] is False
            await login_is(it, "logged_in", "carol")
            assert not [text for _, text in sent_by(it) if "stored" in text]

            async def parked() -> bool | None:
                return await waiting(it, queued) == "other_owner" or None

            assert await poll(parked, 10)
            stored = await it.action(queued.json()["action"]["id"])
            assert (stored["owner"], stored["attempt"]) == ("demo", 0)


async def test_who_waits_for_the_seat_is_told_when_it_is_signed_out(tmp_path):
    """A logout overtakes the texts that wait; their callers are answered, not left to time out."""
    with trio.fail_after(120):
        async with bridge_process(tmp_path / "state", DESKBRIDGE_SEND_DELAY_MS="20000") as it:
            await login_is(it, "logged_in", "demo")
            assert (await it.send("Alice", "first")).status_code == 200
            answers: list[httpx.Response] = []

            async def send(n: int) -> None:
                answers.append(await it.send("Bob", f"waited {n}", Prefer="wait=100"))

            async with trio.open_nursery() as nursery:
                for n in range(4):
                    nursery.start_soon(send, n)

                async def all_wait() -> bool | None:
                    return (await it.http.get("/api/queue")).json()["pending"] == 4 or None

                assert await poll(all_wait, 15)
                answer = await it.http.post("/api/login/logout", headers={"Prefer": "wait=60"})
                assert answer.json()["result"]["signed_out"] is True
            assert {said(answer) for answer in answers} == {(409, "NOT_LOGGED_IN")}
            assert {answer.json()["executed"] for answer in answers} == {False}
            await sign_in(it, "demo")
            await it.settled()
            assert sent_by(it) == [("demo", "first")]


async def test_a_send_and_a_logout_at_once_do_not_mix(tmp_path):
    """Ten times: each logout lies before or after each send, by the steps on the screen."""
    rounds = 10
    with trio.fail_after(280):
        async with bridge_process(tmp_path / "state") as it:
            waited: dict[str, httpx.Response] = {}
            stored: list[str] = []

            async def send(text: str) -> None:
                waited[text] = await it.send("Alice", text)

            async def enqueue(text: str) -> None:
                assert (await it.send("Bob", text, **ASYNC)).status_code == 202
                stored.append(text)

            async def logout(pause: float) -> None:
                await trio.sleep(pause)
                await sign_out(it)

            await login_is(it, "logged_in", "demo")
            for n in range(rounds):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(send, f"waited {n}")
                    nursery.start_soon(enqueue, f"stored {n}")
                    # from before the send's first step to behind its last
                    nursery.start_soon(logout, 0.05 * n)
                assert said(await it.send("Alice", "late")) == (409, "NOT_LOGGED_IN")
                await sign_in(it, "demo")
            await it.settled()
            told = {text: said(answer) for text, answer in waited.items()}
            assert set(told.values()) <= {(200, None), (409, "NOT_LOGGED_IN")}
            done = [text for text, (status, _) in told.items() if status == 200]
            assert sorted(text for _, text in sent_by(it)) == sorted(done + stored)
            await _no_overlap(it, rounds)


async def _no_overlap(it: BridgeProcess, rounds: int) -> None:
    actions = [a for a in await it.all_actions() if a["steps"]]
    assert sum(a["kind"] == "logout" for a in actions) == rounds
    spans = sorted((a["steps"][0]["at"], a["steps"][-1]["at"], a["kind"]) for a in actions)
    for (_, ended, _), (began, _, _) in itertools.pairwise(spans):
        assert ended <= began
    outs = [(span[0], span[1]) for span in spans if span[2] == "logout"]
    journal = [e for e in it.journal() if e["effect"] in {"signed_out", "signed_in"}]
    assert [e["effect"] for e in journal] == ["signed_in"] + ["signed_out", "signed_in"] * rounds
    assert len(outs) == rounds


@pytest.mark.parametrize("account", ["demo", "carol"])
async def test_the_command_signs_in_and_out(tmp_path, account):
    with trio.fail_after(120):
        async with bridge_process(
            tmp_path / "state", DESKBRIDGE_DEMO_QR_SECONDS="8", **MANUAL
        ) as it:
            argv = [str(DESKBRIDGE), "login", "--state-dir", str(it.state_dir)]
            with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as command:
                try:
                    assert command.stdout is not None
                    lines: list[str] = []
                    while not lines or not lines[-1].startswith("Scan this code"):
                        lines.append(await trio.to_thread.run_sync(command.stdout.readline))
                        assert lines[-1], f"it ended: {lines}"
                    assert len(lines) > 10
                    await play(it, "scan", account=account)
                    await login_is(it, "confirm")
                    await play(it, "confirm")
                    rest = await trio.to_thread.run_sync(command.stdout.read)
                finally:
                    command.kill()
            assert rest.splitlines()[-1] == f"{account} is signed in."
            out = await trio.run_process(
                [str(DESKBRIDGE), "logout", "--state-dir", str(it.state_dir)], capture_stdout=True
            )
            assert out.stdout.decode() == f"{account} is signed out.\n"
            assert it.journal()[-1]["effect"] == "signed_out"
