"""`python -m bridge.demoapp --state-dir DIR` starts the demo app on $DISPLAY."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bridge.demoapp.app import DemoApp


def main(argv: Sequence[str] | None = None) -> int:
    """Run the app until it is closed."""
    parser = argparse.ArgumentParser(prog="python -m bridge.demoapp")
    parser.add_argument("--state-dir", type=Path, required=True)
    options = parser.parse_args(argv)
    manual = os.environ.get("DESKBRIDGE_DEMO_SIGN_IN") == "manual"
    DemoApp(options.state_dir, manual=manual).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
