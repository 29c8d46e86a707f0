"""`login` and `logout` against a real server: what they print, ask again, and how they end."""

from __future__ import annotations

import json
import time

import pytest
import trio
from PIL import Image

from bridge.cli import main
from bridge.cli.signing import half_blocks
from bridge.clock import rfc3339
from bridge.config import Settings
from bridge.errors import BridgeError
from tests.support.fakecore import TOKEN, FakeCore
from tests.support.serving import serving
from ui_backends.qr import read_codes

LIMIT = 20
QR = {"state": "qr", "account": None, "evidence": {}}
CONFIRM = {"state": "confirm", "account": None, "evidence": {}}
IN = {"state": "logged_in", "account": "carol", "evidence": {}}


def code(payload: str, seconds: float | None = 120) -> dict[str, object]:
    until = None if seconds is None else rfc3339(round((time.time() + seconds) * 1000))
    return {"image": "data:image/png;base64,", "payload": payload, "expires_at": until}


def no_serve(settings: Settings) -> int:
    raise AssertionError("serve was not asked for")


async def run(core: FakeCore, *argv: str) -> int:
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            words = [argv[0], "--url", site.url, "--token", TOKEN, *argv[1:]]
            return await trio.to_thread.run_sync(lambda: main(serve=no_serve, argv=words))


def drawn(text: str) -> Image.Image:
    """The terminal's half blocks as pixels, light as the terminal draws them."""
    lines = text.splitlines()
    upper, lower = set("█▀"), set("█▄")
    picture = Image.new("L", (len(lines[0]), 2 * len(lines)), 0)
    for row, line in enumerate(lines):
        for column, sign in enumerate(line):
            picture.putpixel((column, 2 * row), 255 * (sign in upper))
            picture.putpixel((column, 2 * row + 1), 255 * (sign in lower))
    return picture.resize((picture.width * 4, picture.height * 4), Image.Resampling.NEAREST)


@pytest.mark.parametrize("payload", ["https://demo.invalid/a?until=1", "x", "z" * 200])
def test_what_is_drawn_can_be_scanned(payload: str):
    found = read_codes(drawn(half_blocks(payload, coloured=False)).convert("RGB"))
    assert [one.payload for one in found] == [payload]


def test_a_coloured_code_sets_and_resets_both_colours_on_every_line():
    plain = half_blocks("x", coloured=False).splitlines()
    for line, bare in zip(half_blocks("x", coloured=True).splitlines(), plain, strict=True):
        assert line == f"\x1b[38;5;231;48;5;16m{bare}\x1b[0m"


async def test_login_shows_the_code_and_says_who_came(capsys: pytest.CaptureFixture[str]):
    core = FakeCore()
    core.logins = [QR, CONFIRM, IN]
    core.scripted["capture_qr"] = [code("pay-1")]
    assert await run(core, "login") == 0
    said = capsys.readouterr().out
    blocks = "\n".join(line for line in said.splitlines() if set(line) <= set("█▀▄ ") and line)
    assert [one.payload for one in read_codes(drawn(blocks).convert("RGB"))] == ["pay-1"]
    rest = [line for line in said.splitlines() if not set(line) <= set("█▀▄ ")]
    assert rest[0].startswith("Scan this code with your phone; it holds until ")
    assert rest[1:] == ["Scanned. Confirm it on the phone.", "carol is signed in."]
    assert [state for state, _ in core.login_waits] == ["qr", "confirm"]


async def test_login_renews_a_code_and_shows_the_one_after_a_refusal(
    capsys: pytest.CaptureFixture[str],
):
    core = FakeCore()
    core.logins = [QR, QR, CONFIRM, QR, IN]
    core.scripted["capture_qr"] = [code("old", -5), code("new"), code("after")]
    assert await run(core, "login", "--json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("payload", line["state"]) for line in lines] == [
        "old",
        "new",
        "confirm",
        "after",
        "logged_in",
    ]
    assert lines[-1] == {"state": "logged_in", "account": "carol"}


async def test_login_goes_on_when_the_code_was_scanned_in_between(
    capsys: pytest.CaptureFixture[str],
):
    core = FakeCore()
    core.logins = [QR, CONFIRM, IN]
    gone = BridgeError("INVALID_STATE", "a phone has scanned the code", executed=False)
    core.scripted["capture_qr"] = [gone]
    assert await run(core, "login") == 0
    assert capsys.readouterr().out.endswith("carol is signed in.\n")


async def test_login_asks_for_no_code_when_somebody_is_signed_in(
    capsys: pytest.CaptureFixture[str],
):
    core = FakeCore()
    assert await run(core, "login") == 0
    assert capsys.readouterr().out == "demo is signed in.\n"
    assert core.requests == []


async def test_login_gives_up_in_its_time(capsys: pytest.CaptureFixture[str]):
    core = FakeCore()
    core.logins = [QR]
    core.scripted["capture_qr"] = [code("pay")]
    assert await run(core, "login", "--wait", "0") == 1
    assert capsys.readouterr().err.startswith("deskbridge: NOT_LOGGED_IN: nobody signed in")


async def test_login_says_when_a_code_cannot_help(capsys: pytest.CaptureFixture[str]):
    core = FakeCore()
    core.logins = [{"state": "blocked", "account": "demo", "evidence": {}}]
    assert await run(core, "login") == 1
    assert "the app is blocked" in capsys.readouterr().err


async def test_login_of_an_app_that_has_no_code(capsys: pytest.CaptureFixture[str]):
    core = FakeCore()
    core.logins = [QR]
    core.scripted["capture_qr"] = [BridgeError("UNSUPPORTED_BY_APP", "no code", executed=False)]
    assert await run(core, "login") == 1
    assert capsys.readouterr().err.startswith("deskbridge: UNSUPPORTED_BY_APP: ")


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"signed_out": True, "account": "demo"}, "demo is signed out.\n"),
        ({"signed_out": False, "account": None}, "Nobody was signed in.\n"),
    ],
)
async def test_logout(capsys: pytest.CaptureFixture[str], result: dict[str, object], said: str):
    for argv, wait in (["logout"], None), (["logout", "--json", "--wait", "7"], 7.0):
        core = FakeCore()
        core.scripted["logout"] = [result]
        assert await run(core, *argv) == 0
        assert [request.wait for request in core.requests] == [wait]
        out = capsys.readouterr().out
        assert out == said if wait is None else json.loads(out)["result"] == result
