"""The short form of `scripts/faults`."""

from __future__ import annotations

import pytest
import trio

from tests.faults.kill import kill_campaign


@pytest.mark.parametrize("victim", ["bridge", "app"])
async def test_nothing_is_lost_or_doubled_when_it_is_killed(tmp_path, victim):
    with trio.fail_after(400):
        report = await kill_campaign(
            tmp_path / "state", sends=20, kills=6, seed=7, victims=(victim,)
        )
    assert report.problems == [], str(report)
    assert report.succeeded + report.uncertain == 20
