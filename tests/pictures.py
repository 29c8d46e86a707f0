"""Makes the pictures of the README from the running product (`scripts/pictures`)."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import trio

from bridge.polling import poll
from tests.support.bridge import DESKBRIDGE, BridgeProcess, bridge_process
from tests.support.xserver import XServer, icewm, started, xvfb
from ui_backends.base import Region
from ui_backends.windows import list_windows
from ui_backends.xconn import XConnection
from ui_backends.xdotool import open_xdotool

IMAGES = Path(__file__).parent.parent / "docs" / "images"
TALK = [
    ("Alice", "Hello Alice, shall we meet at nine?"),
    ("张三", "你好！明天见。"),
    ("Bob", "The report is on your desk."),
    ("Alice", "Nine it is 🎉"),
]


async def make() -> None:
    """Work a bridge for a while and take its pictures."""
    with tempfile.TemporaryDirectory(prefix="deskbridge-pictures-") as folder:
        async with bridge_process(
            Path(folder) / "state", DESKBRIDGE_SEND_DELAY_MS="2500"
        ) as bridge:
            for to, text in TALK:
                answer = await bridge.send(to, text, Prefer="wait=60")
                answer.raise_for_status()
            await _demo(bridge)
            await _watch(bridge, Path(folder))


async def _demo(bridge: BridgeProcess) -> None:
    picture = await bridge.http.post(
        "/api/screenshot",
        json={"window": "Demo Chat - demo - Alice [alice]"},
        headers={"Prefer": "wait=60"},
    )
    picture.raise_for_status()
    (IMAGES / "demo.png").write_bytes(picture.content)


async def _watch(bridge: BridgeProcess, folder: Path) -> None:
    """`deskbridge watch` in a terminal while a few messages wait."""
    async with xvfb(size="1000x640") as server, icewm(server, folder):
        argv = ["xterm", "-fa", "DejaVu Sans Mono", "-fs", "10", "-geometry", "110x32+0+0"]
        argv += ["-bg", "#11151c", "-fg", "#d5dbe3", "-T", "deskbridge watch", "-e"]
        argv += [str(DESKBRIDGE), "watch", "--state-dir", str(bridge.state_dir)]
        env = server.env(TERM="xterm-256color", COLORTERM="truecolor", HOME=str(folder))
        async with started(argv, env=env):
            for n, name in enumerate(("Alice", "Bob", "张三", "🎉 Party", "Alice Smith", "Alice")):
                await bridge.send(name, f"message {n}", Prefer="respond-async")
            await _take(server, folder, bridge)


async def _take(server: XServer, folder: Path, bridge: BridgeProcess) -> None:
    async def half_way() -> bool | None:
        counts = (await bridge.http.get("/api/queue")).json()["counts"]
        return (counts["running"] == 1 and counts["pending"] <= 4) or None

    assert await poll(half_way, 60)
    facts = XConnection(server.display)
    try:
        found = await facts.call(list_windows)
    finally:
        await facts.aclose()
    (window,) = [w for w in found if w.title == "deskbridge watch"]
    async with open_xdotool(server.display, state_id="pictures") as backend:
        await trio.sleep(0.3)  # one refresh of the terminal
        picture = await backend.capture(None, Region(**_inside(window.region)))
    picture.save(IMAGES / "watch.png")


def _inside(region: Region) -> dict[str, int]:
    return {
        "x": max(0, region.x),
        "y": max(0, region.y),
        "width": min(region.width, 1000 - max(0, region.x)),
        "height": min(region.height, 640 - max(0, region.y)),
    }


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    trio.run(make)
    sys.exit(0)
