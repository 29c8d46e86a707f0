"""The demo app's sign-in on a real display: the code, the phone, the menu, and what disturbs them.

The journal is the truth that every test ends with.
"""

from __future__ import annotations

import base64
import io
from datetime import UTC, datetime

import pytest
import trio
from PIL import Image

from bridge.demoapp import phone
from bridge.errors import BridgeError
from bridge.hands import Eyes
from bridge.model import LoginState
from tests.support.bounds import bounded, until
from tests.support.demo import Commit, Demo, demo_desktop, signed_in
from ui_backends import qr

MANUAL = {"DESKBRIDGE_DEMO_SIGN_IN": "manual"}


def coming_and_going(demo: Demo) -> list[tuple[str, str | None]]:
    return [(entry["effect"], entry.get("account")) for entry in demo.journal()]


def pressed(demo: Demo) -> list[str]:
    return [step.detail for step in demo.steps if step.name == "chord"]


class Notes:
    """A control that notes when the sign-in was read again."""

    def __init__(self, demo: Demo) -> None:
        self._demo = demo
        self.reread: list[LoginState] = []

    async def restart_app(self, *, dead_for: float, force: bool) -> int:
        raise AssertionError("nobody asked for a restart")

    async def reread_login(self) -> LoginState:
        reading = await self._demo.adapter.probe(Eyes(self._demo.backend))
        self.reread.append(reading.state)
        return reading.state


# -- the code --------------------------------------------------------------------------------


@bounded(60)
async def test_the_code_is_taken_scanned_and_confirmed(tmp_path):
    async with demo_desktop(tmp_path, **MANUAL) as demo:
        await demo.launch()
        await demo.state(LoginState.QR)
        result = await demo.flow("capture_qr")
        assert await demo.flow("capture_qr") == result  # it renews nothing that holds
        picture = Image.open(io.BytesIO(base64.b64decode(str(result["image"]).split(",")[1])))
        assert [code.payload for code in qr.read_codes(picture.convert("RGB"))] == [
            result["payload"]
        ]
        left = datetime.fromisoformat(str(result["expires_at"])) - datetime.now(UTC)
        assert 60 < left.total_seconds() <= 120
        with pytest.raises(ValueError, match="not the code"):
            await demo.phone("scan", payload="https://demo.invalid/sign-in/other")
        with pytest.raises(ValueError, match="nothing was scanned"):
            await demo.phone("confirm")
        await demo.phone("scan", payload=result["payload"])
        await demo.state(LoginState.CONFIRM)
        with pytest.raises(BridgeError) as caught:
            await demo.flow("capture_qr")
        assert (caught.value.code, caught.value.executed) == ("INVALID_STATE", False)
        await demo.phone("confirm")
        await demo.state(LoginState.STARTING)
        assert (await demo.state(LoginState.LOGGED_IN)).account == "demo"
        with pytest.raises(BridgeError, match="demo is signed in") as caught:
            await demo.flow("capture_qr")
        assert caught.value.code == "INVALID_STATE"
        with pytest.raises(ValueError, match="demo is signed in"):
            await demo.phone("scan")
        assert coming_and_going(demo) == [("started", None), ("signed_in", "demo")]
        await demo.send("Alice", "hello")


@bounded(60)
async def test_a_refusal_leads_to_a_fresh_code(tmp_path):
    async with demo_desktop(tmp_path, **MANUAL) as demo:
        await demo.launch()
        await demo.state(LoginState.QR)
        first = await demo.flow("capture_qr")
        await demo.phone("scan")
        await demo.state(LoginState.CONFIRM)
        await demo.phone("refuse")
        await demo.state(LoginState.QR)
        second = await demo.flow("capture_qr")
        assert second["payload"] != first["payload"]
        with pytest.raises(ValueError, match="not the code"):
            await demo.phone("scan", payload=first["payload"])
        assert coming_and_going(demo) == [("started", None)]


