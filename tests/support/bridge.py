"""A whole bridge as a process of its own: `deskbridge serve` on a free port and display."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import trio

from bridge.polling import poll
from bridge.process import Child, Record

DESKBRIDGE = Path(sys.executable).with_name("deskbridge")
UP = 30.0
"""Seconds in which a bridge must be ready."""


@dataclass
class BridgeProcess:
    """A running bridge. `http` is an authorised client for its address."""

    state_dir: Path
    env: Mapping[str, str]
    popen: subprocess.Popen[bytes] | None = None
    http: httpx.AsyncClient = field(default_factory=httpx.AsyncClient)
    port: int = 0
    token: str = ""

    async def start(self) -> None:
        """Start it and wait until it is ready."""
        await self.launch()
        ready = await poll(self._ready, UP)
        assert ready, f"not ready within {UP} s:\n{self.log()}"

    async def launch(self) -> None:
        """Start it and wait until it serves."""
        port_file = self.state_dir / "port"
        port_file.unlink(missing_ok=True)
        self.state_dir.mkdir(parents=True, exist_ok=True)
        with (self.state_dir / "bridge.log").open("ab") as log:
            self.popen = subprocess.Popen(
                [str(DESKBRIDGE), "serve"],
                env={
                    **os.environ,
                    "DESKBRIDGE_STATE_DIR": str(self.state_dir),
                    "DESKBRIDGE_PORT": "0",
                    **self.env,
                },
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

        async def bound() -> bool | None:
            assert self.popen is not None
            assert self.popen.poll() is None, f"the bridge ended:\n{self.log()}"
            return True if port_file.exists() and port_file.read_text().strip() else None

        assert await poll(bound, UP), f"no port within {UP} s:\n{self.log()}"
        self.port = int(port_file.read_text())
        self.token = (self.state_dir / "token").read_text().strip()
        await self.http.aclose()
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=60,
            limits=httpx.Limits(max_connections=200),
            trust_env=False,
        )

    async def _ready(self) -> bool | None:
        assert self.popen is not None
        assert self.popen.poll() is None, f"the bridge ended:\n{self.log()}"
        return True if (await self.http.get("/readyz")).status_code == 200 else None

    def log(self) -> str:
        """The end of what it printed."""
        return (self.state_dir / "bridge.log").read_text(errors="replace")[-6000:]

    async def kill(self, number: int = signal.SIGKILL) -> int:
        """Signal the bridge's process alone and wait for its end; its exit status."""
        assert self.popen is not None
        self.popen.send_signal(number)
        return await trio.to_thread.run_sync(self.popen.wait)

    def record(self, name: str) -> int:
        """The pid of a recorded process: `xvfb`, `wm` or `app`."""
        return int(
            json.loads((self.state_dir / "run" / f"{name}.json").read_text())["identity"]["pid"]
        )

    async def send(self, to: str, text: str, **headers: str) -> httpx.Response:
        """POST /api/send/text."""
        return await self.http.post(
            "/api/send/text", json={"to": to, "text": text}, headers=headers
        )

    async def action(self, action_id: str) -> dict[str, Any]:
        """One action."""
        response = await self.http.get(f"/api/actions/{action_id}")
        assert response.status_code == 200, response.text
        return dict(response.json()["action"])

    async def all_actions(self, **query: str) -> list[dict[str, Any]]:
        """Every action, through all pages."""
        found: list[dict[str, Any]] = []
        page = 1
        while True:
            answer = await self.http.get(
                "/api/actions", params={**query, "page": page, "per_page": 100}
            )
            assert answer.status_code == 200, answer.text
            body = answer.json()
            found += body["actions"]
            if len(found) >= body["total"] or not body["actions"]:
                return found
            page += 1

    async def settled(self, timeout: float = 120) -> None:
        """Wait until nothing is held, scheduled, pending or running."""

        async def nothing() -> bool | None:
            counts = (await self.http.get("/api/queue")).json()["counts"]
            busy = [counts[state] for state in ("scheduled", "pending", "running")]
            return None if any(busy) else True

        assert await poll(nothing, timeout), f"not settled within {timeout} s:\n{self.log()}"

    def journal(self) -> list[dict[str, Any]]:
        """What the demo app wrote down: the truth."""
        path = self.state_dir / "demo" / "journal.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]

    def sent(self) -> list[tuple[str, str]]:
        """(account id, text) of every message in the journal, in order."""
        return [(e["contact"], e["text"]) for e in self.journal() if e["effect"] == "message_sent"]

    async def end(self) -> None:
        """End the bridge, and, if it died without tidying, what it left running."""
        await self.http.aclose()
        if self.popen is not None and self.popen.poll() is None:
            self.popen.terminate()
            with trio.move_on_after(25, shield=True):
                await trio.to_thread.run_sync(self.popen.wait)
        for name in ("app", "wm", "xvfb"):
            record = self.state_dir / "run" / f"{name}.json"
            if record.exists():
                end_recorded(record)


def end_recorded(path: Path) -> None:
    """Kill the process in a launch record if it still is that process."""
    known = Record(path).read()
    child = None if known is None else Child.adopt(known[0])
    if child is not None:
        child.signal(signal.SIGKILL)
        child.close()


@asynccontextmanager
async def bridge_process(
    state_dir: Path, *, start: bool = True, **env: str
) -> AsyncIterator[BridgeProcess]:
    """A bridge on the demo app; ended, with all that it started, on leaving."""
    it = BridgeProcess(state_dir, {"DESKBRIDGE_SEND_DELAY_MS": "0", **env})
    try:
        if start:
            await it.start()
        yield it
    finally:
        with trio.CancelScope(shield=True):
            await it.end()
