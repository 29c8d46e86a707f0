"""The command line: options, which command, and how it ends."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version

from bridge.cli import acts, signing
from bridge.cli.problem import CliError, Exit, tell
from bridge.cli.target import Whereabouts
from bridge.cli.watch import watch
from bridge.config import Settings, SettingsError

Serve = Callable[[Settings], int]
"""Runs a bridge until it is told to end; returns the exit status."""

_EPILOG = """\
Exit status: 0 done · 1 refused or failed, and not done · 2 wrong usage · 3 no bridge answers ·
4 token not accepted · 5 it may have happened: look first · 130 interrupted.
"""


def main(*, serve: Serve, argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; `serve` runs the bridge itself."""
    options = parser().parse_args(argv)
    as_json = getattr(options, "json", False)
    try:
        if options.command == "serve":
            return serve(_settings(options))
        where = Whereabouts(options.url, options.token, options.state_dir)
        if options.command == "watch":
            return watch(options, where)
        if options.command == "doctor":
            # It knows all the parts of a bridge, which no other command has to load.
            status: int = import_module("bridge.cli.doctor").doctor(options, where)
            return status
        return _ACTS[options.command](options, where.find())
    except CliError as error:
        tell(error, as_json=as_json)
        return error.exit_status
    except KeyboardInterrupt:
        print("deskbridge: interrupted; what had not started will not run", file=sys.stderr)
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader has gone; keep the interpreter from complaining when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK


_ACTS = {
    "send": acts.send,
    "screenshot": acts.screenshot,
    "login": signing.login,
    "logout": signing.logout,
}


def _settings(options: argparse.Namespace) -> Settings:
    """The environment's settings, with the options of `serve` put over them."""
    given = {
        "DESKBRIDGE_STATE_DIR": options.state_dir,
        "DESKBRIDGE_PORT": options.port,
        "DESKBRIDGE_APP": options.app,
        "DESKBRIDGE_DISPLAY": options.display,
    }
    over = {name: value for name, value in given.items() if value is not None}
    try:
        return Settings.from_env({**os.environ, **over})
    except SettingsError as error:
        raise CliError("UNUSABLE", str(error), Exit.USAGE) from error


def parser() -> argparse.ArgumentParser:
    """The whole grammar."""
    top = argparse.ArgumentParser(
        prog="deskbridge",
        description="An HTTP API for a desktop chat app that has none.",
        epilog=_EPILOG,
    )
    top.add_argument("--version", action="version", version=f"deskbridge {version('deskbridge')}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_serve(commands.add_parser("serve", help="run a bridge in the foreground"))
    _add_send(commands.add_parser("send", help="send a text", epilog=_EPILOG))
    _add_watch(commands.add_parser("watch", help="show the queue live", epilog=_EPILOG))
    _add_doctor(commands.add_parser("doctor", help="say what is not well and what to do about it"))
    _add_screenshot(commands.add_parser("screenshot", help="take a picture", epilog=_EPILOG))
    _add_login(commands.add_parser("login", help="sign in with a phone", epilog=_EPILOG))
    _add_logout(commands.add_parser("logout", help="sign the account out", epilog=_EPILOG))
    return top


def _add_serve(command: argparse.ArgumentParser) -> None:
    command.description = "Run a bridge in the foreground; SIGTERM or Ctrl+C ends it in order."
    command.add_argument("--port", help="port on 127.0.0.1; 0 takes a free one (DESKBRIDGE_PORT)")
    command.add_argument("--app", help="which app to work (DESKBRIDGE_APP)")
    command.add_argument("--display", help="X display to use, such as :42 (DESKBRIDGE_DISPLAY)")
    command.add_argument("--state-dir", metavar="DIR", help="DESKBRIDGE_STATE_DIR")


def _add_send(command: argparse.ArgumentParser) -> None:
    command.description = "Send a text and wait until the app shows it as sent."
    command.add_argument("to", help="account id, remark or name, exactly")
    command.add_argument("text", help="the text; - reads it from stdin")
    command.add_argument(
        "--key", metavar="KEY", help="idempotency key: the same key never sends twice"
    )
    _add_waiting(command)
    command.add_argument(
        "--async",
        dest="respond_async",
        action="store_true",
        help="only hand it in; it stays in the queue until it can be sent",
    )
    _add_common(command)


def _add_watch(command: argparse.ArgumentParser) -> None:
    command.description = "Show what runs, what waits and why, and what has ended. Ctrl+C ends it."
    command.add_argument("--once", action="store_true", help="show the present state and end")
    _add_common(command)


def _add_doctor(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Check this machine, and the bridge that runs on it, if one does. "
        "Exit status: 0 nothing failed · 1 something did."
    )
    _add_common(command)


def _add_screenshot(command: argparse.ArgumentParser) -> None:
    command.description = "Take a picture of the screen, a window or a region."
    command.add_argument("file", nargs="?", help="where to; - is stdout (default: a new file here)")
    command.add_argument(
        "--window", metavar="TITLE", help="a window of the app, by its exact title"
    )
    command.add_argument(
        "--region", metavar="X,Y,WxH", type=_region, help="pixels, as in 0,0,640x480"
    )
    command.add_argument(
        "--format", choices=["png", "jpeg"], help="default: by the file's name, or png"
    )
    _add_waiting(command)
    command.set_defaults(respond_async=False)
    _add_common(command)


def _add_login(command: argparse.ArgumentParser) -> None:
    command.description = "Show the app's sign-in code until a phone has signed in with it."
    command.add_argument(
        "--wait",
        metavar="SECONDS",
        type=_seconds,
        help=f"give up after so long (default: {signing.PATIENCE})",
    )
    _add_common(command)


def _add_logout(command: argparse.ArgumentParser) -> None:
    command.description = "Sign the account out of the app; what is stored for it waits."
    _add_waiting(command)
    _add_common(command)


def _add_waiting(command: argparse.ArgumentParser) -> None:
    command.add_argument("--wait", metavar="SECONDS", type=_seconds, help="wait at most so long")


def _add_common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print JSON, for scripts")
    group = command.add_argument_group(
        "which bridge", "default: the local one, by the files of its state directory"
    )
    group.add_argument("--url", help="its address (DESKBRIDGE_URL)")
    group.add_argument("--token", help="its token; DESKBRIDGE_TOKEN keeps it out of ps")
    group.add_argument("--state-dir", metavar="DIR", help="DESKBRIDGE_STATE_DIR")


def _seconds(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of seconds")
    return int(text)


def _region(text: str) -> dict[str, int]:
    found = re.fullmatch(r"(\d{1,6}),(\d{1,6}),(\d{1,6})x(\d{1,6})", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no region; one is 0,0,640x480")
    return dict(zip(("x", "y", "width", "height"), map(int, found.groups()), strict=True))
