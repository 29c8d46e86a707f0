"""Processes that are remembered, adopted and ended: only the proven one is signalled."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace

import pytest
import trio

from bridge.polling import poll
from bridge.process import Child, Record, identify

SLEEPER = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); "
    "time.sleep(600)",
]


@pytest.fixture
def start(tmp_path):
    children = []

    def begin(argv=SLEEPER):
        child = Child.start(argv, env=dict(os.environ), log_file=tmp_path / "log")
        children.append(child)
        return child

    yield begin
    for child in children:
        child.signal(signal.SIGKILL)
        child.wait()
        child.close()


async def up(tmp_path):
    """The child has set itself up once it has printed."""

    async def printed() -> bool | None:
        return bool((tmp_path / "log").read_bytes()) or None

    assert await poll(printed, 5)


async def test_a_record_leads_to_the_same_process(start, tmp_path):
    child = start()
    record = Record(tmp_path / "run" / "app.json")
    record.write(child.identity, launch="x")
    known = record.read()
    assert known is not None
    identity, facts = known
    assert facts == {"launch": "x"}
    adopted = Child.adopt(identity)
    assert adopted is not None
    with trio.fail_after(5):
        assert await adopted.stop(grace=1)
    adopted.close()
    assert not child.alive()


async def test_a_used_again_pid_is_somebody_else(start, tmp_path):
    child = start()
    other = replace(child.identity, start_ticks=child.identity.start_ticks - 1)
    record = Record(tmp_path / "app.json")
    record.write(other)
    assert record.read() is None
    assert Child.adopt(other) is None
    assert child.alive()


async def test_another_boot_is_somebody_else(start, tmp_path):
    child = start()
    assert Child.adopt(replace(child.identity, boot_id="an earlier boot")) is None
    assert child.alive()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"identity": {"pid": 1}}', '{"identity": 3}'])
async def test_a_damaged_record_is_no_record(tmp_path, text):
    path = tmp_path / "app.json"
    path.write_text(text)
    assert Record(path).read() is None


async def test_stop_is_bounded_for_one_that_ignores_term(start, tmp_path):
    child = start(STUBBORN)
    with trio.fail_after(10):
        await up(tmp_path)
        assert await child.stop(grace=0.2)
    assert not child.alive()


async def test_stop_ends_a_stopped_process(start, tmp_path):
    child = start()
    with trio.fail_after(10):
        await up(tmp_path)
        os.kill(child.pid, signal.SIGSTOP)
        assert await child.stop(grace=2)
    assert not child.alive()


async def test_ended_is_seen_and_nothing_is_signalled_afterwards(start):
    child = start()
    os.kill(child.pid, signal.SIGKILL)
    with trio.fail_after(5):
        await child.ended()
    assert not child.alive()
    assert child.signal(signal.SIGTERM) is False
    assert identify(child.pid) is None
