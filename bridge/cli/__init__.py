"""The `deskbridge` command."""

from bridge.cli.main import main

__all__ = ["main"]
