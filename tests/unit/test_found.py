"""Who is taken for the app."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bridge.apps.base import LaunchSpec
from bridge.found import find_app, prove, same_display, same_program
from bridge.process import identify
from ui_backends.base import Region, Window

ARGV = (sys.executable, "-c", "import time; print(flush=True); time.sleep(600)")


@pytest.fixture
def app():
    env = {**os.environ, "DISPLAY": ":9"}
    process = subprocess.Popen(ARGV, env=env, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # it is past its exec
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


class Screen:
    """A reader that shows windows of these processes."""

    def __init__(self, *pids) -> None:
        self.pids = pids

    async def windows(self):
        return [
            Window(n, "t", ("a", "A"), "", pid, Region(0, 0, 9, 9), viewable=True, managed=True)
            for n, pid in enumerate(self.pids)
        ]


async def test_the_one_with_a_window_here_is_found(app):
    found = await find_app(Screen(os.getpid(), app.pid, None), ":9", LaunchSpec(ARGV))
    assert found == identify(app.pid)


async def test_no_window_no_app(app):
    assert await find_app(Screen(os.getpid()), ":9", LaunchSpec(ARGV)) is None


def test_another_display_or_program_is_not_it(app):
    assert prove(app.pid, ":9", LaunchSpec(ARGV)) is not None
    assert prove(app.pid, ":10", LaunchSpec(ARGV)) is None
    assert prove(app.pid, ":9", LaunchSpec((*ARGV, "--other"))) is None
    assert prove(app.pid, ":9", LaunchSpec(("/bin/sleep", *ARGV[1:]))) is None


def test_a_process_that_is_gone_is_not_it():
    process = subprocess.Popen(ARGV, stdout=subprocess.DEVNULL)
    process.kill()
    process.wait()
    assert prove(process.pid, ":9", LaunchSpec(ARGV)) is None


def test_display_names():
    assert same_display({"DISPLAY": ":7.0"}, ":7")
    assert not same_display({"DISPLAY": ":70"}, ":7")
    assert not same_display({}, ":7")


def test_command_lines():
    assert same_program("/usr/bin/pidgin", ["/usr/bin/pidgin", "-c", "/a"], ["pidgin", "-c", "/a"])
    assert same_program("/bin/sh", ["wechat", "--x"], ["/opt/wechat/wechat", "--x"])
    assert not same_program("/usr/bin/pidgin", ["pidgin", "-c", "/b"], ["pidgin", "-c", "/a"])
    assert not same_program("/usr/bin/pidgin", [], ["pidgin"])


def test_one_program_under_two_names(tmp_path):
    link = tmp_path / "another-name"
    link.symlink_to(sys.executable)
    real = os.path.realpath(sys.executable)
    assert same_program(real, ["python3", "-c", "pass"], [str(link), "-c", "pass"])
