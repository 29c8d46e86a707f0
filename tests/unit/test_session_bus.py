"""Where a seat's runtime directory lies, and what a seat may be read by."""

from __future__ import annotations

import pytest

from bridge.checks import on_app
from bridge.config import Settings, SettingsError
from bridge.sessionbus import LONGEST, SessionBusError, runtime_dir


def test_the_runtime_directory_lies_in_the_state_directory_and_is_private(tmp_path, monkeypatch):
    monkeypatch.setattr("bridge.sessionbus.LONGEST", 10_000)
    folder = runtime_dir(tmp_path / "state")
    assert folder == tmp_path / "state" / "run" / "xdg"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_state_directory_too_deep_for_a_socket_has_a_short_one_that_stays_the_same(tmp_path):
    deep, other = (tmp_path / (name * 90) for name in "ab")
    folder = runtime_dir(deep)
    try:
        assert len(str(folder)) <= LONGEST
        assert runtime_dir(deep) == folder
        second = runtime_dir(other)
        second.rmdir()
        assert second != folder
    finally:
        folder.rmdir()


def test_a_runtime_directory_that_is_none_is_refused(tmp_path):
    deep = tmp_path / ("c" * 90)
    folder = runtime_dir(deep)
    folder.rmdir()
    folder.symlink_to(tmp_path)
    try:
        with pytest.raises(SessionBusError, match="remove it"):
            runtime_dir(deep)
    finally:
        folder.unlink()


@pytest.mark.parametrize(
    ("text", "readers"),
    [
        (None, ("vision", "a11y")),
        ("", ("vision", "a11y")),
        ("vision", ("vision",)),
        ("a11y, vision", ("a11y", "vision")),
    ],
)
def test_readers_are_chosen_by_name(text, readers):
    env = {} if text is None else {"DESKBRIDGE_READERS": text}
    assert Settings.from_env(env).readers == readers


def test_an_unknown_reader_is_refused():
    with pytest.raises(SettingsError, match="vision, a11y"):
        Settings.from_env({"DESKBRIDGE_READERS": "ocr"})


@pytest.mark.parametrize(
    ("wanted", "trouble", "elements", "status", "told"),
    [
        (False, None, None, "ok", "not used"),
        (True, "no service", None, "failed", "no service"),
        (True, None, None, "warning", "offers no"),
        (True, None, 0, "warning", "offers no"),
        (True, None, 12, "ok", "12 elements"),
    ],
)
def test_what_the_doctor_says_of_the_accessibility_tree(wanted, trouble, elements, status, told):
    result = on_app.accessibility(wanted, trouble, elements)
    assert (result.status, told in result.detail) == (status, True)
    assert (result.advice is None) == (status == "ok")
