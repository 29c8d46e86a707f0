"""A display of a test's own: Xvfb on a number it picks itself, and a window manager."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import trio

from ui_backends import windows
from ui_backends.xconn import XConnection


@dataclass(frozen=True)
class XServer:
    """A running Xvfb. `display` is its name (":12")."""

    display: str
    process: trio.Process

    def env(self, **more: str) -> dict[str, str]:
        """An environment for clients of this display."""
        return {**os.environ, "DISPLAY": self.display, "LC_ALL": "C.UTF-8", **more}

    def freeze(self) -> None:
        """Stop the server's process: it answers nobody until `thaw`."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the server go on."""
        self.process.send_signal(signal.SIGCONT)


async def end(process: trio.Process, timeout: float = 5.0) -> None:
    """End a process that was started here: SIGTERM (and SIGCONT), then SIGKILL; shielded."""
    with trio.CancelScope(shield=True):
        if process.returncode is None:
            process.terminate()
            process.send_signal(signal.SIGCONT)
            with trio.move_on_after(timeout):
                await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def started(
    argv: Sequence[str], *, env: Mapping[str, str], **options: object
) -> AsyncIterator[trio.Process]:
    """A child process, ended at the end; without input and output unless `options` say so."""
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    process = await trio.lowlevel.open_process(
        list(argv), env=dict(env), process_group=0, **{**quiet, **options}
    )
    try:
        yield process
    finally:
        await end(process)


@asynccontextmanager
async def xvfb(
    *options: str, size: str = "1280x800", autorepeat: bool = True
) -> AsyncIterator[XServer]:
    """An Xvfb that is ready. X's own autorepeat is on unless it is switched off here."""
    reader, writer = os.pipe()
    argv = ["Xvfb", "-displayfd", str(writer), "-screen", "0", f"{size}x24", "-nolisten", "tcp"]
    argv += ["-noreset", *([] if autorepeat else ["-r"]), *options]
    try:
        async with started(argv, env=os.environ, pass_fds=(writer,)) as process:
            os.close(writer)
            writer = -1
            number = b""
            async with trio.lowlevel.FdStream(os.dup(reader)) as answers:
                with trio.fail_after(20):
                    async for chunk in answers:
                        number += chunk
                        if number.endswith(b"\n"):
                            break
            if not number.strip():
                raise RuntimeError(f"Xvfb did not start: {process.returncode}")
            yield XServer(f":{int(number)}", process)
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)


@asynccontextmanager
async def icewm(server: XServer, home: Path) -> AsyncIterator[trio.Process]:
    """A plain icewm without task bar that is ready; `home` takes its settings."""
    settings = home / "icewm"
    settings.mkdir(parents=True, exist_ok=True)
    lines = ["ShowTaskBar=0", "ShowPopupsAbovePointer=0", "ToolTipDelay=60000"]
    (settings / "preferences").write_text("\n".join(lines) + "\n")
    env = server.env(HOME=str(home), ICEWM_PRIVCFG=str(settings))
    async with started(["icewm", "--display", server.display], env=env) as process:
        await manager_ready(server)
        yield process


async def manager_ready(server: XServer, timeout: float = 20.0) -> None:
    """Wait until a window manager runs."""
    connection = XConnection(server.display)
    try:
        with trio.fail_after(timeout):
            while await connection.call(windows.supporting_wm) is None:  # noqa: ASYNC110
                await trio.sleep(0.02)  # another process: nothing to wait on
    finally:
        await connection.aclose()


@asynccontextmanager
async def desktop(home: Path, *, autorepeat: bool = True) -> AsyncIterator[XServer]:
    """Xvfb with icewm."""
    async with xvfb(autorepeat=autorepeat) as server, icewm(server, home):
        yield server
