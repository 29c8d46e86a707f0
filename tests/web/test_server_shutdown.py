"""SIGTERM ends the server in order and in time; a second one, and a deadline, by force."""

from __future__ import annotations

import json
import signal
import time

import pytest
import trio
from trio_websocket import ConnectionClosed

from bridge.lifetime import FORCED_BY_DEADLINE
from tests.support.serving import AUTH, ServerProcess, Site, read_answer, server_process

SEND = "/api/send/text"


async def wait_for_waiters(site: Site, count: int) -> None:
    async with site.http() as client:
        with trio.fail_after(10):
            while (await client.get("/api/status")).json()["waiters"] < count:  # noqa: ASYNC110
                await trio.sleep(0.02)


async def call(site: Site, text: str, answers: list[tuple[int, dict[str, object]]]) -> None:
    async with site.http() as client:
        response = await client.post(SEND, json={"to": "Alice", "text": text})
        answers.append((response.status_code, response.json()))


async def watch(site: Site, codes: list[int], *, task_status: trio.TaskStatus[None]) -> None:
    """Follow the events and note the code with which the server ends that."""
    async with site.events() as connection:
        await connection.get_message()
        task_status.started()
        with pytest.raises(ConnectionClosed) as caught:
            await connection.get_message()
        codes.append(caught.value.reason.code)


async def port_closes(site: Site) -> None:
    """Wait until the server listens no more."""
    with trio.fail_after(5):
        while True:
            try:
                await (await site.raw()).aclose()
            except OSError:
                return


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_ends_in_order_with_everything_open(number: int) -> None:
    answers: list[tuple[int, dict[str, object]]] = []
    codes: list[int] = []
    with trio.fail_after(40):
        async with (
            server_process("--grace", "5", "--hard", "15") as server,
            trio.open_nursery() as nursery,
        ):
            for _ in range(5):
                await nursery.start(watch, server.site, codes)
                nursery.start_soon(call, server.site, "wait", answers)
            await wait_for_waiters(server.site, 5)
            server.signal(number)
            status, seconds = await server.ended()
    assert status == 0
    assert seconds < 4
    assert codes == [1001] * 5
    assert [(status, answer["code"]) for status, answer in answers] == [(503, "SHUTTING_DOWN")] * 5
    assert all(answer["executed"] is False for _, answer in answers)


async def test_caller_who_still_waits_when_the_grace_is_over_is_told_so() -> None:
    answers: list[tuple[int, dict[str, object]]] = []
    with trio.fail_after(40):
        async with (
            server_process("--grace", "1.5", "--hard", "15") as server,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(call, server.site, "stuck", answers)
            await wait_for_waiters(server.site, 1)
            server.signal()
            status, seconds = await server.ended()
    assert status == 0
    assert seconds < 4
    ((status, answer),) = answers
    assert (status, answer["code"], answer["executed"]) == (503, "SHUTTING_DOWN", None)


async def test_new_work_is_refused_while_it_ends() -> None:
    answers: list[tuple[int, dict[str, object]]] = []
    refused: list[tuple[int, dict[str, object]]] = []
    body = b'{"to": "Alice", "text": "hi"}'
    with trio.fail_after(40):
        async with (
            server_process("--grace", "3", "--hard", "15") as server,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(call, server.site, "stuck", answers)
            await wait_for_waiters(server.site, 1)
            # A request that was begun before the end and is completed after it.
            head = (
                f"POST {SEND} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
                f"Content-Type: application/json\r\nAuthorization: {AUTH['Authorization']}\r\n\r\n"
            )
            async with await server.site.raw(head.encode()) as stream:
                await wait_for_waiters(server.site, 1)
                server.signal()
                await port_closes(server.site)
                await stream.send_all(body)
                answer = await read_answer(stream)
            refused.append((int(answer[9:12]), json.loads(answer.partition(b"\r\n\r\n")[2])))
            await server.ended()
    ((status, answer_body),) = refused
    assert (status, answer_body["code"], answer_body["executed"]) == (503, "SHUTTING_DOWN", False)


async def stuck(server: ServerProcess) -> float:
    """Ask a server to end that will not; returns when."""
    begun = time.monotonic()
    server.signal()
    await port_closes(server.site)  # so the first signal was taken
    return begun


async def test_second_signal_forces_the_end() -> None:
    with trio.fail_after(40):
        async with server_process("--stubborn", "--hard", "30") as server:
            begun = await stuck(server)
            await trio.sleep(max(0, begun + 0.5 - time.monotonic()))
            server.signal()
            status, seconds = await server.ended()
    assert status == 128 + signal.SIGTERM
    assert seconds < 2


async def test_two_signals_at_one_stroke_are_one() -> None:
    with trio.fail_after(40):
        async with server_process("--hard", "30") as server, server.site.events() as feed:
            await feed.get_message()
            server.signal(signal.SIGTERM)
            server.signal(signal.SIGINT)
            status, _ = await server.ended()
    assert status == 0


async def test_end_that_takes_too_long_is_forced() -> None:
    with trio.fail_after(40):
        async with server_process("--stubborn", "--hard", "1") as server:
            await stuck(server)
            status, seconds = await server.ended()
    assert status == FORCED_BY_DEADLINE
    assert seconds < 4


async def test_kill_leaves_the_port_free() -> None:
    with trio.fail_after(20):
        async with server_process() as server:
            server.process.kill()
            status, _ = await server.ended()
            assert status == -signal.SIGKILL
            with pytest.raises(OSError, match=r"(?i)refused|failed|connect"):
                await trio.open_tcp_stream("127.0.0.1", server.site.port)
