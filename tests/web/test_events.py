"""The WebSocket of events: hello, frames, replay, and many clients; and its own client."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
import trio.lowlevel
from trio_websocket import ConnectionClosed, HandshakeError

from bridge.wsclient import Feed, FeedRefused, pause
from tests.support.fakecore import EPOCH, TOKEN, FakeCore
from tests.support.serving import serving, until


async def test_hello_comes_first_and_frames_are_lists() -> None:
    core = FakeCore()
    core.seq = 41
    with trio.fail_after(10):
        async with serving(core) as site, site.events() as connection:
            hello = json.loads(await connection.get_message())
            assert hello == {
                "type": "hello",
                "epoch": EPOCH,
                "seq": 41,
                "snapshot": {"pending": 0},
            }
            core.publish(3, trace_id="t1")
            frame = json.loads(await connection.get_message())
    assert [event["seq"] for event in frame] == [42, 43, 44]
    assert set(frame[0]) == {"seq", "ts", "type", "seat", "owner", "action", "data", "trace_id"}
    assert (frame[0]["ts"], frame[0]["trace_id"]) == ("2027-01-15T08:00:00.250Z", "t1")


async def test_since_is_handed_on() -> None:
    core = FakeCore()
    with trio.fail_after(10):
        async with serving(core) as site, site.events("?since=e1:17") as connection:
            await connection.get_message()
    assert core.since == [(EPOCH, 17)]


async def test_gap_is_told_and_a_feed_that_ends_says_to_come_again() -> None:
    core = FakeCore(limit=2)
    with trio.fail_after(10):
        async with serving(core) as site, site.events() as connection:
            await connection.get_message()
            core.publish(1, type="gap", data={"from": 1, "to": 9}, action=None)
            (gap,) = json.loads(await connection.get_message())
            assert (gap["type"], gap["data"]) == ("gap", {"from": 1, "to": 9})
            core.publish(5)
            with pytest.raises(ConnectionClosed) as caught:
                await drain(connection)
            assert caught.value.reason.code == 1013


async def drain(connection: Any) -> None:
    while True:
        await connection.get_message()


async def follow(site: Any, seen: list[int], count: int, *, task_status: Any) -> None:
    async with site.events() as connection:
        await connection.get_message()
        task_status.started()
        while len(seen) < count:
            seen += [event["seq"] for event in json.loads(await connection.get_message())]


async def test_many_clients_get_every_event_in_order() -> None:
    core = FakeCore(limit=20_000)
    seen: list[list[int]] = [[] for _ in range(20)]
    with trio.fail_after(40):
        async with serving(core) as site:
            async with trio.open_nursery() as nursery:
                for one in seen:
                    await nursery.start(follow, site, one, 10_000)
                for _ in range(100):
                    core.publish(100)
                    await trio.lowlevel.checkpoint()
            await until(lambda: not core.feeds)
    assert all(one == list(range(1, 10_001)) for one in seen)


async def test_events_that_come_close_together_share_a_frame() -> None:
    core = FakeCore()
    frames = 0
    with trio.fail_after(20):
        async with serving(core) as site, site.events() as connection:
            await connection.get_message()
            got: list[Any] = []
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trickle, core, 200)
                while len(got) < 200:
                    got += json.loads(await connection.get_message())
                    frames += 1
    assert [event["seq"] for event in got] == list(range(1, 201))
    assert frames < 50


async def trickle(core: FakeCore, count: int) -> None:
    for _ in range(count):
        core.publish()
        await trio.sleep(0.001)


async def test_client_resumes_where_it_was_cut_off() -> None:
    core = FakeCore()
    with trio.fail_after(20):
        async with serving(core) as site:
            feed = Feed(site.ws_url, TOKEN)
            async with feed.connected() as messages:
                hello = await anext(messages)
                assert hello["type"] == "hello"
                core.publish(3)
                assert len(await anext(messages)) == 3
            assert feed.since == (EPOCH, 3)
            async with feed.connected() as messages:
                await anext(messages)
    assert core.since == [None, (EPOCH, 3)]


async def test_client_sees_the_end_of_the_bridge_as_the_end_of_messages() -> None:
    core = FakeCore()
    with trio.fail_after(20):
        async with serving(core) as site, Feed(site.ws_url, TOKEN).connected() as messages:
            await anext(messages)
            core.closing.set()
            assert [message async for message in messages] == []


async def test_client_tells_refusal_from_trouble() -> None:
    with trio.fail_after(20):
        async with serving(FakeCore()) as site:
            with pytest.raises(FeedRefused):
                async with Feed(site.ws_url, "wrong").connected():
                    pytest.fail("let in")
        with pytest.raises((OSError, HandshakeError)):
            async with Feed(site.ws_url, TOKEN).connected():
                pytest.fail("nobody is there any more")


def test_pause_grows_to_its_limit() -> None:
    assert all(0.125 <= pause(0) <= 0.25 for _ in range(50))
    assert all(5 <= pause(failures) <= 10 for failures in (10, 10_000) for _ in range(50))
