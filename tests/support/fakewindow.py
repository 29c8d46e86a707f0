"""The text window of the conformance suite, played by the fake backend."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from PIL import Image, ImageDraw

from tests.support.bounds import until
from ui_backends.base import Region, WindowId
from ui_backends.fake import FakeBackend, FakeWindow


class FakeTextWindow:
    """Has the members of `textwindow.TextWindow` that need no process."""

    def __init__(self, fake: FakeBackend, options: dict[str, str], title: str) -> None:
        self._fake = fake
        self._hidden = "--hidden" in options
        size, x, y = options.get("--geometry", "400x300+100+80").split("+")
        width, height = size.split("x")
        wm_class = options.get("--class", "Textapp")
        self.process = SimpleNamespace(pid=len(fake.all_windows) + 100)
        self._window = fake.add_window(
            title,
            wm_class=(wm_class.lower(), wm_class),
            region=Region(int(x), int(y), int(width), int(height)),
            pid=self.process.pid,
            viewable=not self._hidden,
            managed=not self._hidden,
        )
        self._window.reads_paste = "--stubborn" not in options
        self._window.on_paste = self._insert
        self._window.on_chord = self._press
        self._window.on_close = lambda: fake.remove_window(self._window.facts.id)
        self._text = ""
        self._keys: list[dict[str, Any]] = []
        self._done: list[dict[str, Any]] = []
        self._draw()

    @property
    def id(self) -> WindowId:
        """The window, 0 while it is hidden."""
        return 0 if self._hidden else self._window.facts.id

    @property
    def text(self) -> str:
        """All text that was pasted, and a newline for each Return."""
        return self._text

    @property
    def clicks(self) -> list[tuple[int, int, int]]:
        """(x, y, button) of each press."""
        return self._window.clicks

    def events(self, kind: str) -> list[dict[str, Any]]:
        """As the program's log."""
        if kind == "ready":
            return [{"event": "ready", "window": self._window.facts.id}]
        if kind == "click":
            return [{"x": x, "y": y, "button": b} for x, y, b in self.clicks]
        if kind == "closed":
            return [{"event": "closed"}] * self._window.close_requests
        return {"key": self._keys, "done": self._done}.get(kind, [])

    async def seen(self, kind: str, count: int = 1) -> dict[str, Any]:
        """The `count`th event of a kind."""
        await until(lambda: len(self.events(kind)) >= count)
        return self.events(kind)[count - 1]

    async def shows(self, text: str) -> None:
        """Wait until the text is exactly that."""
        await until(lambda: self._text == text)

    async def settle(self) -> None:
        """Nothing is ever under way here."""

    async def tell(self, command: str) -> None:
        """popup opens a window that takes the focus."""
        if command in {"popup", "dialog"}:
            self._fake.add_window(
                "popup",
                pid=self.process.pid,
                transient_for=self._window.facts.id,
                dialog=command == "dialog",
            )
        self._done.append({"event": "done", "command": command})

    @property
    def fake(self) -> FakeWindow:
        """What the backend keeps of it."""
        return self._window

    def _insert(self, text: str) -> None:
        self._text += text
        self._draw()

    def _press(self, keys: tuple[str, ...]) -> None:
        self._keys.append({"event": "key", "key": keys[-1]})
        if keys == ("Return",):
            self._insert("\n")

    def _draw(self) -> None:
        region = self._window.facts.region
        picture = Image.new("RGB", (region.width, region.height), (255, 255, 255))
        ImageDraw.Draw(picture).text((5, 5), self._text, fill=(0, 0, 0))
        self._window.picture = picture
