"""Who may ask: the token, and the name under which the server was called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from quart import g, request, websocket
from quart_trio import QuartTrio

from bridge.errors import BridgeError
from routes.core_api import CoreApi

PROTOCOL = "deskbridge"
"""The WebSocket subprotocol of the events."""

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_OPEN = frozenset({"/healthz", "/readyz"})
_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<name>[^\[\]:]+))(?::[0-9]{1,5})?")
_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and by what means. What a caller may do will hang on this."""

    by: str


def host_name(value: str | None) -> str | None:
    """The name in a `Host` header, lower case, without port; None when it makes no sense."""
    match = _HOST.fullmatch(value or "")
    if match is None:
        return None
    return (match["v6"] or match["name"]).lower()


def bearer(authorization: str | None) -> str | None:
    """The token of an `Authorization` header."""
    match = _BEARER.fullmatch(authorization or "")
    return match[1] if match else None


def subprotocol(offered: Sequence[str]) -> tuple[str | None, str | None]:
    """The token among the offered subprotocols, and the one to answer with.

    A browser cannot set headers on a WebSocket, so it offers `deskbridge` and `bearer.<token>`.
    A query value would do as well, but those lie about in logs and histories.
    """
    tokens = [name.removeprefix("bearer.") for name in offered if name.startswith("bearer.")]
    if PROTOCOL in offered:
        return (tokens[0] if tokens else None), PROTOCOL
    return (tokens[0], f"bearer.{tokens[0]}") if tokens else (None, None)


class Guard:
    """Lets in who knows a token and came by a known name."""

    def __init__(self, core: CoreApi, hosts: frozenset[str]) -> None:
        self._core = core
        self._hosts = _LOCAL | {host.lower() for host in hosts}

    def check_host(self, host: str | None) -> None:
        """Refuse a page on another host whose name was made to point here."""
        if host_name(host) not in self._hosts:
            raise BridgeError(
                "FORBIDDEN", "this server does not answer to that Host", executed=False
            )

    def check_origin(self, origin: str | None, host: str | None) -> None:
        """Refuse a page of another site: a browser says where a request comes from."""
        if origin is not None and origin.partition("://")[2].lower() != (host or "").lower():
            raise BridgeError(
                "FORBIDDEN", "this server does not take orders from that Origin", executed=False
            )

    def check_token(self, token: str | None) -> Caller:
        """The caller with this token. Raises UNAUTHORIZED."""
        if token is None:
            raise BridgeError("UNAUTHORIZED", "send Authorization: Bearer <token>", executed=False)
        if not self._core.check_token(token):
            raise BridgeError("UNAUTHORIZED", "the token is not known here", executed=False)
        return Caller("token")

    def install(self, app: QuartTrio) -> None:
        """Stand before every route of `app`."""

        async def before_request() -> None:
            host = request.headers.get("Host")
            self.check_host(host)
            if request.method not in _READS:
                self.check_origin(request.headers.get("Origin"), host)
            if request.path not in _OPEN:
                g.caller = self.check_token(bearer(request.headers.get("Authorization")))

        async def before_websocket() -> None:
            host = websocket.headers.get("Host")
            self.check_host(host)
            self.check_origin(websocket.headers.get("Origin"), host)
            token, g.subprotocol = subprotocol(websocket.requested_subprotocols)
            g.caller = self.check_token(bearer(websocket.headers.get("Authorization")) or token)

        app.before_request(before_request)
        app.before_websocket(before_websocket)
