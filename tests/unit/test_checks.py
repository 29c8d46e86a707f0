"""What the checks conclude from facts, and what they say to do."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from bridge.apps.base import Reading
from bridge.checks import before_start, on_app, on_display, on_machine
from bridge.checks.before_start import Program
from bridge.checks.on_machine import Disk, Fonts
from bridge.checks.result import Fault, Result, checked, judged, worst
from bridge.errors import BridgeError
from bridge.model import LoginState
from bridge.store import StoreHealth
from ui_backends.base import DisplayDead, Ping
from ui_backends.facts import Owner, XFacts

GIB = 1 << 30
WELL = XFacts(
    width=1280,
    height=800,
    manager="IceWM",
    autorepeat=False,
    down=(),
    unreachable=(),
    caps_lock=False,
    clipboard_manager=None,
    clipboard=None,
    clients=5,
    limit=255,
    by_pid={os.getpid(): 5},
)
ROOMY = Disk(free=50 * GIB, total=100 * GIB, files_free=1_000_000, write_error=None)


def facts(**changes: Any) -> XFacts:
    return replace(WELL, **changes)


# -- the frame ---------------------------------------------------------------------------


def test_several_faults_make_one_result_of_the_gravest():
    result = judged(
        "x", [Fault("warning", "a", "do a"), Fault("failed", "b", "do b")], "well", {"n": 1}
    )
    assert (result.status, result.detail, result.advice) == ("failed", "a; b", "do a; do b")
    assert judged("x", [], "well", {}) == Result("x", "ok", "well", None, {})


def test_the_gravest_status_counts():
    assert worst([]) == "ok"
    assert worst(["ok", "warning"]) == "warning"
    assert worst(["warning", "failed", "ok"]) == "failed"


async def test_a_check_that_hangs_is_told_and_ends(autojump_clock: trio.testing.MockClock):
    async def hang() -> Result:
        await trio.sleep_forever()
        raise AssertionError

    with trio.fail_after(10):
        result = await checked("slow", hang, deadline=3)
    assert (result.check, result.status, result.ms) == ("slow", "warning", 3000.0)
    assert "3 s" in result.detail


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (DisplayDead("no answer"), "no answer"),
        (BridgeError("STORE_UNAVAILABLE", "locked"), "locked"),
        (ZeroDivisionError("oops"), "ZeroDivisionError: oops"),
    ],
)
async def test_a_check_that_breaks_is_a_failed_check(error: Exception, detail: str):
    async def broken() -> Result:
        raise error

    with trio.fail_after(5):
        result = await checked("x", broken)
    assert result.status == "failed"
    assert detail in result.detail
    assert result.advice


# -- the display -------------------------------------------------------------------------


def test_a_healthy_display_gives_no_advice():
    for result in (
        on_display.display(":7", None, WELL),
        on_display.window_manager(":7", WELL),
        on_display.keyboard(":7", WELL),
        on_display.clipboard(WELL),
        on_display.x_clients(WELL),
    ):
        assert (result.status, result.advice) == ("ok", None), result


def test_without_a_window_manager():
    result = on_display.window_manager(":7", facts(manager=None))
    assert result.status == "failed"
    assert "icewm --display :7" in str(result.advice)


def test_a_nameless_window_manager_is_one():
    assert on_display.window_manager(":7", facts(manager="")).status == "ok"


def test_a_refusal_is_not_a_dead_display():
    full = on_display.display(":7", "Maximum number of clients reached", None)
    assert full.status == "failed"
    assert "-maxclients" in str(full.advice)
    other = on_display.display(":7", "Authorization required", None)
    assert "Authorization required" in other.detail
    assert "xauth" in str(other.advice)


def test_what_is_held_down_is_named():
    result = on_display.keyboard(":7", facts(down=("Control_L", "button 1")))
    assert result.status == "failed"
    assert "Control_L, button 1" in result.detail
    assert "autofix/keyboard" in str(result.advice)


def test_keys_that_the_layout_lacks_are_named():
    result = on_display.keyboard(":7", facts(unreachable=("v", "f")))
    assert result.status == "failed"
    assert "v, f" in result.detail
    assert "setxkbmap -display :7 us" in str(result.advice)


def test_autorepeat_and_caps_lock_are_warnings():
    repeating = on_display.keyboard(":7", facts(autorepeat=True))
    assert repeating.status == "warning"
    assert "xset -display :7 r off" in str(repeating.advice)
    locked = on_display.keyboard(":7", facts(caps_lock=True))
    assert locked.status == "warning"
    assert "Caps Lock" in locked.detail


def test_a_clipboard_manager_is_a_warning_until_it_has_the_clipboard():
    manager = Owner(client=0x200000, pid=os.getpid())
    idle = on_display.clipboard(facts(clipboard_manager=manager))
    assert idle.status == "warning"
    assert f"pid {os.getpid()}" in idle.detail
    assert "end " in str(idle.advice)
    other = facts(clipboard_manager=manager, clipboard=Owner(0x400000, 1))
    assert on_display.clipboard(other).status == "warning"
    same_connection = facts(clipboard_manager=manager, clipboard=Owner(0x200000, None))
    assert on_display.clipboard(same_connection).status == "failed"
    same_process = facts(clipboard_manager=manager, clipboard=Owner(0x600000, os.getpid()))
    assert on_display.clipboard(same_process).status == "failed"


def test_a_clipboard_program_that_does_not_announce_itself():
    names = {1: "copyq (pid 1)", 2: "xterm (pid 2)", None: "?"}
    result = on_display.clipboard(facts(by_pid={2: 1, 1: 1}), names.__getitem__)
    assert result.status == "warning"
    assert "copyq (pid 1)" in result.detail
    assert "xterm" not in result.detail
    assert "end copyq (pid 1)" in str(result.advice)
    assert on_display.clipboard(facts(by_pid={2: 1}), names.__getitem__).status == "ok"


@pytest.mark.parametrize(
    ("clients", "status"), [(74, "ok"), (75, "warning"), (94, "warning"), (95, "failed")]
)
def test_connections_against_the_limit(clients: int, status: str):
    result = on_display.x_clients(
        facts(clients=clients, limit=100, by_pid={1: 1, os.getpid(): clients - 1})
    )
    assert result.status == status
    assert f"{clients} of 100" in result.detail
    assert result.data["most"][0]["pid"] == os.getpid()
    assert (result.advice is None) == (status == "ok")


# -- the machine -------------------------------------------------------------------------


def test_the_locale_by_its_environment():
    assert on_machine.locale_of({}) == "C"
    assert on_machine.locale_of({"LANG": "a", "LC_CTYPE": "b", "LC_ALL": "c"}) == "c"
    assert on_machine.locale_of({"LANG": "a", "LC_CTYPE": "b", "LC_ALL": ""}) == "b"


@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        ("C.UTF-8", None),
        ("zh_CN.utf8", None),
        ("de_DE.UTF-8@euro", None),
        ("C", "ASCII"),
        ("POSIX", "ASCII"),
        ("zh_CN", "not UTF-8"),
        ("zh_CN.GB18030", "not UTF-8"),
        ("fr_FR.UTF-8", "not installed"),
    ],
)
def test_locales(name: str, trouble: str | None):
    installed = {"C", "C.utf8", "POSIX", "zh_CN.utf8", "de_DE.utf8"}
    result = on_machine.locale("C.UTF-8", name, installed)
    assert result.status == ("ok" if trouble is None else "failed")
    if trouble is not None:
        assert trouble in result.detail
        assert "the app" in result.detail
        assert "LC_ALL=C.UTF-8" in str(result.advice)


def test_a_c_locale_of_the_bridge_alone_is_a_warning():
    result = on_machine.locale("C", "C.UTF-8", None)
    assert result.status == "warning"
    assert "the bridge is C" in result.detail


def test_fonts_are_named_by_their_packages():
    assert on_machine.fonts(Fonts(cjk=3, emoji=1)).status == "ok"
    result = on_machine.fonts(Fonts(cjk=0, emoji=0))
    assert result.status == "warning"
    assert "fonts-noto-cjk" in str(result.advice)
    assert "fonts-noto-color-emoji" in str(result.advice)
    assert "fonts-noto-cjk" not in str(on_machine.fonts(Fonts(cjk=1, emoji=0)).advice)
    assert "fontconfig" in str(on_machine.fonts(None).advice)


@pytest.mark.parametrize(
    ("changes", "status", "word"),
    [
        ({}, "ok", "free"),
        ({"free": GIB - 1}, "warning", "nearly full"),
        ({"free": 50 << 20}, "failed", "nearly full"),
        ({"files_free": 10}, "warning", "10 more files"),
        ({"write_error": "Read-only file system"}, "failed", "Read-only file system"),
    ],
)
def test_disks(changes: dict[str, Any], status: str, word: str):
    result = on_machine.disk(Path("/state"), replace(ROOMY, **changes))
    assert result.status == status
    assert word in result.detail
    assert (result.advice is None) == (status == "ok")


async def test_a_state_directory_is_written_to_and_left_as_it_was(tmp_path: Path):
    with trio.fail_after(10):
        found = await on_machine.disk_of(tmp_path / "not" / "yet")
    assert found.write_error is None
    assert found.free > 0
    assert list(tmp_path.iterdir()) == []


async def test_a_folder_that_takes_no_write(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def refuse(**_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(on_machine, "tempfile", SimpleNamespace(NamedTemporaryFile=refuse))
    with trio.fail_after(10):
        found = await on_machine.disk_of(tmp_path)
    assert found.write_error == "Permission denied"


def test_a_damaged_store():
    health = StoreHealth("sqlite", "e1", ("row 7 missing from index",), True)
    result = on_machine.store(health)
    assert result.status == "failed"
    assert "row 7" in result.detail
    assert result.advice


def test_a_store_too_large_to_look_through_is_no_fault():
    result = on_machine.store(StoreHealth("sqlite", "e1", (), False))
    assert result.status == "ok"
    assert "not looked through" in result.detail
    assert result.data["epoch"] == "e1"


# -- the app -----------------------------------------------------------------------------


def test_an_app_that_is_given_up_says_where_to_look():
    result = on_app.running(None, False, "it ended 6 times", Path("/state/log"))
    assert result.status == "failed"
    assert "it ended 6 times" in result.detail
    assert "/state/log" in str(result.advice)


def test_only_a_proven_process_runs():
    assert on_app.running(42, True, None, Path("/log")).status == "ok"
    gone = on_app.running(42, False, None, Path("/log"))
    assert gone.status == "failed"
    assert "no longer the app" in gone.detail
    assert on_app.running(None, False, None, Path("/log")).status == "failed"


def test_windows():
    assert on_app.window(1, 3, True).status == "ok"
    hidden = on_app.window(0, 2, True)
    assert "2 hidden" in hidden.detail
    assert "autofix/app_window" in str(hidden.advice)
    assert "app_running" in str(on_app.window(0, 0, False).advice)


@pytest.mark.parametrize(
    ("ping", "state", "spoken", "status"),
    [
        (Ping.ALIVE, "S", False, "ok"),
        (Ping.SILENT, "S", False, "failed"),
        (Ping.UNSUPPORTED, "S", False, "warning"),
        (Ping.UNSUPPORTED, "S", True, "failed"),
        (Ping.UNSUPPORTED, "T", False, "failed"),
        (None, None, False, "failed"),
    ],
)
def test_answers(ping: Ping | None, state: str | None, spoken: bool, status: str):
    result = on_app.responding(ping, state, spoken, 2.0)
    assert result.status == status
    assert (result.advice is None) == (status == "ok")


def test_a_stopped_process_is_named_as_such():
    result = on_app.responding(Ping.UNSUPPORTED, "T", False, 2.0)
    assert "stopped" in result.detail
    assert "kill -CONT" in str(result.advice)


def test_the_state_of_a_process():
    assert on_app.process_state(os.getpid()) in {"R", "S"}
    assert on_app.process_state(2**22 + 1) is None  # beyond the largest pid


@pytest.mark.parametrize("state", list(LoginState))
def test_every_sign_in_state_is_judged(state: LoginState):
    result = on_app.login(Reading(state, "me"), LoginState.UNKNOWN)
    assert (result.status == "ok") == (state is LoginState.LOGGED_IN)
    assert (result.advice is None) == (state is LoginState.LOGGED_IN)
    assert result.data["state"] == state.value
    assert result.data["known"] == "unknown"


# -- before a start ----------------------------------------------------------------------

ALL = {name: Program(f"/usr/bin/{name}") for name in before_start.PACKAGES}


def test_a_missing_program_is_named_with_its_package():
    found = {**ALL, "Xvfb": Program(None)}
    result = before_start.programs(found, display_up=False, manager_up=False)
    assert result.status == "failed"
    assert "Xvfb is not installed" in result.detail
    assert "apt-get install xvfb" in str(result.advice)


def test_what_is_up_already_need_not_be_installed():
    found = {**ALL, "Xvfb": Program(None), "icewm": Program(None)}
    assert before_start.programs(found, display_up=True, manager_up=True).status == "warning"
    assert before_start.programs(found, display_up=True, manager_up=False).status == "failed"


def test_a_program_that_does_not_run():
    found = {**ALL, "scrot": Program("/usr/bin/scrot", "status 127, libImlib2 is missing")}
    result = before_start.programs(found, display_up=True, manager_up=True)
    assert result.status == "failed"
    assert "libImlib2" in result.detail


def test_python_and_tkinter():
    assert before_start.python((3, 11, 2), None).status == "ok"
    assert "3.10" in before_start.python((3, 10, 9), None).detail
    result = before_start.python((3, 11, 2), "No module named 'tkinter'")
    assert result.status == "failed"
    assert "python3-tk" in str(result.advice)


def test_a_lock_file_of_a_living_process_stands_in_the_way():
    lock = Path("/tmp/.X7-lock")
    assert before_start.display_absent(":7", lock, None).status == "ok"
    result = before_start.display_absent(":7", lock, os.getpid())
    assert result.status == "failed"
    assert "remove /tmp/.X7-lock" in str(result.advice)


def test_a_bridge_brings_its_window_manager_up_if_it_can():
    bare = facts(manager=None)
    assert before_start.window_manager(":7", bare, can_start=True).status == "warning"
    assert before_start.window_manager(":7", bare, can_start=False).status == "failed"
    assert before_start.window_manager(":7", WELL, can_start=False).status == "ok"


def test_a_port_in_use():
    result = before_start.port("127.0.0.1", 8655, "Address already in use")
    assert result.status == "failed"
    assert "DESKBRIDGE_PORT" in str(result.advice)
    assert before_start.port("127.0.0.1", 8655, None).status == "ok"