@bounded(60)
async def test_an_expired_code_is_renewed_by_a_click(tmp_path):
    async with demo_desktop(tmp_path, DESKBRIDGE_DEMO_QR_SECONDS="2", **MANUAL) as demo:
        await demo.launch()
        await demo.state(LoginState.QR)
        first = await demo.flow("capture_qr")
        eyes = Eyes(demo.backend)

        async def expired() -> bool:
            return (await demo.adapter.probe(eyes)).evidence.get("screen") == "expired"

        await until(expired)
        await demo.state(LoginState.QR)  # a person can still sign in here
        with pytest.raises(ValueError, match="no code to scan"):
            await demo.phone("scan")
        second = await demo.flow("capture_qr")
        assert second["payload"] != first["payload"]
        assert [step.name for step in demo.steps].count("click") == 1
        await demo.phone("scan", payload=second["payload"])
        await trio.sleep(2.5)  # a code that was scanned no longer expires
        await demo.state(LoginState.CONFIRM)


@bounded(60)
async def test_the_code_of_an_app_that_signs_in_by_itself_is_waited_for_in_vain(tmp_path):
    async with demo_desktop(tmp_path) as demo:
        with pytest.raises(BridgeError) as caught:
            await demo.flow("capture_qr")
        assert caught.value.code == "APP_NOT_READY"
        await demo.launch()
        await demo.state(LoginState.STARTING)
        with pytest.raises(BridgeError) as caught:
            await demo.flow("capture_qr")
        assert caught.value.code == "INVALID_STATE"


@bounded(60)
async def test_another_account_signs_in_and_sees_only_its_own(tmp_path):
    async with demo_desktop(tmp_path, **MANUAL) as demo:
        await demo.launch()
        await demo.state(LoginState.QR)
        await demo.phone("scan", account="carol")
        await demo.phone("confirm")
        assert (await demo.state(LoginState.LOGGED_IN)).account == "carol"
        main = (await demo.view()).main
        assert main is not None
        assert main.title == "Demo Chat - carol"
        with pytest.raises(BridgeError) as caught:
            await demo.send("Alice", "not as carol", owner="demo")
        assert (caught.value.code, caught.value.executed) == ("NOT_LOGGED_IN", False)
        await demo.send("Alice", "from carol", owner="carol")
        assert [(e["account"], e["text"]) for e in demo.journal() if "text" in e] == [
            ("carol", "from carol")
        ]
        assert (await demo.flow("logout"))["account"] == "carol"
        await demo.phone("scan")
        await demo.phone("confirm", account="demo")
        assert (await demo.state(LoginState.LOGGED_IN)).account == "demo"
        assert coming_and_going(demo)[1:] == [
            ("signed_in", "carol"),
            ("message_sent", "carol"),
            ("signed_out", "carol"),
            ("signed_in", "demo"),
        ]


@bounded(60)
async def test_an_account_that_changes_before_return_stops_the_send(tmp_path):
    """The title is read again behind the mark: what was claimed for one is not sent by another."""
    async with signed_in(tmp_path) as demo:

        async def change() -> None:
            await demo.phone("sign_out")
            await demo.phone("scan")
            await demo.phone("confirm", account="carol")
            await demo.state(LoginState.LOGGED_IN)

        commit = Commit(before=change)
        with pytest.raises(BridgeError) as caught:
            await demo.send("Alice", "for demo alone", commit, owner="demo")
        assert (caught.value.code, commit.handed_over) == ("NOT_LOGGED_IN", False)
        assert demo.sent() == []


@bounded(60)
async def test_a_wrong_move_is_answered_and_harms_nothing(tmp_path):
    async with demo_desktop(tmp_path, **MANUAL) as demo:
        await demo.launch()
        await demo.state(LoginState.QR)
        for name in ("No Such", "a" * 41, "x/y", "carol\n"):
            with pytest.raises(ValueError, match="no account's name"):
                await demo.phone("scan", account=name)
        for move in ("dance", "sign_out"):
            with pytest.raises(ValueError, match="nothing was scanned"):
                await demo.phone(move)
        await demo.state(LoginState.QR)


