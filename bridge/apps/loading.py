"""Finding the adapter that the settings name, among those that installed packages bring.

A package brings one by an entry point in the group `deskbridge.apps`. Whatever is wrong with it
is told in one sentence at start, never as a traceback in the middle of the work.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from bridge.apps.base import Adapter, AppSettings
from bridge.config import Settings, SettingsError
from bridge.kinds import CATALOGUE

GROUP = "deskbridge.apps"
"""The entry point group of app adapters."""

_PARTS = ("name", "durable_history", "flows", "kinds", "launch", "prepare", "probe", "clean_screen")


def load_adapter(settings: Settings) -> Adapter:
    """The adapter that `settings.app` names. Raises SettingsError, which says what is wrong."""
    point = _find(settings.app)
    about = f"the app adapter {settings.app!r} ({_package(point)}, {point.value})"
    try:
        adapter = point.load()(AppSettings(settings.state_dir, settings.env))
    except SettingsError:
        raise  # the adapter has said itself which of its settings it cannot use
    except Exception as error:
        raise SettingsError(
            f"{about} cannot be loaded: {type(error).__name__}: {error}; "
            "mend or reinstall that package"
        ) from error
    missing = [part for part in _PARTS if not hasattr(adapter, part)]
    if missing:
        raise SettingsError(f"{about} is no adapter: it has no {', '.join(missing)}")
    unknown = sorted(set(adapter.flows) - set(CATALOGUE) - set(adapter.kinds))
    if unknown:
        raise SettingsError(
            f"{about} carries out kinds that nobody knows: {', '.join(unknown)}; "
            "a kind of its own belongs into its `kinds`"
        )
    loaded: Adapter = adapter
    return loaded


def _find(name: str) -> EntryPoint:
    points = list(entry_points(group=GROUP))
    found = {point.value: point for point in points if point.name == name}
    if not found:
        there = ", ".join(sorted({point.name for point in points}))
        raise SettingsError(f"DESKBRIDGE_APP is {name!r}; installed are {there}")
    if len(found) > 1:
        packages = ", ".join(sorted(_package(point) for point in found.values()))
        raise SettingsError(
            f"DESKBRIDGE_APP is {name!r}, which several packages bring: {packages}; "
            "uninstall all but one"
        )
    return next(iter(found.values()))


def _package(point: EntryPoint) -> str:
    dist = point.dist
    return "an unknown package" if dist is None else f"{dist.metadata['Name']} {dist.version}"
