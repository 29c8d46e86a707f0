"""`deskbridge doctor`: what it prints, and how it ends."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from bridge.cli import main
from bridge.config import Settings
from tests.support.fakecore import TOKEN, FakeCore
from tests.support.serving import serving

LIMIT = 40


class Sick(FakeCore):
    """A bridge with something to tell."""

    async def diagnose(self, check: str | None) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        told = {
            "check": "login",
            "status": "failed",
            "detail": "no\x1b[31m connection",
            "advice": "look at the network",
            "data": {},
            "ms": 1.0,
        }
        return {"status": "failed", "checks": [told]}


def no_serve(settings: Settings) -> int:
    raise AssertionError("serve was not asked for")


async def doctor(*argv: str) -> int:
    run = partial(main, serve=no_serve, argv=["doctor", *argv])
    with trio.fail_after(LIMIT):
        return await trio.to_thread.run_sync(run)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory, and an environment in which nothing is wrong."""
    for name in ("URL", "TOKEN", "DISPLAY"):
        monkeypatch.delenv(f"DESKBRIDGE_{name}", raising=False)
    monkeypatch.setenv("DESKBRIDGE_PORT", "0")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    folder = tmp_path / "state"
    folder.mkdir()
    return folder


def at_home(state: Path, port: int, token: str = TOKEN) -> None:
    (state / "port").write_text(f"{port}\n")
    (state / "token").write_text(f"{token}\n")


async def test_without_a_bridge_only_the_machine(state: Path, capsys: pytest.CaptureFixture[str]):
    assert await doctor("--state-dir", str(state)) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "This machine"
    assert told[-2:] == [f"No bridge runs with {state}.", "All is well."]


async def test_a_bridge_that_has_ended_is_no_fault(state: Path, capsys: pytest.CaptureFixture[str]):
    async with serving(FakeCore()) as site:
        at_home(state, site.port)
    assert await doctor("--state-dir", str(state), "--json") == 0
    assert json.loads(capsys.readouterr().out)["bridge"] is None


async def test_json_has_both(state: Path, capsys: pytest.CaptureFixture[str]):
    async with serving(FakeCore()) as site:
        at_home(state, site.port)
        assert await doctor("--state-dir", str(state), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["status"] == "ok"
    assert told["bridge"]["url"] == site.url
    assert [check["check"] for check in told["bridge"]["checks"]] == ["disk"]
    names = [check["check"] for check in told["machine"]]
    assert "programs" in names
    # The running bridge has them.
    assert not {"port", "display"} & set(names)


async def test_what_failed_is_named_with_what_to_do(
    state: Path, capsys: pytest.CaptureFixture[str]
):
    async with serving(Sick()) as site:
        at_home(state, site.port)
        assert await doctor("--state-dir", str(state)) == 1
    told = capsys.readouterr().out
    assert "  FAILED  login: no [31m connection\n          -> look at the network\n" in told
    assert f"The bridge at {site.url}\n" in told
    assert told.endswith("Failed: login.\n")


async def test_a_token_that_is_not_accepted(state: Path, capsys: pytest.CaptureFixture[str]):
    async with serving(FakeCore()) as site:
        at_home(state, site.port, token="wrong")
        assert await doctor("--state-dir", str(state), "--json") == 1
    [check] = json.loads(capsys.readouterr().out)["bridge"]["checks"]
    assert (check["check"], check["status"]) == ("bridge", "failed")
    assert "DESKBRIDGE_TOKEN" in check["advice"]


async def test_a_bridge_that_is_named_has_to_answer(
    state: Path, capsys: pytest.CaptureFixture[str]
):
    async with serving(FakeCore()) as site:
        pass
    named = ("--url", site.url, "--token", TOKEN)
    assert await doctor("--state-dir", str(state), *named) == 3
    assert "UNREACHABLE" in capsys.readouterr().err


async def test_a_setting_that_makes_no_sense(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("DESKBRIDGE_PORT", "many")
    assert await doctor("--state-dir", str(state)) == 2
    assert "DESKBRIDGE_PORT" in capsys.readouterr().err
