"""Errors as `application/problem+json` (RFC 9457), for every status and every path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from quart import Response, g
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from bridge.errors import STATUS, BridgeError
from bridge.model import Action, State

MEDIA_TYPE = "application/problem+json"

_BY_STATUS: Mapping[int, str] = {
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    413: "PAYLOAD_TOO_LARGE",
}
_BY_STATE: Mapping[State, tuple[str, str]] = {
    State.CANCELLED: ("CANCELLED", "the action was cancelled"),
    State.EXPIRED: ("EXPIRED", "the action was still waiting when its time ran out"),
    State.SUPERSEDED: ("SUPERSEDED", "a newer action with the same coalesce key took its place"),
    State.UNCERTAIN: ("UNCERTAIN", "nothing tells whether the effect happened; look in the app"),
    State.FAILED: ("INTERNAL", "the action failed without saying why"),
}

log = structlog.get_logger(__name__)


def document(error: BridgeError, *, trace_id: str, status: int | None = None) -> dict[str, Any]:
    """The members of the problem document; `status` overrides the code's own."""
    code = "INVALID_REQUEST" if error.code == "MALFORMED_JSON" else error.code
    number = error.status if status is None else status
    return {
        **error.extra,
        "type": "about:blank",
        "title": HTTPStatus(number).phrase,
        "status": number,
        "code": code,
        "detail": error.detail,
        "retry_after": error.retry_after,
        "trace_id": trace_id,
        "action_id": error.action_id,
        "executed": error.executed,
    }


def response(error: BridgeError, *, status: int | None = None) -> Response:
    """The answer that tells of `error`."""
    members = document(error, trace_id=g.get("trace_id", ""), status=status)
    answer = Response(
        json.dumps(members, ensure_ascii=False), status=members["status"], mimetype=MEDIA_TYPE
    )
    if error.retry_after is not None:
        answer.headers["Retry-After"] = str(error.retry_after)
    if members["status"] == HTTPStatus.UNAUTHORIZED:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="deskbridge"'
    return answer


def of_action(action: Action) -> BridgeError:
    """The error that a waiting caller is told when `action` ended otherwise than well."""
    code, detail = _BY_STATE[action.state]
    if action.error is None:
        return BridgeError(code, detail, action_id=action.id)
    error = BridgeError.from_json(action.error, action_id=action.id)
    if action.state is State.UNCERTAIN:
        error.executed = None
    if error.code not in STATUS or (action.state is State.UNCERTAIN and error.code != code):
        error.extra["cause"] = error.code
        error.code = code
    return error


def of_http(error: HTTPException) -> Response:
    """The answer for an error that the web framework found."""
    status = error.code or 500
    if status < HTTPStatus.BAD_REQUEST:
        return error.get_response()  # type: ignore[return-value]
    fallback = "INTERNAL" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "INVALID_REQUEST"
    code = _BY_STATUS.get(status, fallback)
    answer = response(BridgeError(code, error.description or error.name), status=status)
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        answer.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return answer


def install(app: QuartTrio) -> None:
    """Make every error of `app` a problem document."""

    async def of_bridge(error: BridgeError) -> Response:
        return response(error)

    async def of_web(error: HTTPException) -> Response:
        return of_http(error)

    async def of_bug(error: Exception) -> Response:
        log.error("request failed", trace_id=g.get("trace_id", ""), exc_info=error)
        return response(BridgeError("INTERNAL", "the bridge failed on this request; see its log"))

    app.register_error_handler(BridgeError, of_bridge)
    app.register_error_handler(HTTPException, of_web)
    app.register_error_handler(Exception, of_bug)
