"""The JSON body of a request: bounded, well-formed, and a valid set of params."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from pydantic import ValidationError

from bridge.errors import BridgeError
from bridge.kinds import Kind
from routes.headers import invalid

MAX_BODY = 1024 * 1024
"""Bytes that the body of a request may have."""

MAX_DEPTH = 32


def malformed(detail: str) -> BridgeError:
    """INVALID_REQUEST with status 400: this is not JSON."""
    return BridgeError("MALFORMED_JSON", detail, executed=False)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member appears twice")
    return members


def parse(data: bytes) -> Any:
    """The JSON value in `data` (UTF-8). Raises INVALID_REQUEST."""
    try:
        value = json.loads(
            data.decode("utf-8"), parse_constant=_no_constant, object_pairs_hook=_no_twins
        )
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise malformed(f"the body is not JSON: {error}"[:300]) from error
    _look_through(value)
    return value


def _too_deep() -> BridgeError:
    return malformed(f"the body is nested deeper than {MAX_DEPTH} levels")


def _look_through(value: Any) -> None:
    """Refuse what is too deep, and text that cannot be stored or typed."""
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                _check_text(item)
            elif isinstance(item, dict):
                for key in item:
                    _check_text(key)
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        if not below:
            return
        level = below
    raise _too_deep()


def _check_text(text: str) -> None:
    if "\0" in text:
        raise invalid("a text holds the character U+0000, which nobody can type")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise malformed("a text holds half of a surrogate pair") from error


def members(data: bytes, content_type: str) -> dict[str, Any]:
    """The JSON object of a body; empty for an empty body. Raises INVALID_REQUEST."""
    if not data:
        return {}
    if content_type != "application/json" and not content_type.endswith("+json"):
        raise invalid("send JSON, and say so: Content-Type: application/json")
    value = parse(data)
    if not isinstance(value, dict):
        raise invalid("the body must be a JSON object")
    return value


def params(kind: Kind, given: Mapping[str, Any]) -> dict[str, Any]:
    """Params as they are stored, every default filled in.

    Raises INVALID_REQUEST with `errors`: a list of `{loc, msg, type}`.
    """
    try:
        return kind.params.model_validate(dict(given)).model_dump(mode="json", by_alias=True)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        errors = [
            {"loc": list(item["loc"]), "msg": item["msg"], "type": item["type"]} for item in found
        ][:50]
        first = errors[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise BridgeError(
            "INVALID_REQUEST",
            f"{where}: {first['msg']}"[:300],
            executed=False,
            extra={"errors": errors},
        ) from error
