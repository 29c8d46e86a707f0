"""What a reading of the sign-in state costs, and how long it makes other commands wait (L1)."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import trio

from bridge.hands import Eyes
from tests.support.demo import signed_in


async def probe_bench(rounds: int) -> str:
    """Measure `rounds` readings beside as many bare window lists and captures; a table."""
    with tempfile.TemporaryDirectory(prefix="deskbridge-bench-") as folder:
        async with signed_in(Path(folder)) as demo:
            eyes = Eyes(demo.backend)
            windows = await _times(rounds, demo.backend.windows)
            capture = await _times(max(3, rounds // 10), demo.backend.capture)
            reading = await _times(rounds, lambda: demo.adapter.probe(eyes))
            before = demo.backend.lock.statistics()
            await _both(rounds, lambda: demo.adapter.probe(eyes), demo.backend.active_window)
            after = demo.backend.lock.statistics()
    waited = (after.wait_seconds_sum - before.wait_seconds_sum) * 1000
    commands = after.commands - before.commands
    yard = statistics.median(windows)
    lines = [f"{'':28}{'median ms':>10}{'p95 ms':>9}{'x yardstick':>13}"]
    for name, times in (
        ("window list (yardstick)", windows),
        ("probe of the demo app", reading),
        ("whole screen by scrot", capture),
    ):
        median = statistics.median(times)
        high = sorted(times)[int(len(times) * 0.95)]
        lines.append(f"{name:28}{median:>10.2f}{high:>9.2f}{median / yard:>13.1f}")
    lines.append(
        f"L1 wait beside a probe: {waited / commands:.3f} ms a command over {commands} commands"
    )
    return "\n".join(lines)


async def _times(rounds: int, work) -> list[float]:
    """Milliseconds of each call."""
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        await work()
        times.append((time.perf_counter() - begun) * 1000)
    return times


async def _both(rounds: int, one, other) -> None:
    """Two tasks that take turns at the display."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_times, rounds, one)
        nursery.start_soon(_times, rounds, other)
