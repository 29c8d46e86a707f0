"""Routes that make, list, read and cancel actions. A kind's POST route comes from the kind."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import trio
from quart import Response, g, jsonify, request
from quart_trio import QuartTrio

from bridge.core_types import ActionRequest
from bridge.errors import BridgeError
from bridge.kinds import Kind
from bridge.model import Action, State
from routes import body, headers, problems, render
from routes.core_api import CoreApi
from routes.request_log import note, note_priority

T = TypeVar("T")


async def until_closing(
    closing: trio.Event, grace: float, ask: Callable[[], Awaitable[T]]
) -> T | None:
    """What `ask` returns or raises; None if the core is closing and `grace` seconds are over."""
    answer: T | None = None
    failure: BridgeError | None = None

    async def limit(scope: trio.CancelScope) -> None:
        await closing.wait()
        scope.deadline = trio.current_time() + grace

    async with trio.open_nursery() as nursery:
        nursery.start_soon(limit, nursery.cancel_scope)
        try:
            answer = await ask()
        except BridgeError as error:
            failure = error  # raised below, or the nursery would wrap it
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
    return answer


class Actions:
    """The handlers. `grace`: seconds that a waiting caller is left when the core is closing."""

    def __init__(self, core: CoreApi, grace: float) -> None:
        self._core = core
        # Leave the server time to write the answers within its own grace period.
        self._grace = grace * 0.8

    async def create(self, kind: Kind, **parts: str) -> Response:
        """Carry out an action of `kind`; `parts` are params taken from the path."""
        data = await request.get_data(True, False, False)
        wish = self._wish(kind, data, parts)
        note_priority(kind.priority)
        if not self._core.supports(kind.name):
            raise BridgeError(
                "UNSUPPORTED_BY_APP",
                f"the app of this bridge cannot do this: {kind.title}",
                executed=False,
            )
        answer = await until_closing(
            self._core.closing, self._grace, lambda: self._core.submit(wish)
        )
        if answer is None:
            raise _closing(None)
        note("action", answer.action.id)
        return await self._answer(kind, answer.action, wish)

    def _wish(self, kind: Kind, data: bytes, parts: dict[str, str]) -> ActionRequest:
        given = body.members(data, request.mimetype)
        key = headers.idempotency_key(request.headers.get("Idempotency-Key"))
        preference = headers.prefer(request.headers.getlist("Prefer"))
        if self._core.closing.is_set():
            raise _closing(False)
        return ActionRequest(
            kind=kind.name,
            params=body.params(kind, {**given, **parts}),
            idempotency_key=key,
            respond_async=preference.respond_async,
            wait=preference.wait,
            trace_id=g.trace_id,
        )

    async def _answer(self, kind: Kind, action: Action, wish: ActionRequest) -> Response:
        if not action.final:
            response = await self._one(action, status=202)
            response.headers["Location"] = f"/api/actions/{action.id}"
            if wish.respond_async:
                response.headers["Preference-Applied"] = "respond-async"
            return response
        if action.state is not State.SUCCEEDED:
            raise problems.of_action(action)
        if kind.picture:
            data, media_type = await self._core.picture(action)
            response = Response(data, mimetype=media_type)
        else:
            shown = render.action(action)
            response = jsonify(action=shown, result=shown["result"])
        response.headers["X-Action-Id"] = action.id
        return response

    async def _one(self, action: Action, *, status: int = 200) -> Response:
        waiting = None if action.final else await self._core.waiting(action)
        response = jsonify(action=render.action(action, waiting))
        response.status_code = status
        response.headers["ETag"] = f'"{action.revision}"'
        return response

    async def read(self, id: str) -> Response:
        """One action, whatever its state; `?wait=` waits for its end."""
        wait = headers.seconds(request.args.get("wait"))
        action = await until_closing(self._core.closing, 0, lambda: self._core.action(id, wait))
        if action is None:
            action = await self._core.action(id)
        return await self._one(action)

    async def list(self) -> Response:
        """One page of the queue."""
        wanted = headers.filter_of(request.args.to_dict(flat=False), self._core.kinds)
        page = await self._core.actions(wanted)
        rows = [
            render.action(row, None if row.final else await self._core.waiting(row))
            for row in page.actions
        ]
        return jsonify(
            actions=rows,
            total=page.total,
            page=page.page,
            per_page=page.per_page,
            epoch=page.epoch,
            revision=page.revision,
        )

    async def cancel(self, id: str) -> Response:
        """Cancel an action that the caller has seen in its present revision."""
        revision = headers.revision(request.headers.get("If-Match"))
        return await self._one(await self._core.cancel(id, revision=revision))


def _closing(executed: bool | None) -> BridgeError:
    detail = "the bridge is shutting down; try again once it is back"
    if executed is None:
        detail += ", with the same Idempotency-Key if there was one"
    return BridgeError("SHUTTING_DOWN", detail, retry_after=5, executed=executed)


def rule(path: str) -> str:
    """A kind's path as the web framework writes it: `{check}` becomes `<check>`."""
    return "/api" + re.sub(r"\{(\w+)\}", r"<\1>", path)


def install(app: QuartTrio, core: CoreApi, *, grace: float) -> None:
    """Add the routes."""
    handlers = Actions(core, grace)

    def creator(kind: Kind) -> Callable[..., Awaitable[Any]]:
        async def create(**parts: str) -> Response:
            return await handlers.create(kind, **parts)

        return create

    for kind in core.kinds.values():
        view = creator(kind)
        for path in (kind.path, *kind.aliases):
            app.add_url_rule(rule(path), f"create_{kind.name}", view, methods=["POST"])
    app.add_url_rule("/api/actions", "list_actions", handlers.list, methods=["GET"])
    app.add_url_rule("/api/actions/<id>", "read_action", handlers.read, methods=["GET"])
    app.add_url_rule("/api/actions/<id>/cancel", "cancel_action", handlers.cancel, methods=["POST"])
