"""The OpenAPI 3.1 document, made from the kinds and their models."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from quart import Response, jsonify
from quart_trio import QuartTrio

from bridge.kinds import Kind
from bridge.model import Effect, LoginState, Priority, State
from routes.core_api import CoreApi

_REF = "#/components/schemas/"


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": _REF + name}


def _json(schema: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


def _maybe(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": [kind, "null"], **more}


_TIME = _maybe("string", format="date-time")
_TEXT = {"type": "string"}
_WHOLE = {"type": "integer"}
_FREE = {"type": "object"}

_STEP = _object(
    "name at ms ok",
    name=_TEXT,
    at={"type": "string", "format": "date-time"},
    ms={"type": "number"},
    ok={"type": "boolean"},
    detail=_TEXT,
)
_WAITING = _object("reason", reason=_TEXT, until=_TIME, ahead=_maybe("integer"), eta=_TIME)
_ACTION = _object(
    "id seat owner kind params priority state effect attempt revision created_at trace_id",
    id=_TEXT,
    seat=_TEXT,
    owner=_TEXT,
    kind=_TEXT,
    params=_FREE,
    priority={"enum": [priority.name for priority in Priority]},
    state={"enum": [state.value for state in State]},
    effect={"enum": [effect.value for effect in Effect]},
    attempt=_WHOLE,
    max_attempts=_WHOLE,
    idempotency_key=_maybe("string"),
    coalesce_key=_maybe("string"),
    batch_id=_maybe("string"),
    delay_ms=_maybe("integer"),
    not_before=_TIME,
    expires_at=_TIME,
    start_by=_TIME,
    created_at={"type": "string", "format": "date-time"},
    started_at=_TIME,
    finished_at=_TIME,
    revision=_WHOLE,
    trace_id=_TEXT,
    steps={"type": "array", "items": _ref("Step")},
    evidence=_FREE,
    result=_maybe("object"),
    error=_maybe("object"),
    waiting=_ref("Waiting"),
)
_LOGIN_STATE = {"enum": [state.value for state in LoginState]}
_LOGIN = _object(
    "state account evidence", state=_LOGIN_STATE, account=_maybe("string"), evidence=_FREE
)
_CHECK = _object(
    "check status detail advice data ms",
    check=_TEXT,
    status={"enum": ["ok", "warning", "failed"]},
    detail=_TEXT,
    advice=_maybe("string"),
    data=_FREE,
    ms={"type": "number"},
)
_PROBLEM = _object(
    "type title status code detail trace_id",
    type=_TEXT,
    title=_TEXT,
    status=_WHOLE,
    code=_TEXT,
    detail=_TEXT,
    retry_after=_maybe("integer"),
    trace_id=_TEXT,
    action_id=_maybe("string"),
    executed={"enum": [True, False, "running", None]},
)
_PAGE = _object(
    "actions total page per_page epoch revision",
    actions={"type": "array", "items": _ref("Action")},
    total=_WHOLE,
    page=_WHOLE,
    per_page=_WHOLE,
    epoch=_TEXT,
    revision=_WHOLE,
)
_ANSWER = _object("action", action=_ref("Action"), result=_maybe("object"))

_PROBLEM_RESPONSE = {
    "description": "It ended otherwise than asked.",
    "content": {"application/problem+json": {"schema": _ref("Problem")}},
}
_PREFER = {
    "name": "Prefer",
    "in": "header",
    "description": "`respond-async` answers once the action is stored; `wait=N` waits N seconds.",
    "schema": _TEXT,
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Equal requests with the same key are one action.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 191, "pattern": "^[!-~]+$"},
}
_IF_MATCH = {"name": "If-Match", "in": "header", "required": True, "schema": _TEXT}


def _query(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": dict(schema)}


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": _TEXT}


def _operation(id: str, summary: str, answer: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "operationId": id,
        "summary": summary,
        "responses": {"200": dict(answer), "default": {"$ref": "#/components/responses/Problem"}},
        **more,
    }


def _model(kind: Kind, schemas: dict[str, Any]) -> str:
    """Put the kind's params into `schemas`; returns their name there."""
    schema = kind.params.model_json_schema(ref_template=_REF + "{model}")
    schemas |= schema.pop("$defs", {})
    name = kind.params.__name__
    schemas[name] = schema
    return name


