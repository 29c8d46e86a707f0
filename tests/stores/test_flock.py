"""One bridge per database file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bridge.store import AlreadyHeld, LockLost, hold_flock

HOLD = """
import sys, pathlib
from bridge.store import hold_flock
with hold_flock(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def take(path: Path) -> None:
    """Take the lock and leave it again."""
    with hold_flock(path):
        pass


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock until it is ended."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "q.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_second_holder_is_told_who_has_it(tmp_path, holder):
    with pytest.raises(AlreadyHeld, match=str(holder.pid)) as caught:
        take(tmp_path / "q.lock")
    assert caught.value.holder == str(holder.pid)


def test_a_killed_holder_leaves_it_free(tmp_path, holder):
    holder.kill()
    holder.wait()
    with hold_flock(tmp_path / "q.lock") as lock:
        lock.check()
        assert (tmp_path / "q.lock").read_text() == f"{os.getpid()}\n"


def test_it_can_be_taken_again_after_it_was_left(tmp_path):
    for _ in range(2):
        with hold_flock(tmp_path / "q.lock"), pytest.raises(AlreadyHeld):
            take(tmp_path / "q.lock")


@pytest.mark.parametrize("text", ["", "no number", "\x00\xff"])
def test_a_holder_that_cannot_be_read_is_another_process(tmp_path, text):
    with hold_flock(tmp_path / "q.lock"):
        (tmp_path / "q.lock").write_text(text)
        with pytest.raises(AlreadyHeld, match="another process"):
            take(tmp_path / "q.lock")


def test_a_shorter_pid_leaves_nothing_of_a_longer_one(tmp_path):
    (tmp_path / "q.lock").write_text("123456789012345\n")
    with hold_flock(tmp_path / "q.lock"):
        assert (tmp_path / "q.lock").read_text() == f"{os.getpid()}\n"


def test_a_file_that_was_removed_or_replaced_is_noticed(tmp_path):
    path = tmp_path / "q.lock"
    with hold_flock(path) as lock:
        lock.check()
        path.rename(tmp_path / "away")
        with pytest.raises(LockLost, match="gone"):
            lock.check()
        path.touch()
        with pytest.raises(LockLost, match="replaced"):
            lock.check()


def test_a_child_process_does_not_keep_it(tmp_path):
    with hold_flock(tmp_path / "q.lock"):
        child = subprocess.Popen(
            [sys.executable, "-c", "import sys; print('up', flush=True); sys.stdin.read()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            close_fds=False,
        )
        # it is spawned before it has closed what it does not inherit
        assert child.stdout.readline() == b"up\n"
    with child:
        with hold_flock(tmp_path / "q.lock") as lock:
            lock.check()
        child.kill()
