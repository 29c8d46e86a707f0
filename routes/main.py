"""The `deskbridge` command: the command line of the core, with this server put in."""

from __future__ import annotations

from importlib import import_module

from bridge.cli import main as cli_main
from bridge.config import Settings


def main() -> int:
    """Run the command line; returns the exit status."""
    return cli_main(serve=_serve)


def _serve(settings: Settings) -> int:
    """Load the server only when it is wanted: a `deskbridge send` is to start at once."""
    status: int = import_module("routes.command").run_server(settings)
    return status
