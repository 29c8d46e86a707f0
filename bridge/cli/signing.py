"""The commands `login` and `logout`: the app's sign-in code on the terminal, and its end."""

from __future__ import annotations

import io
import json
import os
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import segno

from bridge.cli.client import get, post
from bridge.cli.draw import clean
from bridge.cli.problem import CliError, Exit
from bridge.cli.target import Target
from bridge.kinds import CAPTURE_QR, LOGOUT

PATIENCE = 300
"""Seconds that `login` waits for the phone unless it is told otherwise."""

POLL = 25.0
"""Seconds that one request may wait for a change."""

_WAITS = frozenset({"qr", "confirm", "starting", "unknown", "logged_out"})
"""States in which it makes sense to wait on; `offline` and `blocked` need somebody else."""

_WHITE_ON_BLACK, _RESET = "\x1b[38;5;231;48;5;16m", "\x1b[0m"

_SAID = {
    "confirm": "Scanned. Confirm it on the phone.",
    "starting": "Signing in…",
    "unknown": "The app does not show yet where it is.",
}


def login(options: Namespace, target: Target) -> Exit:
    """`deskbridge login`: show the code until somebody has signed in."""
    return _Login(target, options).run()


class _Login:
    """One run: what was read last, and what is shown."""

    def __init__(self, target: Target, options: Namespace) -> None:
        self._target = target
        self._json = bool(options.json)
        patience = PATIENCE if options.wait is None else options.wait
        self._give_up = time.monotonic() + patience
        self._payload: str | None = None
        self._renew_at: float | None = None
        """Wall clock, seconds since 1970."""

    def run(self) -> Exit:
        state: str | None = None
        known = get(self._target, "/api/login").json()
        while known["state"] in _WAITS:
            if known["state"] == "qr":
                if state != "qr" or self._expired():
                    self._show_code()
            elif known["state"] != state:
                self._say(known)
            state = known["state"]
            known = self._next(state)
        self._say(known)
        if known["state"] != "logged_in":
            detail = f"the app is {known['state']}, which no code can change"
            raise CliError("NOT_LOGGED_IN", detail, Exit.FAILED)
        return Exit.OK

    def _next(self, state: str) -> Mapping[str, Any]:
        """The sign-in state once it changes, or the code needs to be renewed."""
        left = self._give_up - time.monotonic()
        if left <= 0:
            detail = "nobody signed in in time; run it again for a fresh code"
            raise CliError("NOT_LOGGED_IN", detail, Exit.FAILED)
        wait = min(POLL, left)
        if state == "qr" and self._renew_at is not None:
            wait = min(wait, max(0.1, self._renew_at - time.time()))
        query = {"state": state, "timeout": f"{wait:.1f}"}
        answer: dict[str, Any] = get(self._target, "/api/login/qr/wait", query, wait=wait).json()
        return answer

    def _expired(self) -> bool:
        return self._renew_at is None or time.time() >= self._renew_at

    def _show_code(self) -> None:
        """Take the code that holds now and show it, unless it is the one that is shown."""
        try:
            taken = self._take()
        except CliError as error:
            # it was scanned, or somebody came in, since the state was read: the next reading tells
            if error.code not in {"INVALID_STATE", "APP_NOT_READY"}:
                raise
            self._renew_at = time.time() + 1.0
            return
        expires = taken.get("expires_at")
        # looked at again before it ends, too: it may have been scanned and refused in between
        self._renew_at = time.time() + POLL
        if expires:
            self._renew_at = min(self._renew_at, _seconds(expires) + 0.5)
        if taken["payload"] == self._payload:
            return
        self._payload = taken["payload"]
        if self._json:
            self._line({"state": "qr", "payload": taken["payload"], "expires_at": expires})
        else:
            coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
            print(half_blocks(taken["payload"], coloured=coloured), flush=True)
            until = f"; it holds until {_local(expires)}" if expires else ""
            print(f"Scan this code with your phone{until}.", flush=True)

    def _take(self) -> Mapping[str, Any]:
        answer = post(
            self._target,
            f"/api{CAPTURE_QR.path}",
            {},
            headers={},
            wait=CAPTURE_QR.wait_timeout_ms / 1000,
            lost="try again",
        )
        result: dict[str, Any] = answer.json()["result"]
        return result

    def _say(self, known: Mapping[str, Any]) -> None:
        state, account = known["state"], known.get("account")
        if self._json:
            self._line({"state": state, "account": account})
        elif state == "logged_in":
            print(f"{clean(str(account))} is signed in.", flush=True)
        elif state in _SAID:
            print(_SAID[state], flush=True)

    @staticmethod
    def _line(document: Mapping[str, Any]) -> None:
        print(json.dumps(document, ensure_ascii=False), flush=True)


def half_blocks(payload: str, *, coloured: bool) -> str:
    """The code as lines of half blocks, two modules to a character, drawn light on dark.

    `coloured` sets both colours, so that it can be scanned from a terminal of any.
    """
    out = io.StringIO()
    segno.make_qr(payload, error="m").terminal(out, compact=True)
    lines = out.getvalue().splitlines()
    if coloured:
        lines = [f"{_WHITE_ON_BLACK}{line}{_RESET}" for line in lines]
    return "\n".join(lines)


def _seconds(rfc3339: str) -> float:
    return datetime.fromisoformat(rfc3339).timestamp()


def _local(rfc3339: str) -> str:
    return f"{datetime.fromtimestamp(_seconds(rfc3339), UTC).astimezone():%H:%M:%S}"


def logout(options: Namespace, target: Target) -> Exit:
    """`deskbridge logout`: sign the account out of the app."""
    wait = LOGOUT.wait_timeout_ms / 1000 if options.wait is None else float(options.wait)
    answer = post(
        target,
        f"/api{LOGOUT.path}",
        {},
        headers={} if options.wait is None else {"Prefer": f"wait={options.wait}"},
        wait=wait,
        lost="look with deskbridge watch, or try again: signing out twice does no harm",
    )
    document = answer.json()
    if options.json:
        print(json.dumps(document, ensure_ascii=False))
    elif document["result"].get("signed_out"):
        print(f"{clean(str(document['result'].get('account')))} is signed out.")
    else:
        print("Nobody was signed in.")
    return Exit.OK
