"""A person takes the seat and gives it back."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from quart import Response, jsonify, request
from quart_trio import QuartTrio

from routes import body
from routes.core_api import CoreApi
from routes.headers import invalid

M = TypeVar("M", bound=BaseModel)


class Acquire(BaseModel):
    """Who takes the seat; with the id of a lease, that lease is renewed."""

    model_config = ConfigDict(extra="forbid")
    lease: str | None = Field(default=None, max_length=64)
    who: str = Field(default="a person", min_length=1, max_length=100)


class Release(BaseModel):
    """Which lease ends; without one, whoever has the seat loses it."""

    model_config = ConfigDict(extra="forbid")
    lease: str | None = Field(default=None, max_length=64)


class HandsOnRoutes:
    """The handlers."""

    def __init__(self, core: CoreApi) -> None:
        self._core = core

    async def acquire(self) -> Response:
        """Freeze the queue for a person, once the running flow has ended."""
        asked = await _read(Acquire)
        return jsonify(await self._core.acquire_hands_on(asked.lease, asked.who))

    async def release(self) -> Response:
        """Let the queue go on."""
        asked = await _read(Release)
        return jsonify(await self._core.release_hands_on(asked.lease))


async def _read(model: type[M]) -> M:
    data = await request.get_data(True, False, False)
    try:
        return model.model_validate(body.members(data, request.mimetype))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise invalid(f"{where}: {first['msg']}") from error


def install(app: QuartTrio, core: CoreApi) -> None:
    """Add the routes."""
    hands_on = HandsOnRoutes(core)
    for name in ("acquire", "release"):
        view = getattr(hands_on, name)
        app.add_url_rule(f"/api/hands-on/{name}", f"hands_on_{name}", view, methods=["POST"])
