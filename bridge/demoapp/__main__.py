"""`python -m bridge.demoapp --state-dir DIR` starts the demo app on $DISPLAY."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bridge.demoapp.app import REVOKE_SECONDS, DemoApp
from bridge.demoapp.signing import QR_SECONDS


def main(argv: Sequence[str] | None = None) -> int:
    """Run the app until it is closed."""
    parser = argparse.ArgumentParser(prog="python -m bridge.demoapp")
    parser.add_argument("--state-dir", type=Path, required=True)
    options = parser.parse_args(argv)
    manual = os.environ.get("DESKBRIDGE_DEMO_SIGN_IN") == "manual"
    qr_seconds = float(os.environ.get("DESKBRIDGE_DEMO_QR_SECONDS") or QR_SECONDS)
    revoke_seconds = float(os.environ.get("DESKBRIDGE_DEMO_REVOKE_SECONDS") or REVOKE_SECONDS)
    app = DemoApp(
        options.state_dir, manual=manual, qr_seconds=qr_seconds, revoke_seconds=revoke_seconds
    )
    app.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