@bounded(60)
async def test_the_phone_is_a_command(tmp_path, capsys):
    async with demo_desktop(tmp_path, **MANUAL) as demo:
        assert phone.main(["--state-dir", str(demo.state_dir), "scan"]) == 1
        assert capsys.readouterr().err.startswith("demo app: ")
        await demo.launch()
        await demo.state(LoginState.QR)
        where = ["--state-dir", str(demo.state_dir)]

        async def play(*argv: str) -> int:
            return await trio.to_thread.run_sync(phone.main, [*where, *argv])

        assert await play("confirm") == 1
        assert await play("scan", "--as", "carol") == 0
        assert await play("confirm") == 0
        assert (await demo.state(LoginState.LOGGED_IN)).account == "carol"


# -- signing out -----------------------------------------------------------------------------


@bounded(60)
async def test_signing_out_is_seen_and_read_again(tmp_path):
    async with signed_in(tmp_path) as demo:
        await demo.send("Alice", "before")
        notes = Notes(demo)
        assert await demo.flow("logout", notes) == {"signed_out": True, "account": "demo"}
        assert notes.reread == [LoginState.QR]
        assert pressed(demo)[-3:] == ["F10", "s", "Return"]
        assert coming_and_going(demo)[-1] == ("signed_out", "demo")
        demo.steps.clear()
        notes = Notes(demo)
        assert await demo.flow("logout", notes) == {"signed_out": False, "account": None}
        assert [step.name for step in demo.steps if step.name != "capture"] == []
        await demo.phone("scan")
        assert await demo.flow("logout", notes) == {"signed_out": False, "account": None}
        await demo.state(LoginState.CONFIRM)  # the phone's owner is not disturbed
        assert [effect for effect, _ in coming_and_going(demo)].count("signed_out") == 1


@bounded(60)
async def test_signing_out_works_offline_and_with_a_draft(tmp_path):
    async with signed_in(tmp_path) as demo:

        async def stop() -> None:
            raise Stopped

        with pytest.raises(Stopped):
            await demo.send("Alice", "half a thought", Commit(before=stop))
        await demo.fault("offline")
        await demo.state(LoginState.OFFLINE)
        assert (await demo.flow("logout"))["signed_out"] is True
        assert demo.sent() == []


class Stopped(Exception):
    pass


@bounded(60)
async def test_a_dialog_in_the_way_gets_no_key(tmp_path):
    async with signed_in(tmp_path) as demo:
        await demo.fault("popup", on="now")
        await demo.until(lambda view: view.dialogs)
        with pytest.raises(BridgeError) as caught:
            await demo.flow("logout")
        assert (caught.value.code, caught.value.executed) == ("FOCUS_LOST", False)
        assert pressed(demo) == []
        await demo.adapter.clean_screen(demo.hands)
        assert (await demo.flow("logout"))["signed_out"] is True


@bounded(90)
@pytest.mark.parametrize("key", ["F10", "s"])
async def test_a_dialog_that_comes_in_between_is_not_answered(tmp_path, key):
    """Whatever appears instead of the question: no Return is pressed, nobody is signed out."""
    async with signed_in(tmp_path) as demo:
        real = demo.backend.chord

        async def disturbed(*keys: str, window: int | None = None) -> None:
            await real(*keys, window=window)
            if keys == (key,):
                await demo.fault("popup", on="now")
                await demo.until(lambda v: any(d.title == "Notice" for d in v.dialogs))

        demo.backend.chord = disturbed
        with pytest.raises(BridgeError) as caught:
            await demo.flow("logout")
        demo.backend.chord = real
        assert caught.value.code == "FOCUS_LOST"
        assert "Return" not in pressed(demo)
        await demo.adapter.clean_screen(demo.hands)
        await demo.state(LoginState.LOGGED_IN)
        assert (await demo.flow("logout"))["signed_out"] is True
        assert [effect for effect, _ in coming_and_going(demo)].count("signed_out") == 1


@bounded(60)
async def test_a_frozen_app_is_not_taken_for_signed_out(tmp_path):
    async with signed_in(tmp_path) as demo:
        await demo.fault("freeze", seconds=8)
        with pytest.raises(BridgeError) as caught:
            await demo.flow("logout")
        assert caught.value.code == "UI_ERROR"
        reading = await demo.adapter.probe(Eyes(demo.backend))
        assert reading.state is LoginState.LOGGED_IN
