"""Children that hang, ignore signals, talk too much or leave grandchildren; real processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import trio

from tests.support.bounds import bounded, until
from ui_backends.process import Completed, run

ENV = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


async def shell(script: str, *, timeout: float = 10, **options: int) -> Completed:
    return await run(["sh", "-c", script], timeout=timeout, env=ENV, **options)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@bounded(60)
async def test_output_and_exit_code() -> None:
    done = await shell("printf out; printf err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out", b"err")
    assert (done.timed_out, done.held, done.truncated) == (False, False, False)


@bounded(60)
async def test_the_environment_is_what_is_given() -> None:
    done = await run(["env"], timeout=10, env={**ENV, "A": "b"})
    assert b"A=b\n" in done.stdout
    assert b"HOME=" not in done.stdout


@bounded(60)
async def test_much_output_is_cut_and_does_not_block_the_child() -> None:
    done = await shell("head -c 3000000 /dev/zero", max_output=1000)
    assert done.returncode == 0
    assert len(done.stdout) == 1000
    assert done.truncated


@bounded(60)
async def test_a_child_that_overruns_is_terminated_and_its_output_kept() -> None:
    begun = trio.current_time()
    done = await shell("echo before; sleep 1000", timeout=0.3)
    assert done.timed_out
    assert done.stdout == b"before\n"
    assert trio.current_time() - begun < 1


@pytest.mark.parametrize("script", ["trap '' TERM; while :; do sleep 1; done", "kill -STOP $$"])
@bounded(60)
async def test_a_child_that_does_not_take_a_signal_is_killed_within_a_second(script: str) -> None:
    begun = trio.current_time()
    done = await shell(f"echo $$; {script}", timeout=0.3)
    assert done.timed_out
    assert done.returncode is not None
    assert done.returncode < 0
    assert trio.current_time() - begun < 1.5
    assert not is_alive(int(done.stdout))


@bounded(60)
async def test_a_grandchild_that_holds_the_output_neither_hangs_us_nor_survives() -> None:
    begun = trio.current_time()
    done = await shell("sleep 1000 & echo $!")
    assert done.held
    assert done.returncode == 0
    assert trio.current_time() - begun < 2
    await until(lambda: not is_alive(int(done.stdout)))


@bounded(60)
async def test_a_cancelled_call_ends_its_child(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    async with trio.open_nursery() as nursery:
        nursery.start_soon(shell, f"trap '' TERM; echo $$ > {file}; while :; do sleep 1; done")
        await until(lambda: file.exists() and file.read_text().strip())
        begun = trio.current_time()
        nursery.cancel_scope.cancel()
    assert trio.current_time() - begun < 2
    assert not is_alive(int(file.read_text()))


@bounded(60)
async def test_a_child_killed_by_somebody_else_says_so() -> None:
    done = await shell("kill -KILL $$")
    assert done.returncode == -signal.SIGKILL
    assert not done.timed_out


@bounded(60)
async def test_what_cannot_be_started_raises() -> None:
    with pytest.raises(FileNotFoundError):
        await run(["there-is-no-such-tool"], timeout=1, env=ENV)
