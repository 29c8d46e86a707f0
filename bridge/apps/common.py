"""Flows that do not depend on the app."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.apps.base import Found, Verdict
from bridge.errors import BridgeError
from bridge.flow import Flow, FlowContext, VerifyContext
from bridge.hands import Hands
from bridge.kinds import Autofix, RestartApp, Screenshot
from bridge.model import Json
from ui_backends.base import OutOfBounds, Region, WindowId

PICTURE = "picture"
"""The name under which a picture that is a result is kept."""


class TakeScreenshot:
    """A picture of the screen, of a window by its title, or of a region."""

    async def run(self, ctx: FlowContext[Screenshot]) -> Mapping[str, Json]:
        """Take the picture and keep it."""
        params = ctx.params
        window = None if params.window is None else await _by_title(ctx.hands, params.window)
        region = params.region
        try:
            picture = await ctx.hands.capture(
                window,
                None if region is None else Region(region.x, region.y, region.width, region.height),
            )
        except BridgeError as error:
            if isinstance(error.__cause__, OutOfBounds):
                raise BridgeError("INVALID_REQUEST", f"region: {error.detail}") from error
            raise
        await ctx.save(PICTURE, picture)
        return {"width": picture.width, "height": picture.height, "format": params.format}

    async def verify(self, ctx: VerifyContext[Screenshot]) -> Verdict:
        """There is nothing to look for."""
        return Verdict(Found.NOT_DONE)


async def _by_title(hands: Hands, title: str) -> WindowId:
    found = [w for w in await hands.windows() if w.viewable and w.title == title]
    if not found:
        raise BridgeError(
            "WINDOW_NOT_FOUND", f"no window is titled {title!r}; leave `window` out for the screen"
        )
    return max(found, key=lambda w: w.region.width * w.region.height).id


RESTART_DEAD_WINDOW = 8.0
"""Seconds that waited actions fail fast for once a restart was asked for (at most)."""


class Restart:
    """Stop the app and start it anew, through the seat's restarter."""

    async def run(self, ctx: FlowContext[RestartApp]) -> Mapping[str, Json]:
        """Restart and answer with the new pid."""
        pid = await ctx.control.restart_app(dead_for=RESTART_DEAD_WINDOW, force=ctx.params.force)
        return {"pid": pid}

    async def verify(self, ctx: VerifyContext[RestartApp]) -> Verdict:
        """There is nothing to look for."""
        return Verdict(Found.NOT_DONE)


AUTOFIX_DEAD_WINDOW = 15.0
"""The same when a check's finding is mended."""


class Mend:
    """What can be mended without asking: the app is restarted, stuck keys are released."""

    async def run(self, ctx: FlowContext[Autofix]) -> Mapping[str, Json]:
        """Mend it and say what was done."""
        if ctx.params.check == "keyboard":
            return {"released": await ctx.hands.release_all()}
        pid = await ctx.control.restart_app(dead_for=AUTOFIX_DEAD_WINDOW, force=False)
        return {"pid": pid}

    async def verify(self, ctx: VerifyContext[Autofix]) -> Verdict:
        """There is nothing to look for."""
        return Verdict(Found.NOT_DONE)


COMMON_FLOWS: Mapping[str, Flow[Any]] = {
    "screenshot": TakeScreenshot(),
    "restart_app": Restart(),
    "autofix": Mend(),
}
"""Flows of every app, unless its adapter has its own."""
