"""Adapters come from installed packages; a broken one is told in one sentence."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bridge.apps.demo import DemoAdapter
from bridge.apps.loading import load_adapter
from bridge.config import Settings, SettingsError

GOOD = """
from bridge.apps.demo import DemoAdapter as Good

class Typo(Good):
    def __init__(self, settings):
        super().__init__(settings)
        self.flows = {**self.flows, "send_txt": None}

class Refusing(Good):
    def __init__(self, settings):
        from bridge.config import SettingsError
        raise SettingsError("OTHER_PROFILE is missing")

class Failing(Good):
    def __init__(self, settings):
        1 / 0

def half(settings):
    return object()
"""


@pytest.fixture
def settings(tmp_path, monkeypatch) -> Settings:
    """Settings for an app of a package that `install` has put on the path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    return Settings(state_dir=tmp_path / "state")


def install(folder: Path, module: str, name: str = "other-app", **apps: str) -> None:
    """What pip leaves of a package: a module and its metadata."""
    info = folder / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = [f"{app} = {value}\n" for app, value in apps.items()]
    (info / "entry_points.txt").write_text("[deskbridge.apps]\n" + "".join(lines))
    (folder / f"{name.replace('-', '_')}.py").write_text(module)


def refusal(settings: Settings, app: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load_adapter(dataclasses.replace(settings, app=app))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_adapters_of_this_package_are_found(settings):
    assert isinstance(load_adapter(settings), DemoAdapter)


def test_one_of_another_package_is_found(settings, tmp_path):
    install(tmp_path, GOOD, "app-one", one="app_one:Good")
    assert load_adapter(dataclasses.replace(settings, app="one")).name == "demo"


def test_an_unknown_app_names_those_that_are_there(settings):
    told = refusal(settings, "whatsapp")
    assert "DESKBRIDGE_APP is 'whatsapp'" in told
    assert "demo" in told
    assert "pidgin" in told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("app_two:Nothing", "cannot be loaded: AttributeError"),
        ("app_gone:Good", "cannot be loaded: ModuleNotFoundError"),
        ("app_two:Failing", "cannot be loaded: ZeroDivisionError"),
        ("app_two:half", "is no adapter: it has no name, durable_history, flows"),
        ("app_two:Typo", "kinds that nobody knows: send_txt"),
    ],
)
def test_a_broken_one_is_named_with_its_package(settings, tmp_path, value, told):
    install(tmp_path, GOOD, "app-two", two=value)
    message = refusal(settings, "two")
    assert told in message
    assert "app-two 1.2" in message


def test_one_that_does_not_even_parse(settings, tmp_path):
    install(tmp_path, "def (:\n", "app-three", three="app_three:Good")
    assert "SyntaxError" in refusal(settings, "three")


def test_an_adapter_may_refuse_its_own_settings(settings, tmp_path):
    install(tmp_path, GOOD, "app-four", four="app_four:Refusing")
    assert refusal(settings, "four") == "OTHER_PROFILE is missing"


def test_two_packages_that_bring_the_same_app(settings, tmp_path):
    install(tmp_path, GOOD, "app-five", five="app_five:Good")
    install(tmp_path, GOOD, "app-six", five="app_six:Good")
    assert "app-five 1.2, app-six 1.2" in refusal(settings, "five")
