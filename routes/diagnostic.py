"""The diagnosis: what is well on this bridge, what is not, and what to do about it."""

from __future__ import annotations

from quart import Response, jsonify
from quart_trio import QuartTrio

from routes.core_api import CoreApi


class DiagnosticRoutes:
    """The handlers. Unlike the other reads they look for themselves, which takes seconds."""

    def __init__(self, core: CoreApi) -> None:
        self._core = core

    async def diagnostic(self) -> Response:
        """Every check."""
        return jsonify(await self._core.diagnose(None))

    async def diagnostic_run(self, check: str) -> Response:
        """One check."""
        return jsonify(await self._core.diagnose(check))


def install(app: QuartTrio, core: CoreApi) -> None:
    """Add the routes."""
    it = DiagnosticRoutes(core)
    app.add_url_rule("/api/diagnostic", "diagnostic", it.diagnostic, methods=["GET"])
    app.add_url_rule(
        "/api/diagnostic/run/<check>", "diagnostic_run", it.diagnostic_run, methods=["GET"]
    )
