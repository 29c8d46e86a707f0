"""The moments window: posts, likes, comments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.demoapp import titles
from bridge.demoapp.form import Form
from bridge.demoapp.memory import Moment, new_id
from bridge.demoapp.rows_panel import Line, RowsPanel
from bridge.demoapp.talk import Doer, recipient


def moments(app: Doer, parent: Any) -> None:
    """All posts, newest first."""
    Moments(app, parent)


class Moments:
    """The window and its forms."""

    def __init__(self, app: Doer, parent: Any) -> None:
        self._app = app
        self._panel = RowsPanel(
            parent, app, titles.MOMENTS, lines=self._lines,
            keys={
                "<F2>": ("Like", self._with(self._like)),
                "<F3>": ("Comment…", self._with(self._comment)),
                "<F5>": ("Forward…", self._with(self._forward)),
                "<F8>": ("Delete", self._with(self._delete)),
            },
            commands={"<F6>": ("New…", self._publish), "<F7>": ("Share a link…", self._share)},
        )  # fmt: skip

    def _lines(self) -> list[Line]:
        return [line_of(moment) for moment in self._app.memory.moments]

    def _with(self, action: Callable[[Moment], None]) -> Callable[[str], None]:
        def act(moment_id: str) -> None:
            action(next(m for m in self._app.memory.moments if m.id == moment_id))

        return act

    def _form(
        self, name: str, *about: str, button: str, submit: Callable[[], bool]
    ) -> Form:  # fmt: skip
        def go(_form: Form) -> bool:
            done = submit()
            if done:
                self._panel.close()
            return done

        return Form(self._panel.window, self._app, name, *about, button=button, submit=go)

    def _like(self, moment: Moment) -> None:
        effect = "moment_unliked" if moment.liked else "moment_liked"
        self._app.act(effect, moment=moment.id)

    def _comment(self, moment: Moment) -> None:
        def submit() -> bool:
            if not read():
                self._app.refuse("say something")
                return False
            return self._app.act(
                "moment_commented", moment=moment.id, text=read(), comment=new_id("c")
            )

        form = self._form(titles.COMMENT, moment.id, button="Comment", submit=submit)
        read = form.text("text")
        form.open()

    def _delete(self, moment: Moment) -> None:
        if moment.author:
            self._app.refuse("somebody else posted it")
            return

        def submit() -> bool:
            return self._app.act("moment_deleted", moment=moment.id)

        form = self._form(titles.DELETE_MOMENT, moment.id, button="Delete", submit=submit)
        form.note(f"Delete “{moment.text[:200]}”?")
        form.open()

    def _forward(self, moment: Moment) -> None:
        def submit() -> bool:
            target = recipient(self._app, to())
            return target is not None and self._app.act(
                "moment_forwarded",
                moment=moment.id,
                to=self._app.memory.handle(target),
                contact=target.id,
                forwarded=new_id("m"),
                text=moment.text or f"🖼 {moment.images}",
            )

        form = self._form(titles.FORWARD_MOMENT, moment.id, button="Forward", submit=submit)
        to = form.contact("to", lambda: self._app.memory.contacts)
        form.open()

    def _publish(self) -> None:
        def submit() -> bool:
            chosen = images()
            if chosen is None or not (chosen or text()):
                self._app.refuse("a moment needs a text, or images that are there")
                return False
            return self._app.act(
                "moment_published",
                moment=new_id("p"),
                text=text(),
                images=[{"name": i.name, "size": i.size, "sha256": i.sha256} for i in chosen],
            )

        form = self._form(titles.PUBLISH, button="Publish", submit=submit)
        text = form.text("text")
        images = form.files("images")
        form.open()

    def _share(self) -> None:
        def submit() -> bool:
            if not url():
                self._app.refuse("a link, please")
                return False
            return self._app.act("moment_shared", moment=new_id("p"), url=url(), text=text())

        form = self._form(titles.SHARE, button="Share", submit=submit)
        url = form.line("url")
        text = form.text("text")
        form.open()


def line_of(moment: Moment) -> Line:
    """A post as a row."""
    whose = f"by {moment.author}" if moment.author else "mine"
    state = "liked" if moment.liked else "unliked"
    signs = "♥ " if moment.liked else ""
    signs += f"🖼 {moment.images} " if moment.images else ""
    signs += f"💬 {len(moment.comments)} " if moment.comments else ""
    words = " ".join(moment.text[:200].split())
    return Line(moment.id, f"{moment.id} {whose} {state}", f"{signs}{words}")
