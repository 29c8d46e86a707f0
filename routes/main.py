"""The `deskbridge` command: the command line of the core, with this server put in."""

from __future__ import annotations

from bridge.cli import main as cli_main
from routes.command import run_server


def main() -> int:
    """Run the command line; returns the exit status."""
    return cli_main(serve=run_server)
