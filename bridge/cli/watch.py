"""`deskbridge watch`: the queue live on a terminal, or its events as lines.

Three tasks: one follows the event feed across reconnects, one reads the lists again when
events say that something changed, one draws.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TextIO

import httpx
import trio
from rich.console import Console
from rich.live import Live
from trio_websocket import HandshakeError

from bridge.cli.board import FINAL, WAITING, Board, told
from bridge.cli.client import of_response
from bridge.cli.draw import clean, clock, draw
from bridge.cli.problem import CliError, Exit
from bridge.cli.target import Target, Whereabouts
from bridge.clock import rfc3339
from bridge.wsclient import Feed, FeedRefused, pause

READ_AGAIN = 0.3
"""Seconds between two readings of the lists, however many events come."""

UNASKED = 2.0
"""Seconds after which the lists are read without an event: reasons to wait change silently."""

REDRAW = 0.25
PAGE = 10


def watch(options: Namespace, where: Whereabouts) -> Exit:
    """Run until interrupted; with `--once`, show the state and end."""
    watcher = Watcher(where, _reporter(options))
    with suppress(KeyboardInterrupt):
        try:
            trio.run(watcher.once if options.once else watcher.run)
        except BaseExceptionGroup as group:
            raise _single(group) from group
    return Exit.OK


def _single(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error that ended the tasks; the group when they ended by several."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup) and len(found.exceptions) == 1:
        found = found.exceptions[0]
    return found


def _reporter(options: Namespace) -> Reporter:
    if options.json:
        return JsonLines(sys.stdout)
    console = Console(highlight=False)
    if options.once or not console.is_terminal or console.is_dumb_terminal:
        return PlainLines(console)
    return Screen(console)


class Reporter:
    """How what happens is shown. The base shows nothing."""

    wants_lists = True
    """Whether the lists are read at all."""

    async def run(self, board: Board) -> None:
        """Show the board again and again, until cancelled."""

    def message(self, board: Board, event: Mapping[str, Any]) -> None:
        """An event, the hello, or a change of the connection."""

    def state(self, board: Board) -> None:
        """The whole state, once."""


class JsonLines(Reporter):
    """One JSON document per event and line, as the bridge sent it."""

    wants_lists = False

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def message(self, board: Board, event: Mapping[str, Any]) -> None:
        """One line."""
        self._line(event)

    def state(self, board: Board) -> None:
        """The state as one document."""
        self._line({"type": "state", "seats": board.seats, "queue": board.queue})

    def _line(self, document: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n")
        self._out.flush()


class PlainLines(Reporter):
    """Sentences, one a line: for a file, a pipe, or a terminal that cannot move its cursor."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def message(self, board: Board, event: Mapping[str, Any]) -> None:
        """One line."""
        if event.get("type") == "hello":
            self._console.print(f"{clock(now_ms())} connected to {clean(board.base)}", markup=False)
            return
        action = event.get("action")
        about = f" {clean(board.name(action))} {action}" if action else ""
        line = f"{clock(now_ms())} {clean(told(event), 160)}{about}"
        self._console.print(line, markup=False, soft_wrap=True)

    def state(self, board: Board) -> None:
        """The board."""
        self._console.print(draw(board, now=now_ms()))


