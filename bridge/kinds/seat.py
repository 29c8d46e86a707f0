"""Kinds about the seat itself: pictures, sign-in, restarts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bridge.kinds.base import DISPLAY_AND_APP, Kind, Params
from bridge.model import Effect, Need, Priority


class ScreenRegion(Params):
    """A rectangle in pixels."""

    x: int = Field(ge=0)
    y: int = Field(ge=0)
    width: int = Field(gt=0)
    height: int = Field(gt=0)


class Screenshot(Params):
    """What to take a picture of; the whole screen by default."""

    window: str | None = Field(
        default=None, max_length=200, description="a window of the app, by its exact title"
    )
    region: ScreenRegion | None = None
    format: str = Field(default="png", pattern="^(png|jpeg)$")


class RestartApp(Params):
    """Stop the app and start it anew."""

    force: bool = Field(default=False, description="also while somebody signs in")


class Autofix(Params):
    """Mend what a check of the diagnosis found."""

    check: Literal["app_running", "app_window", "app_responding", "wechat_running", "keyboard"]


class Logout(Params):
    """Sign the account out."""


class CaptureQr(Params):
    """Take the QR code off the app's sign-in screen."""


SCREENSHOT = Kind(
    name="screenshot",
    title="Take a screenshot",
    path="/screenshot",
    params=Screenshot,
    priority=Priority.LOW,
    wait_timeout_ms=10_000,
    effect=Effect.READ,
    needs=DISPLAY_AND_APP,
    picture=True,
)
RESTART_APP = Kind(
    name="restart_app",
    title="Restart the app",
    path="/app/restart",
    aliases=("/wechat/restart",),
    params=RestartApp,
    priority=Priority.CRITICAL,
    wait_timeout_ms=60_000,
    effect=Effect.IDEMPOTENT,
    needs=frozenset({Need.DISPLAY}),
    timeout=60.0,
)
AUTOFIX = Kind(
    name="autofix",
    title="Mend what a check found",
    path="/diagnostic/autofix/{check}",
    params=Autofix,
    priority=Priority.CRITICAL,
    wait_timeout_ms=30_000,
    effect=Effect.IDEMPOTENT,
    needs=frozenset({Need.DISPLAY}),
    timeout=60.0,
)
LOGOUT = Kind(
    name="logout",
    title="Sign out",
    path="/login/logout",
    params=Logout,
    priority=Priority.HIGH,
    wait_timeout_ms=30_000,
    effect=Effect.IDEMPOTENT,
    needs=DISPLAY_AND_APP,
)
CAPTURE_QR = Kind(
    name="capture_qr",
    title="Show the sign-in code",
    path="/login/qr/start",
    params=CaptureQr,
    priority=Priority.HIGH,
    wait_timeout_ms=15_000,
    effect=Effect.READ,
    needs=DISPLAY_AND_APP,
)
KINDS = (SCREENSHOT, RESTART_APP, AUTOFIX, LOGOUT, CAPTURE_QR)
