"""The short form of `scripts/bench`: it runs and prints its figures."""

from __future__ import annotations

import trio

from tests.bench.probe import probe_bench


async def test_probe_bench_prints_its_table():
    with trio.fail_after(60):
        table = await probe_bench(5)
    names = [line.split("  ")[0] for line in table.splitlines()[1:4]]
    assert names == ["window list (yardstick)", "probe of the demo app", "whole screen by scrot"]
    assert "L1 wait beside a probe" in table
