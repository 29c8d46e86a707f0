"""A WebSocket client that never reads costs nobody else anything."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import trio
import trio.testing

from bridge.wsclient import Feed
from tests.support.bridge import bridge_process
from tests.support.virtual import stage

ROUNDS = 4_000


def rss_kb(pid: int) -> int:
    """Resident memory of a process in KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


async def never_reads(port: int, token: str) -> trio.SocketStream:
    """Upgrade to the event stream and read nothing, with a small receive buffer."""
    sock = trio.socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await sock.connect(("127.0.0.1", port))
    stream = trio.SocketStream(sock)
    await stream.send_all(
        b"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        b"Sec-WebSocket-Version: 13\r\nAuthorization: Bearer " + token.encode() + b"\r\n\r\n"
    )
    return stream


async def test_ten_thousand_events_pass_one_who_never_reads(tmp_path):
    """Others get all stored events in order; the bridge's memory stays bounded."""
    with trio.fail_after(280):
        # one flow, then a gap that outlasts the test: everything after it only waits
        async with (
            bridge_process(tmp_path / "state", DESKBRIDGE_SEND_DELAY_MS="80000000") as it,
            trio.open_nursery() as nursery,
        ):
            assert (await it.send("Alice", "first")).status_code == 200
            seqs: list[int] = []
            done = trio.Event()
            first_half = trio.Event()

            async def watch() -> None:
                feed = Feed(f"ws://127.0.0.1:{it.port}", it.token)
                async with feed.connected() as messages:
                    async for message in messages:
                        if isinstance(message, dict):
                            begun.set()
                            continue
                        seqs.extend(e["seq"] for e in message if e["type"] != "action.step")
                        if len(seqs) >= ROUNDS:
                            first_half.set()
                        if len(seqs) >= 10_000:
                            done.set()
                            return

            begun = trio.Event()
            nursery.start_soon(watch)
            await begun.wait()
            idle = await never_reads(it.port, it.token)
            assert it.popen is not None

            async def work(n: int) -> None:
                queued = await it.send("Bob", f"m{n}", Prefer="respond-async")
                action = queued.json()["action"]
                cancelled = await it.http.post(
                    f"/api/actions/{action['id']}/cancel",
                    headers={"If-Match": str(action["revision"])},
                )
                assert cancelled.status_code == 200, cancelled.text

            async def worker(start: int) -> None:
                for n in range(start, 5_100, 20):
                    await work(n)

            async with trio.open_nursery() as workers:
                for start in range(20):
                    workers.start_soon(worker, start)
                await first_half.wait()
                half_way = rss_kb(it.popen.pid)
            await done.wait()
            grown = rss_kb(it.popen.pid) - half_way
            await idle.aclose()
            nursery.cancel_scope.cancel()
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))
        assert grown < 48 * 1024, f"{grown} KiB more after the second half"


async def test_the_schedulers_timing_is_unmoved(autojump_clock):
    """In virtual time, to the same instant: with watchers that never read, and without."""

    async def run(watchers: int) -> list[tuple[str, float]]:
        async def snapshot() -> dict[str, object]:
            return {}

        async with stage() as it:
            begun = trio.current_time()
            async with trio.open_nursery() as nursery:

                async def stalled() -> None:
                    async with it.hub.subscribe(it.store, None, snapshot) as feed:
                        await feed.frame()
                        await trio.sleep_forever()

                for _ in range(watchers):
                    nursery.start_soon(stalled)
                await trio.testing.wait_all_tasks_blocked()
                for n in range(500):
                    it.seconds[f"m{n}"] = 0.01
                    await it.enqueue(f"m{n}")
                await it.quiet()
                nursery.cancel_scope.cancel()
            return [(ran.label, round(ran.started - begun, 6)) for ran in it.ran]

    assert json.dumps(await run(0)) == json.dumps(await run(20))
