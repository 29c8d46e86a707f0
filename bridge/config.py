"""Settings of one bridge, read from the environment once, at start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_PORT = 8655


class SettingsError(Exception):
    """Raised when a setting cannot be used; the message says which and what it takes."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The numbers of the scheduler. Milliseconds, but for `max_per_second`."""

    send_delay_ms: int = 3_000
    same_contact_ms: int = 1_000
    min_gap_ms: int = 0
    max_per_second: int = 10
    age_after_ms: int = 300_000


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may wait: `max_waiting` callers, `max_pending` stored actions."""

    max_waiting: int = 100
    max_pending: int = 100_000


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a bridge is told from outside. `display` None means: one of its own choosing."""

    state_dir: Path
    port: int = DEFAULT_PORT
    host: str = "127.0.0.1"
    display: str | None = None
    app: str = "demo"
    app_start: str = "bridge"
    """Who starts the app: the bridge, or an external supervisor whose process is adopted."""
    backend: str = "xdotool"
    readers: tuple[str, ...] = ("vision", "a11y")
    """What the app may be read by, beside its windows: pictures, accessibility tree."""
    store_url: str | None = None
    seat: str = "s0"
    pace: Pace = field(default_factory=Pace)
    limits: Limits = field(default_factory=Limits)
    probe_interval: float = 5.0
    watchdog_interval: float = 10.0
    grace: float = 6.0
    folders: tuple[Path, ...] = ()
    """Where files that are sent may lie; see `file_folders`."""
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def file_folders(self) -> tuple[Path, ...]:
        """Where files that are sent may lie; the outbox in the state directory by default."""
        return self.folders or (self.state_dir / "outbox",)

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Settings:
        """Read `DESKBRIDGE_*`. Raises SettingsError."""
        state = env.get("DESKBRIDGE_STATE_DIR") or str(
            Path(env.get("XDG_STATE_HOME") or Path(env.get("HOME", "/")) / ".local" / "state")
            / "deskbridge"
        )
        return cls(
            state_dir=Path(state).absolute(),
            port=_number(env, "DESKBRIDGE_PORT", DEFAULT_PORT, most=65_535),
            display=_display(env.get("DESKBRIDGE_DISPLAY")),
            app=env.get("DESKBRIDGE_APP") or "demo",
            app_start=_one_of(env, "DESKBRIDGE_APP_START", ("bridge", "external")),
            backend=env.get("DESKBRIDGE_BACKEND") or "xdotool",
            readers=_readers(env.get("DESKBRIDGE_READERS")),
            store_url=env.get("DESKBRIDGE_STORE_URL") or None,
            pace=Pace(send_delay_ms=_number(env, "DESKBRIDGE_SEND_DELAY_MS", Pace().send_delay_ms)),
            folders=_folders(env.get("DESKBRIDGE_FILE_FOLDERS")),
            env=dict(env),
        )


def _number(env: Mapping[str, str], name: str, default: int, most: int = 86_400_000) -> int:
    text = env.get(name)
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or int(text) > most:
        raise SettingsError(f"{name} is {text!r}; it takes a whole number from 0 to {most}")
    return int(text)


def _one_of(env: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    text = env.get(name) or values[0]
    if text not in values:
        raise SettingsError(f"{name} is {text!r}; it takes {' or '.join(values)}")
    return text


READERS = ("vision", "a11y")


def _readers(text: str | None) -> tuple[str, ...]:
    names = tuple(part.strip() for part in (text or ",".join(READERS)).split(","))
    if not set(names) <= set(READERS):
        raise SettingsError(
            f"DESKBRIDGE_READERS is {text!r}; it takes {', '.join(READERS)}, or several of them "
            "with commas"
        )
    return names


def _folders(text: str | None) -> tuple[Path, ...]:
    folders = tuple(Path(part) for part in (text or "").split(os.pathsep) if part)
    if not all(folder.is_absolute() for folder in folders):
        raise SettingsError(
            f"DESKBRIDGE_FILE_FOLDERS is {text!r}; it takes absolute paths, separated by colons"
        )
    return folders


def _display(text: str | None) -> str | None:
    if not text:
        return None
    number = text.removeprefix(":")
    if not number.isascii() or not number.isdigit():
        raise SettingsError(f"DESKBRIDGE_DISPLAY is {text!r}; it takes a local display such as :42")
    return f":{int(number)}"
