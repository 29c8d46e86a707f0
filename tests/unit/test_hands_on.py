"""The lease of a person at the seat."""

from __future__ import annotations

import pytest
import trio

from bridge.errors import BridgeError
from bridge.handson import LEASE, HandsOn
from tests.support.virtual import stage


def test_one_person_at_a_time():
    seat = HandsOn()
    lease = seat.acquire(None, "Ann", 100.0)
    assert seat.held(100.0 + LEASE - 1) == lease
    with pytest.raises(BridgeError) as raised:
        seat.acquire(None, "Ben", 130.0)
    assert (raised.value.code, raised.value.retry_after) == ("HANDS_ON", 30)


def test_a_lease_ends_by_itself_and_is_renewed_by_its_id():
    seat = HandsOn()
    lease = seat.acquire(None, "Ann", 0.0)
    renewed = seat.acquire(lease.id, "Ann", 50.0)
    assert renewed.id == lease.id
    assert seat.held(LEASE + 10) == renewed
    assert seat.held(50 + LEASE) is None
    assert seat.acquire(None, "Ben", 50 + LEASE).id != lease.id


def test_release():
    seat = HandsOn()
    lease = seat.acquire(None, "Ann", 0.0)
    with pytest.raises(BridgeError):
        seat.release("another", 1.0)
    assert seat.release(lease.id, 1.0) is True
    assert seat.release(lease.id, 2.0) is False
    seat.acquire(None, "Ben", 3.0)
    assert seat.release(None, 4.0) is True


async def test_the_queue_is_frozen_meanwhile(autojump_clock):
    async with stage() as it:
        it.set_view(hands_on=True)
        await it.enqueue("text")
        picture = it.waited("picture", "look")
        await picture.done.wait()
        await trio.sleep(30)
        assert it.order() == ["picture"]
        it.set_view(hands_on=False)
        await it.quiet()
    assert it.order() == ["picture", "text"]
