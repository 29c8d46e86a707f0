"""`watch` against a real server: every event once, across a lost connection."""

from __future__ import annotations

import json
import os
import pty
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import trio

from bridge.core_types import Filter, Page
from tests.support.fakecore import TOKEN, FakeCore
from tests.support.serving import serving, until

LIMIT = 30
COMMAND = (sys.executable, "-c", "from routes.main import main; raise SystemExit(main())")


class Output:
    """What a process has printed so far."""

    def __init__(self) -> None:
        self.text = ""

    @property
    def documents(self) -> list[dict]:
        return [
            json.loads(line) for line in self.text.splitlines(keepends=True) if line[-1] == "\n"
        ]

    @property
    def plain(self) -> str:
        """Without what moves the cursor or sets bold."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.text)

    def types(self) -> list[str]:
        return [one["type"] for one in self.documents]


async def _collect(stream: trio.abc.ReceiveStream, output: Output) -> None:
    rest = b""
    try:
        async for part in stream:
            rest += part
            whole, newline, rest = rest.rpartition(b"\n")
            output.text += (whole + newline).decode()
    except trio.BrokenResourceError:  # how a pseudo-terminal says that its other end is closed
        output.text += rest.decode()


@asynccontextmanager
async def watching(*argv: str, **env: str) -> AsyncIterator[tuple[trio.Process, Output]]:
    """The command as a process, printing into a pipe; interrupted at the end of the block."""
    output = Output()
    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            process = await trio.lowlevel.open_process(
                [*COMMAND, "watch", *argv], stdout=-1, env={**os.environ, **env}
            )
            assert process.stdout is not None
            nursery.start_soon(_collect, process.stdout, output)
            try:
                yield process, output
            finally:
                process.send_signal(2)
                with trio.CancelScope(shield=True):
                    await process.wait()


def where(site_port: int, state: Path) -> tuple[str, str]:
    (state / "port").write_text(f"{site_port}\n")
    (state / "token").write_text(f"{TOKEN}\n")
    return "--state-dir", str(state)


async def test_events_as_lines_across_a_lost_connection(tmp_path: Path):
    core = FakeCore()
    async with serving(core) as site:
        options = where(site.port, tmp_path)
        async with watching("--json", *options) as (process, output):
            await until(lambda: "hello" in output.types())
            core.publish(3)
            await until(lambda: output.types().count("action.queued") == 3)
            core.closing.set()
            await until(lambda: "connection.lost" in output.types())
            again = FakeCore()
            again.seq = core.seq
            async with serving(again) as other:
                where(other.port, tmp_path)
                await until(lambda: output.types()[-1] == "hello")
                again.publish()
                await until(lambda: output.types()[-1] == "action.queued")
                documents = output.documents
    assert process.returncode == 0
    assert again.since == [("e1", 3)]
    assert [one["type"] for one in documents] == [
        "hello",
        *["action.queued"] * 3,
        "connection.lost",
        "connection.healed",
        "hello",
        "action.queued",
    ]
    assert [one["seq"] for one in documents if one["type"] == "action.queued"] == [
        1,
        2,
        3,
        4,
    ]


async def test_a_pipe_gets_plain_sentences(tmp_path: Path):
    core = FakeCore()
    async with serving(core) as site, watching(*where(site.port, tmp_path)) as (_, output):
        await until(lambda: bool(core.feeds))
        core.publish(type="app.dead", action=None, data={"why": "ended"})
        await until(lambda: "app.dead why=ended" in output.text)
    assert "\x1b" not in output.text


async def test_a_bridge_that_comes_later_is_waited_for(tmp_path: Path):
    async with serving(FakeCore()) as gone:
        options = where(gone.port, tmp_path)
    async with watching("--json", *options) as (_, output):
        await until(lambda: output.types() == ["connection.lost"])
        async with serving(FakeCore()) as site:
            where(site.port, tmp_path)
            await until(lambda: output.types() == ["connection.lost", "hello"])


class OldLists(FakeCore):
    """Its lists are always older than its events."""

    async def actions(self, filter: Filter) -> Page:
        return replace(await super().actions(filter), revision=0)


async def test_a_terminal_shows_the_board_and_is_left_as_it_was(tmp_path: Path):
    core = OldLists()
    async with serving(core) as site:
        options = where(site.port, tmp_path)
        output = Output()
        leader, follower = pty.openpty()
        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as nursery:
                process = await trio.lowlevel.open_process(
                    [*COMMAND, "watch", *options],
                    stdin=follower,
                    stdout=follower,
                    env={**os.environ, "TERM": "xterm", "NO_COLOR": "1", "LINES": "30"},
                )
                os.close(follower)
                nursery.start_soon(_collect, trio.lowlevel.FdStream(leader), output)
                try:
                    await until(lambda: "  live" in output.plain)
                    core.publish(type="action.started", data={"kind": "send_text"})
                    await until(lambda: "NOW  send_text" in output.plain)
                    core.publish(type="action.failed", action="a1", data={"kind": "send_text"})
                    await until(lambda: "failed" in output.plain)
                finally:
                    process.send_signal(2)
                    with trio.CancelScope(shield=True):
                        await process.wait()
    assert process.returncode == 0
    assert output.text.count("\x1b[?1049h") == 1
    assert output.text.rindex("\x1b[?1049l") > output.text.index("\x1b[?1049h")
    assert "\x1b[31m" not in output.text


async def test_once_shows_the_state_and_ends(tmp_path: Path):
    core = FakeCore()
    async with serving(core) as site:
        options = where(site.port, tmp_path)
        with trio.fail_after(LIMIT):
            done = await trio.run_process(
                [*COMMAND, "watch", "--once", *options], capture_stdout=True
            )
    assert "queue: 0 pending" in done.stdout.decode()
    assert not core.feeds
