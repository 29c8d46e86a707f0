"""The OpenAPI document describes the routes that exist, and refers to nothing that does not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import trio
from quart_trio import QuartTrio

from routes.app import make_app
from tests.support.fakecore import FakeCore
from tests.support.serving import serving


async def fetch() -> dict[str, Any]:
    with trio.fail_after(10):
        async with serving(FakeCore()) as site, site.http() as client:
            answer = await client.get("/api/openapi.json")
            assert answer.status_code == 200
            document: dict[str, Any] = answer.json()
            return document


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from nodes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from nodes(inner)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield path, method, operation


async def test_required_parts_are_there() -> None:
    document = await fetch()
    assert re.fullmatch(r"3\.1\.\d+", document["openapi"])
    assert document["info"]["title"]
    assert document["info"]["version"]
    for _, method, operation in operations(document):
        assert method in {"get", "post"}
        assert operation["responses"]
        for response in nodes(operation["responses"]):
            if "content" in response:
                assert response["description"]
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(ids) == len(set(ids))


async def test_every_reference_leads_somewhere() -> None:
    document = await fetch()
    references = [node["$ref"] for node in nodes(document) if "$ref" in node]
    assert references
    for reference in references:
        target: Any = document
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        assert isinstance(target, dict)


async def test_names_in_paths_are_parameters() -> None:
    for path, _, operation in operations(await fetch()):
        named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
        assert named == set(re.findall(r"\{(\w+)\}", path))


async def test_it_lists_the_routes_that_exist() -> None:
    document = await fetch()
    described = {(path, method.upper()) for path, method, _ in operations(document)}
    app: Any = make_app(FakeCore(), hosts=frozenset(), grace=1.0)._app
    assert isinstance(app, QuartTrio)
    existing = {
        (re.sub(r"<(\w+)>", r"{\1}", rule.rule), method)
        for rule in app.url_map.iter_rules()
        if not rule.websocket
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    assert described == existing - {("/api/openapi.json", "GET")}


async def test_health_needs_no_token_and_the_rest_does() -> None:
    document = await fetch()
    assert document["security"] == [{"token": []}]
    free = {path for path, _, operation in operations(document) if operation.get("security") == []}
    assert free == {"/healthz", "/readyz"}


async def test_params_of_a_kind_are_its_model() -> None:
    document = await fetch()
    content = document["paths"]["/api/send/text"]["post"]["requestBody"]["content"]
    name = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema = document["components"]["schemas"][name]
    assert schema["required"] == ["to", "text"]
    assert schema["additionalProperties"] is False
    assert "$defs" not in json.dumps(document)