def _creation(kind: Kind, path: str, id: str, schemas: dict[str, Any]) -> dict[str, Any]:
    picture = {"description": "The picture.", "content": {"image/png": {}, "image/jpeg": {}}}
    operation = _operation(
        id,
        kind.title,
        picture if kind.picture else _json(_ref("Answer"), "It is done."),
        parameters=[_KEY, _PREFER, *map(_in_path, re.findall(r"\{(\w+)\}", path))],
        requestBody={
            "required": bool(kind.params.model_json_schema().get("required")),
            "content": {"application/json": {"schema": _ref(_model(kind, schemas))}},
        },
    )
    accepted = _json(_object("action", action=_ref("Action")), "It is stored and waits.")
    accepted["headers"] = {"Location": {"schema": _TEXT}}
    operation["responses"]["202"] = accepted
    return operation


def _fixed_paths() -> dict[str, Any]:
    one = _json(_object("action", action=_ref("Action")), "The action.")
    listed = _operation(
        "list_actions",
        "The queue, newest first",
        _json(_ref("Page"), "One page."),
        parameters=[
            *(_query(name, _TEXT) for name in ("state", "kind", "owner", "q")),
            _query("page", {"type": "integer", "minimum": 1, "default": 1}),
            _query("per_page", {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}),
        ],
    )
    read = _operation(
        "read_action",
        "One action",
        one,
        parameters=[_in_path("id"), _query("wait", {"type": "number", "minimum": 0})],
    )
    cancel = _operation(
        "cancel_action", "Cancel an action", one, parameters=[_in_path("id"), _IF_MATCH]
    )
    login = _json(_ref("Login"), "The sign-in state.")
    login_wait = _operation(
        "login_wait",
        "The sign-in state once it changes",
        login,
        parameters=[
            _query("state", _LOGIN_STATE),
            _query("timeout", {"type": "number", "minimum": 0, "maximum": 60, "default": 25}),
        ],
    )
    checks = _object(
        "status checks",
        status={"enum": ["ok", "warning", "failed"]},
        checks={"type": "array", "items": _ref("Check")},
    )
    metrics = {"description": "Prometheus exposition.", "content": {"text/plain": {}}}
    free = _json(_FREE, "What is asked for.")
    health: dict[str, Any] = {"security": []}
    return {
        "/api/actions": {"get": listed},
        "/api/actions/{id}": {"get": read},
        "/api/actions/{id}/cancel": {"post": cancel},
        "/api/queue": {"get": _operation("queue", "Counts, and what holds the queue", free)},
        "/api/status": {"get": _operation("status", "The figures of the bridge", free)},
        "/api/login": {"get": _operation("login", "The sign-in state, as last read", login)},
        "/api/login/qr/wait": {"get": login_wait},
        "/api/diagnostic": {
            "get": _operation("diagnostic", "All checks", _json(checks, "What they found."))
        },
        "/api/diagnostic/run/{check}": {
            "get": _operation(
                "diagnostic_run",
                "One check",
                _json(_ref("Check"), "What it found."),
                parameters=[_in_path("check")],
            )
        },
        "/api/hands-on/acquire": {
            "post": _operation("hands_on_acquire", "Take the seat, or renew the lease", free)
        },
        "/api/hands-on/release": {
            "post": _operation("hands_on_release", "Give the seat back", free)
        },
        "/api/kinds": {"get": _operation("kinds", "What can be asked for", free)},
        "/metrics": {"get": _operation("metrics", "The figures for Prometheus", metrics)},
        "/healthz": {"get": _operation("healthz", "The server answers", free, **health)},
        "/readyz": {"get": _operation("readyz", "Display and app are up", free, **health)},
    }


def document(kinds: Mapping[str, Kind]) -> dict[str, Any]:
    """The whole document."""
    schemas: dict[str, Any] = {
        "Action": _ACTION,
        "Answer": _ANSWER,
        "Check": _CHECK,
        "Login": _LOGIN,
        "Page": _PAGE,
        "Problem": _PROBLEM,
        "Step": _STEP,
        "Waiting": _WAITING,
    }
    paths = _fixed_paths()
    for kind in kinds.values():
        for number, path in enumerate((kind.path, *kind.aliases)):
            id = kind.name if number == 0 else f"{kind.name}_{number}"
            paths[f"/api{path}"] = {"post": _creation(kind, path, id, schemas)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "deskbridge",
            "version": version("deskbridge"),
            "description": "An HTTP API for a desktop chat app. Events: WebSocket `/api/events`.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {"Problem": _PROBLEM_RESPONSE},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def install(app: QuartTrio, core: CoreApi) -> None:
    """Add the route."""
    text = document(core.kinds)

    async def openapi() -> Response:
        return jsonify(text)

    app.add_url_rule("/api/openapi.json", "openapi", openapi, methods=["GET"])
