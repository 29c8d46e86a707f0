"""Routes that only look: queue, status, sign-in, kinds, metrics, health."""

from __future__ import annotations

from quart import Response, jsonify, request
from quart_trio import QuartTrio

from bridge.model import LoginState
from routes import headers, render
from routes.core_api import CoreApi

MAX_LOGIN_WAIT = 60.0
"""Seconds that one request may wait for the sign-in to change."""


class Reads:
    """The handlers."""

    def __init__(self, core: CoreApi) -> None:
        self._core = core

    async def queue(self) -> Response:
        """Counts, and what holds the queue."""
        return jsonify(await self._core.queue())

    async def status(self) -> Response:
        """The figures of the bridge."""
        return jsonify(await self._core.status())

    async def login(self) -> Response:
        """The sign-in state, as last read."""
        return jsonify(render.shown(await self._core.login()))

    async def login_wait(self) -> Response:
        """The sign-in state once it is no longer `state`, at the latest after `timeout` seconds."""
        strange = set(request.args) - {"state", "timeout"}
        if strange:
            raise headers.invalid(f"unknown query value: {', '.join(sorted(strange))}"[:300])
        state = request.args.get("state")
        if state is not None and state not in set(LoginState):
            raise headers.invalid(f"state takes one of {', '.join(LoginState)}")
        timeout = headers.seconds(request.args.get("timeout", "25"), "timeout", MAX_LOGIN_WAIT)
        return jsonify(render.shown(await self._core.login_wait(state, timeout)))

    async def kinds(self) -> Response:
        """What this bridge can be asked to do."""
        supports = self._core.supports
        return jsonify(
            kinds=[
                render.kind(kind, supported=supports(kind.name))
                for kind in self._core.kinds.values()
            ]
        )

    async def metrics(self) -> Response:
        """The figures for Prometheus."""
        data, media_type = await self._core.metrics()
        return Response(data, content_type=media_type)

    async def healthz(self) -> Response:
        """The server answers."""
        return jsonify(status="ok")

    async def readyz(self) -> Response:
        """Whether actions can be carried out now; 503 when not."""
        ready, particulars = await self._core.ready()
        response = jsonify({"ready": ready, **render.shown(particulars)})
        response.status_code = 200 if ready and not self._core.closing.is_set() else 503
        return response


def install(app: QuartTrio, core: CoreApi) -> None:
    """Add the routes."""
    reads = Reads(core)
    for path, view in {
        "/api/queue": reads.queue,
        "/api/status": reads.status,
        "/api/login": reads.login,
        "/api/login/qr/wait": reads.login_wait,
        "/api/kinds": reads.kinds,
        "/metrics": reads.metrics,
        "/healthz": reads.healthz,
        "/readyz": reads.readyz,
    }.items():
        app.add_url_rule(path, view.__name__, view, methods=["GET"])
