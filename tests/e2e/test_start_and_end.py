"""Signals at any moment of the start, and two bridges that must not share."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest
import trio

from bridge.polling import poll
from bridge.process import Record
from tests.support.bridge import DESKBRIDGE, bridge_process


@pytest.mark.parametrize("moment", ["xvfb", "wm", "app"])
async def test_a_signal_during_the_start_leaves_nothing_behind(tmp_path, moment):
    state = tmp_path / "state"
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            run = partial(
                trio.run_process,
                [str(DESKBRIDGE), "serve"],
                env={
                    **os.environ,
                    "DESKBRIDGE_STATE_DIR": str(state),
                    "DESKBRIDGE_PORT": "0",
                },
                check=False,
                capture_stdout=True,
                capture_stderr=True,
            )
            process = await nursery.start(run)
            record = state / "run" / f"{moment}.json"

            async def there() -> bool | None:
                return record.exists() or None

            assert await poll(there, 30)
            process.send_signal(signal.SIGTERM)
            status = await process.wait()
        assert status == 0
        left = [p.name for p in (state / "run").glob("*.json") if Record(p).read() is not None]
        assert left == []


async def test_two_state_directories_on_one_database(tmp_path):
    """The lock lies beside the database, not in the state directory."""
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    with trio.fail_after(90):
        async with bridge_process(tmp_path / "one", DESKBRIDGE_STORE_URL=url) as it:
            second = await trio.run_process(
                [str(DESKBRIDGE), "serve"],
                env={
                    **os.environ,
                    "DESKBRIDGE_STATE_DIR": str(tmp_path / "two"),
                    "DESKBRIDGE_STORE_URL": url,
                    "DESKBRIDGE_PORT": "0",
                },
                check=False,
                capture_stderr=True,
            )
            assert second.returncode == 1
            assert b"works on this database already" in second.stderr
            assert (await it.send("Alice", "fine")).status_code == 200


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("DESKBRIDGE_STORE_URL", "bogus://nowhere", b"SQLite only"),
        ("DESKBRIDGE_STORE_URL", "postgresql://nowhere/x", b"SQLite only"),
        ("DESKBRIDGE_APP", "telegraph", b"installed are"),
        ("DESKBRIDGE_BACKEND", "telepathy", b"xdotool only"),
    ],
)
async def test_a_setting_that_cannot_be_used_is_told_in_one_sentence(
    tmp_path, variable, value, told
):
    with trio.fail_after(30):
        done = await trio.run_process(
            [str(DESKBRIDGE), "serve"],
            env={**os.environ, "DESKBRIDGE_STATE_DIR": str(tmp_path / "s"), variable: value},
            check=False,
            capture_stderr=True,
        )
    assert done.returncode in {1, 2}
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr.decode()


async def test_a_second_bridge_on_one_display_refuses(tmp_path):
    with trio.fail_after(90):
        async with bridge_process(tmp_path / "one") as it:
            display = (await it.http.get("/api/status")).json()["seats"][0]["display"]["name"]
            second = await trio.run_process(
                [str(DESKBRIDGE), "serve"],
                env={
                    **os.environ,
                    "DESKBRIDGE_STATE_DIR": str(tmp_path / "two"),
                    "DESKBRIDGE_DISPLAY": display,
                    "DESKBRIDGE_PORT": "0",
                },
                check=False,
                capture_stderr=True,
            )
            assert second.returncode == 1
            assert b"worked by another bridge" in second.stderr
            assert b"Traceback" not in second.stderr
            assert (await it.send("Alice", "fine")).status_code == 200


async def test_what_is_kept_is_for_its_owner_only(tmp_path):
    with trio.fail_after(60):
        async with bridge_process(tmp_path / "state") as it:
            assert (await it.send("Alice", "private")).status_code == 200
            kept = [Path(it.state_dir) / name for name in ("token", "deskbridge.db")]
            kept += list(Path(it.state_dir).glob("evidence/*/*.png"))
            assert len(kept) >= 3
            assert {path.stat().st_mode & 0o077 for path in kept} == {0}
