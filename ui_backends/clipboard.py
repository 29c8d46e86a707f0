"""The clipboard owner: a thread with an X connection of its own, driven from Trio.

Reading the clipboard is the app's proof that it got the paste. So the text is offered to that
app alone, for that paste alone, and taken back when it was read or was not asked for in time.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
from collections import deque
from collections.abc import AsyncIterator

import structlog
import trio
from Xlib import error
from Xlib.display import Display

from ui_backends.base import DisplayDead, UiError, WindowId
from ui_backends.selection import Offer, Server
from ui_backends.xconn import cut, open_display, socket_of

LINGER = 0.1
"""Seconds for which an app that has read the text may read it again: some ask twice a paste."""

_log = structlog.get_logger("ui_backends.clipboard")


class _Owner:
    """The serving thread. Everything it is told comes through `tell`, and a pipe wakes it."""

    def __init__(self, display: str) -> None:
        self._name = display
        self._thread = threading.Thread(target=self._run, name=f"clipboard {display}", daemon=True)
        self._wake_in, self._wake_out = os.pipe()
        # Offers to arm; None to disarm.
        self._told: deque[Offer | None] = deque()
        self._stop = False
        # Written by this thread only; `cut_off` shuts its socket down from outside.
        self.live: Display | None = None
        # Monotonic time at which the offer that was read is taken back.
        self._until: float | None = None
        self._thread.start()

    def tell(self, offer: Offer | None) -> None:
        self._told.append(offer)
        os.write(self._wake_out, b"x")

    def stop(self) -> None:
        self._stop = True
        self.cut_off()
        os.write(self._wake_out, b"x")

    def cut_off(self) -> None:
        if self.live is not None:
            cut(self.live)

    def join(self, timeout: float) -> None:
        """Wait for the end and free the pipe's descriptors."""
        self._thread.join(timeout)
        if not self._thread.is_alive():
            os.close(self._wake_in)
            os.close(self._wake_out)

    def _run(self) -> None:
        while not self._stop:
            try:
                self._session()
            except (UiError, error.XError, error.ConnectionClosedError, OSError, ValueError) as e:
                _log.debug("clipboard.connection_ended", display=self._name, error=repr(e))

    def _session(self) -> None:
        """From one connection to its end. The connection is made for the first offer."""
        while not self._told or self._told[0] is None:
            self._told.clear()  # without a connection there is nothing to take back
            self._await_wake([self._wake_in], None)
            if self._stop:
                return
        try:
            self.live = open_display(self._name, 2.0)
            self._serve(Server(self.live), self.live)
        finally:
            live, self.live = self.live, None
            self._told.clear()
            self._until = None
            if live is not None:
                with contextlib.suppress(OSError):
                    socket_of(live).close()

    def _serve(self, server: Server, display: Display) -> None:
        offer: Offer | None = None
        while not self._stop:
            server.pump()
            while self._told:
                offer = self._told.popleft()
                self._until = None
                server.disarm() if offer is None else server.arm(offer)
            if offer is not None and offer.done and self._until is None:
                self._until = time.monotonic() + LINGER
            left = None if self._until is None else max(0.0, self._until - time.monotonic())
            if left == 0:
                server.disarm()
                offer = self._until = left = None
            # Whatever was sent above may have put events into the library's queue.
            if not display.pending_events():
                self._await_wake([self._wake_in, socket_of(display)], left)

    def _await_wake(self, sources: list[int | socket.socket], timeout: float | None) -> None:
        if self._wake_in in select.select(sources, [], [], timeout)[0]:
            os.read(self._wake_in, 4096)


class Paste:
    """An offer as its Trio side sees it."""

    def __init__(self, window: WindowId, text: str) -> None:
        token = trio.lowlevel.current_trio_token()
        self._news = trio.Event()

        def wake() -> None:
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(self._tick)

        self.offer = Offer(window, text, wake)

    def _tick(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def _until(self, attribute: str) -> None:
        while not getattr(self.offer, attribute):
            if self.offer.lost:
                return
            await self._news.wait()

    async def read(self, patience: float, deadline: float) -> bool:
        """Whether the app read the text.

        It has to ask within `patience` seconds, and to have all of it by `deadline` (Trio's clock).
        """
        with trio.move_on_after(patience):
            await self._until("begun")
        if self.offer.begun:
            with trio.move_on_at(deadline):
                await self._until("done")
        return self.offer.done


class Clipboard:
    """Offers texts to one app at a time; one per backend."""

    def __init__(self, display: str) -> None:
        self._display = display
        self._owner: _Owner | None = None

    def _running(self) -> _Owner:
        if self._owner is None:
            self._owner = _Owner(self._display)
        return self._owner

    @contextlib.asynccontextmanager
    async def offered(self, window: WindowId, text: str, timeout: float) -> AsyncIterator[Paste]:
        """Own the clipboard for one paste into `window`'s client; taken back at the end.

        Raises DisplayDead when the clipboard could not be had within `timeout` seconds.
        """
        owner = self._running()
        paste = Paste(window, text)
        try:
            owner.tell(paste.offer)
            with trio.move_on_after(timeout):
                await paste._until("owned")
            if not paste.offer.owned:
                owner.cut_off()
                raise DisplayDead("the clipboard could not be owned")
            yield paste
        finally:
            if not paste.offer.done:
                owner.tell(None)

    def disown(self) -> None:
        """Take back what may still be offered."""
        if self._owner is not None:
            self._owner.tell(None)

    async def aclose(self) -> None:
        """End the thread; idempotent, bounded by a second."""
        owner, self._owner = self._owner, None
        if owner is None:
            return
        owner.stop()
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(owner.join, 1.0)
