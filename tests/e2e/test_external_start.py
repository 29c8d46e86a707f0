"""An app that another supervisor starts: waited for, adopted, worked, and left alone at the end."""

from __future__ import annotations

import signal
import subprocess
import sys

import trio

from tests.support.bridge import bridge_process
from tests.support.xserver import desktop


async def test_an_external_app_is_adopted_and_survives_the_bridge(tmp_path):
    state = tmp_path / "state"
    with trio.fail_after(120):
        async with desktop(tmp_path) as screen:
            app = subprocess.Popen(
                [sys.executable, "-m", "bridge.demoapp", "--state-dir", str(state)],
                env=screen.env(HOME=str(tmp_path)),
            )
            try:
                async with bridge_process(
                    state,
                    DESKBRIDGE_APP_START="external",
                    DESKBRIDGE_DISPLAY=screen.display,
                ) as it:
                    assert it.record("app") == app.pid
                    assert (await it.send("Alice", "hello")).status_code == 200
                    assert it.sent() == [("alice", "hello")]
                    assert await it.kill(signal.SIGTERM) == 0
                assert app.poll() is None
                assert screen.process.poll() is None
            finally:
                app.kill()
                app.wait()