class Screen(Reporter):
    """The board on the whole terminal, redrawn as it changes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    async def run(self, board: Board) -> None:
        """Draw four times a second; the terminal is as before when this ends."""
        with Live(console=self._console, screen=True, auto_refresh=False) as live:
            while True:
                picture = draw(board, now=now_ms(), height=self._console.height)
                live.update(picture, refresh=True)
                await trio.sleep(REDRAW)


def now_ms() -> int:
    """UTC milliseconds."""
    return time.time_ns() // 1_000_000


class Watcher:
    """The tasks around one board."""

    def __init__(self, where: Whereabouts, reporter: Reporter) -> None:
        self._find: Callable[[], Target] = where.find
        self._reporter = reporter
        self._target = self._find()
        self.board = Board(self._target.base)
        self._changed = trio.Event()

    async def run(self) -> None:
        """Show what happens until cancelled. Raises CliError when the token is refused."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._follow)
            nursery.start_soon(self._reporter.run, self.board)
            if self._reporter.wants_lists:
                nursery.start_soon(self._keep_reading)

    async def once(self) -> None:
        """Show the present state. Raises CliError."""
        try:
            await self._read()
        except httpx.HTTPError as error:
            detail = f"no bridge answers at {self._target.base} ({error})"
            raise CliError("UNREACHABLE", detail, Exit.UNREACHABLE) from error
        self.board.live = True
        self._reporter.state(self.board)

    # -- the event feed

    async def _follow(self) -> None:
        feed = Feed(self._target.websocket, self._target.token)
        while True:
            why = "the bridge ended the connection"
            try:
                async with feed.connected() as messages:
                    async for message in messages:
                        self._take(message)
            except FeedRefused as error:
                raise CliError("UNAUTHORIZED", f"no way in: {error}", Exit.REFUSED) from error
            except (HandshakeError, OSError, trio.TooSlowError) as error:
                why = str(error) or type(error).__name__
            self._lost(why)
            await trio.sleep(pause(self.board.tries - 1))
            self._look_up(feed)

    def _look_up(self, feed: Feed) -> None:
        """A bridge that was started anew may have another port."""
        with suppress(CliError):
            self._target = self._find()
            feed.base, feed.token = self._target.websocket, self._target.token
            self.board.base = self._target.base

    def _lost(self, why: str) -> None:
        was_live = self.board.live or self.board.tries == 0
        self.board.lost(why, now_ms())
        if was_live:
            self._tell("connection.lost", detail=why)

    def _take(self, message: Any) -> None:
        if isinstance(message, dict):
            healed = self.board.lost_since is not None
            self.board.connected(message)
            if healed:
                self._tell("connection.healed")
            self._reporter.message(self.board, message)
        else:
            for event in message:
                self.board.see_event(event)
                self._reporter.message(self.board, event)
            if not any(event.get("type") != "action.step" for event in message):
                return
        self._changed.set()

    def _tell(self, kind: str, **data: str) -> None:
        event = {"type": kind, "ts": rfc3339(now_ms()), "data": data}
        self._reporter.message(self.board, event)

    # -- the lists

    async def _keep_reading(self) -> None:
        while True:
            with trio.move_on_after(UNASKED):
                await self._changed.wait()
            self._changed = trio.Event()
            if self.board.live:
                await self._try_to_read()
            await trio.sleep(READ_AGAIN)

    async def _try_to_read(self) -> None:
        """A bridge that is away or busy ending is the feed's to tell; a refused token is not."""
        try:
            await self._read()
        except httpx.HTTPError:
            pass
        except CliError as error:
            if error.exit_status is Exit.REFUSED:
                raise

    async def _read(self) -> None:
        async with httpx.AsyncClient(
            base_url=self._target.base,
            headers={"Authorization": f"Bearer {self._target.token}"},
            trust_env=not self._target.local,
            timeout=10.0,
        ) as client:
            await self._read_lists(client)

    async def _read_lists(self, client: httpx.AsyncClient) -> None:
        board = self.board
        board.see_status(await _get(client, "/api/status"))
        board.see_queue(await _get(client, "/api/queue"))
        running = await _actions(client, ("running",))
        board.see_running(running["actions"], running["revision"])
        rows, total = await _next_up(client)
        board.see_waiting(rows, total)
        if not board.done:
            board.see_done((await _actions(client, FINAL))["actions"])


async def _get(client: httpx.AsyncClient, path: str, params: Any = None) -> dict[str, Any]:
    response = await client.get(path, params=params)
    if not response.is_success:
        raise of_response(response)
    document = response.json()
    return document if isinstance(document, dict) else {}


async def _actions(
    client: httpx.AsyncClient, states: tuple[str, ...], page: int = 1
) -> dict[str, Any]:
    query = [*(("state", state) for state in states), ("page", page), ("per_page", PAGE)]
    return await _get(client, "/api/actions", query)


async def _next_up(client: httpx.AsyncClient) -> tuple[list[dict[str, Any]], int]:
    """The actions that have waited longest (lists show the newest first), and how many wait."""
    first = await _actions(client, WAITING)
    rows, total = list(first["actions"]), int(first["total"])
    last = -(-total // PAGE)
    if last > 1:
        rows = (await _actions(client, WAITING, last))["actions"]
        if last > 2 and len(rows) < PAGE:
            rows = (await _actions(client, WAITING, last - 1))["actions"] + rows
        elif last == 2:
            rows = list(first["actions"]) + rows
    return rows, total
