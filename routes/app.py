"""The app: every route, guarded, logged, and telling its errors as problem details."""

from __future__ import annotations

from typing import Any

from quart_trio import QuartTrio

from routes import actions, diagnostic, events, hands_on, openapi, problems, reads, request_log
from routes.auth import Guard
from routes.body import MAX_BODY
from routes.core_api import CoreApi
from routes.request_log import RequestLog


def make_app(core: CoreApi, *, hosts: frozenset[str], grace: float) -> Any:
    """The ASGI app.

    `hosts` are the names it answers to beside the local ones; `grace` the seconds that waiting
    callers are left when the core is closing.
    """
    app = QuartTrio("deskbridge", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BODY
    # Sends are bounded per connection; a stream may last.
    app.config["RESPONSE_TIMEOUT"] = None
    app.config["BODY_TIMEOUT"] = 20
    app.json.ensure_ascii = False  # type: ignore[attr-defined]
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = True
    problems.install(app)
    request_log.install(app)
    Guard(core, hosts).install(app)
    actions.install(app, core, grace=grace)
    reads.install(app, core)
    hands_on.install(app, core)
    diagnostic.install(app, core)
    events.install(app, core)
    openapi.install(app, core)
    return RequestLog(app)
