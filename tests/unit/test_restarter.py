"""The restarter with real small processes: start, adopt, restart on request, back-off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
import trio
import trio.testing

from bridge.apps.base import LaunchSpec
from bridge.errors import BridgeError
from bridge.process import identify
from bridge.restarter import BUDGET, QUICK_DEATH, Restarter, backoff, strikes_after

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")


@dataclass
class App:
    """Adapter and observer in one: what to start, and what was told."""

    argv: tuple[str, ...] = SLEEPER
    ready_at_once: bool = True
    prepared: int = 0
    told: list[str] = field(default_factory=list)
    changed: trio.Event = field(default_factory=trio.Event)
    launches: list = field(default_factory=list)

    def launch(self) -> LaunchSpec:
        return LaunchSpec(self.argv)

    def prepare(self) -> None:
        self.prepared += 1

    def tell(self, what: str) -> None:
        self.told.append(what)
        self.changed.set()
        self.changed = trio.Event()

    async def app_started(self, launch, *, adopted) -> None:
        self.launches.append(launch)
        self.tell("adopted" if adopted else "started")
        if self.ready_at_once:
            launch.ready.set()

    async def app_ended(self, launch, *, asked) -> None:
        self.tell("killed" if asked else "ended")

    async def app_needs_attention(self, why) -> None:
        self.tell("attention")

    async def until(self, *told: str) -> None:
        while self.told != list(told):
            await self.changed.wait()


@asynccontextmanager
async def restarter(app, folder, **more):
    it = Restarter(
        adapter=app, state_dir=folder, env=lambda: dict(os.environ), observer=app, **more
    )
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            await it.adopt()
            await nursery.start(it.run)
            try:
                yield it
            finally:
                nursery.cancel_scope.cancel()
                with trio.CancelScope(shield=True):
                    await it.stop()


async def test_an_app_that_ends_is_started_again(tmp_path):
    app = App()
    async with restarter(app, tmp_path) as it:
        await app.until("started")
        first = it.launch.child.pid
        os.kill(first, signal.SIGKILL)
        await app.until("started", "ended", "started")
        assert it.launch.child.pid != first


async def test_a_restart_answers_with_the_new_process(tmp_path):
    app = App()
    async with restarter(app, tmp_path) as it:
        await app.until("started")
        first = it.launch
        launch = await it.restart()
        assert app.told == ["started", "killed", "started"]
        assert launch.child.pid != first.child.pid
        assert not first.child.alive()
        assert it.launch is launch


async def test_a_second_request_joins_the_first(tmp_path):
    app = App()
    async with restarter(app, tmp_path) as it:
        await app.until("started")
        pids = []

        async def ask() -> None:
            pids.append((await it.restart()).child.pid)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)
        assert len(set(pids)) == 1
        assert app.told == ["started", "killed", "started"]


async def test_a_restart_waits_until_the_app_is_ready(tmp_path):
    app = App(ready_at_once=False)
    async with restarter(app, tmp_path) as it:
        await app.until("started")
        answered = trio.Event()

        async def ask() -> None:
            await it.restart()
            answered.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await app.until("started", "killed", "started")
            await trio.testing.wait_all_tasks_blocked()
            assert not answered.is_set()
            app.launches[-1].ready.set()
            await answered.wait()


async def test_a_stopped_app_is_ended_and_not_continued(tmp_path):
    app = App()
    async with restarter(app, tmp_path) as it:
        await app.until("started")
        os.kill(it.launch.child.pid, signal.SIGSTOP)
        await it.restart()
        assert app.told == ["started", "killed", "started"]


async def test_the_next_run_adopts_it(tmp_path):
    app = App()
    survivor = None
    try:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                first = Restarter(
                    adapter=app, state_dir=tmp_path, env=lambda: dict(os.environ), observer=app
                )
                await nursery.start(first.run)
                await app.until("started")
                survivor = first.launch.child
                nursery.cancel_scope.cancel()  # the bridge is gone, the app is not
        again = App()
        async with restarter(again, tmp_path) as it:
            assert again.told == ["adopted"]
            assert it.launch.child.pid == survivor.pid
            assert it.launch_id == app.launches[0].id
    finally:
        survivor.wait()
        survivor.close()


async def test_an_app_that_cannot_be_started_needs_attention(tmp_path):
    app = App(argv=("/nonexistent/program",))
    async with restarter(app, tmp_path) as it:
        await app.until("attention")
        app.argv = SLEEPER
        launch = await it.restart()  # a person has seen to it
        assert launch.child.alive()
        assert app.told == ["attention", "started"]


async def test_a_restart_that_cannot_start_says_so(tmp_path):
    app = App()
    async with restarter(app, tmp_path) as it:
        await app.until("started")
        app.argv = ("/nonexistent/program",)
        with pytest.raises(BridgeError) as raised:
            await it.restart()
        assert raised.value.code == "APP_NOT_READY"
        assert "/nonexistent/program" in raised.value.detail


def test_back_off_grows_and_ends_in_attention():
    assert [backoff(n) for n in range(7)] == [0, 1, 2, 4, 8, 16, 32]
    assert backoff(100) == 60
    assert backoff(0.9) == 0


def test_strikes():
    strikes = 0.0
    for _ in range(6):
        assert strikes < BUDGET
        strikes = strikes_after(strikes, lived=1, was_ready=False, asked=False)
    assert strikes >= BUDGET
    assert strikes_after(5, lived=QUICK_DEATH, was_ready=False, asked=False) == 0
    assert strikes_after(5, lived=1, was_ready=False, asked=True) == 0
    assert strikes_after(5, lived=1, was_ready=True, asked=False) == 5.1


async def test_an_app_that_dies_at_each_start_needs_attention(tmp_path, monkeypatch):
    monkeypatch.setattr("bridge.restarter.backoff", lambda strikes: 0.0)
    app = App(argv=(sys.executable, "-c", "raise SystemExit(3)"), ready_at_once=False)
    async with restarter(app, tmp_path) as it:
        await app.until(*["started", "ended"] * 6, "attention")
        assert it.launch is None


@pytest.fixture
def foreign():
    """A process that somebody else started."""
    process = subprocess.Popen(SLEEPER)
    yield process
    process.kill()
    process.wait()


async def test_another_supervisors_process_is_waited_for_and_left_alone(tmp_path, foreign):
    app, there = App(), trio.Event()

    async def find():
        return identify(foreign.pid) if there.is_set() else None

    async with restarter(app, tmp_path, find=find, external=True) as it:
        await trio.testing.wait_all_tasks_blocked()
        assert app.told == []
        there.set()
        await app.until("adopted")
        assert it.launch.child.pid == foreign.pid
        assert app.prepared == 0
    assert foreign.poll() is None


async def test_none_came_so_the_bridge_starts_one(tmp_path, monkeypatch):
    monkeypatch.setattr("bridge.restarter.EXTERNAL_PATIENCE", 0.2)
    app = App()

    async def find():
        return None

    async with restarter(app, tmp_path, find=find, external=True):
        await app.until("started")
        assert app.prepared == 1


async def test_an_app_found_running_is_adopted_at_the_start(tmp_path, foreign):
    app = App()

    async def find():
        return identify(foreign.pid)

    async with restarter(app, tmp_path, find=find):
        assert app.told == ["adopted"]
    assert foreign.poll() is None


async def test_a_restart_of_an_adopted_one_signals_it_alone(tmp_path, foreign):
    app = App()

    async def find():
        return identify(foreign.pid) if foreign.poll() is None else None

    async with restarter(app, tmp_path, find=find) as it:
        launch = await it.restart()
        assert launch.child.pid != foreign.pid
        assert foreign.wait(5) == -signal.SIGTERM
