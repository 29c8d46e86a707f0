"""The stream of events: order, replay, gaps and bounds."""

from __future__ import annotations

import trio
import trio.testing

from bridge.clock import VirtualWallClock
from bridge.events import QUEUE, Hub
from bridge.model import Event


class Log:
    """A stored log in memory that has forgotten what is older than `oldest`."""

    epoch = "e"

    def __init__(self, hub, stored: int = 0, oldest: int = 1) -> None:
        self.hub = hub
        self.events = [event(n) for n in range(1, stored + 1)]
        self.oldest = oldest
        hub.last_seq = stored

    @property
    def last_seq(self) -> int:
        return len(self.events)

    def add(self, count: int = 1) -> None:
        for _ in range(count):
            self.events.append(event(len(self.events) + 1))
            self.hub.publish([self.events[-1]])

    async def events_since(self, seq: int, limit: int):
        await trio.lowlevel.checkpoint()
        return [e for e in self.events if e.seq > seq and e.seq >= self.oldest][:limit]

    async def oldest_seq(self):
        return self.oldest if self.events else None


def event(seq: int, kind: str = "action.queued") -> Event:
    return Event(seq, 0, kind, "s0", "demo")


async def snapshot():
    return {"shown": True}


def seqs(events) -> list[int]:
    return [e.seq for e in events]


async def go_live(log, *watches) -> None:
    """Have everybody wait for a live event (the first frames come from the store)."""
    async with trio.open_nursery() as nursery:
        for watch in watches:
            nursery.start_soon(watch.frame)
        await trio.testing.wait_all_tasks_blocked()
        log.add()


async def test_hello_then_live_events(autojump_clock):
    hub = Hub(VirtualWallClock())
    log = Log(hub, stored=3)
    async with hub.subscribe(log, None, snapshot) as watch:
        assert watch.hello == {"type": "hello", "epoch": "e", "seq": 3, "snapshot": {"shown": True}}
        log.add(2)
        assert seqs(await watch.frame()) == [4, 5]
        log.add()
        assert seqs(await watch.frame()) == [6]


async def test_replay_then_live_without_a_hole_or_a_double(autojump_clock):
    hub = Hub(VirtualWallClock())
    log = Log(hub, stored=1200)
    got: list[int] = []
    async with hub.subscribe(log, ("e", 100), snapshot) as watch:
        while len(got) < 1100:
            got += seqs(await watch.frame())
            if len(got) < 1050:
                log.add(10)  # more comes while it replays
        while got[-1] < log.last_seq:
            got += seqs(await watch.frame())
    assert got == list(range(101, log.last_seq + 1))


async def test_nothing_between_hello_and_first_frame_is_lost(autojump_clock):
    hub = Hub(VirtualWallClock())
    log = Log(hub, stored=3)

    async def busy_snapshot():
        log.add(5)
        return {}

    async with hub.subscribe(log, None, busy_snapshot) as watch:
        assert watch.hello["seq"] == 3
        assert seqs(await watch.frame()) == [4, 5, 6, 7, 8]


async def test_forgotten_events_are_announced(autojump_clock):
    hub = Hub(VirtualWallClock())
    log = Log(hub, stored=10, oldest=6)
    async with hub.subscribe(log, ("e", 2), snapshot) as watch:
        (gap,) = await watch.frame()
        assert (gap.type, gap.data) == ("gap", {"from": 3, "to": 5})
        assert seqs(await watch.frame()) == [6, 7, 8, 9, 10]


async def test_another_epoch_is_a_gap(autojump_clock):
    hub = Hub(VirtualWallClock())
    log = Log(hub, stored=10)
    async with hub.subscribe(log, ("an older store", 7), snapshot) as watch:
        (gap,) = await watch.frame()
        assert (gap.type, gap.data) == ("gap", {"from": 0, "to": 10})
        log.add()
        assert seqs(await watch.frame()) == [11]


async def test_one_who_does_not_keep_up_gets_a_gap_and_the_end(autojump_clock):
    hub = Hub(VirtualWallClock())
    log = Log(hub)
    async with hub.subscribe(log, None, snapshot) as slow, hub.subscribe(log, None, snapshot) as ok:
        await go_live(log, slow, ok)
        got = [1]
        for _ in range(10):
            log.add(QUEUE // 4)
            got += seqs(await ok.frame())
        (gap,) = await slow.frame()
        assert (gap.type, gap.data) == ("gap", {"from": 2, "to": log.last_seq})
        assert await slow.frame() is None
        assert await slow.frame() is None
        assert got == list(range(1, log.last_seq + 1))


async def test_the_queue_of_one_who_does_not_read_is_bounded(autojump_clock):
    hub = Hub(VirtualWallClock())
    log = Log(hub)
    async with hub.subscribe(log, None, snapshot) as slow:
        await go_live(log, slow)
        log.add(10 * QUEUE)
        assert slow._queue or slow._overflowed
        assert len(slow._queue) <= QUEUE


async def test_steps_are_live_only_and_keep_their_place(autojump_clock):
    hub = Hub(VirtualWallClock())
    log = Log(hub)
    async with hub.subscribe(log, None, snapshot) as watch:
        await go_live(log, watch)
        log.add()
        hub.live(event(hub.last_seq, "action.step"))
        log.add()
        kinds = [(e.seq, e.type) for e in await watch.frame()]
        assert kinds == [(2, "action.queued"), (2, "action.step"), (3, "action.queued")]


async def test_frames_are_coalesced(autojump_clock):
    hub = Hub(VirtualWallClock())
    log = Log(hub)
    frames = 0
    async with hub.subscribe(log, None, snapshot) as watch, trio.open_nursery() as nursery:

        async def produce():
            for _ in range(100):
                log.add()
                await trio.sleep(0.001)

        nursery.start_soon(produce)
        got: list[int] = []
        while len(got) < 100:
            got += seqs(await watch.frame())
            frames += 1
    assert got == list(range(1, 101))
    assert frames <= 6
