"""Play the telephone that a running demo app is signed in with: the wire, and the command.

    python -m bridge.demoapp.phone --state-dir DIR scan
    python -m bridge.demoapp.phone --state-dir DIR confirm --as carol

`scan` takes the code that the app shows now (or the one that is named), `confirm` signs in,
`refuse` sends the app back to a fresh code, `sign_out` ends the app's session from afar. The
wire is that of the faults (`bridge.demoapp.faults`): `{"phone": "scan", "account": …, …}`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bridge.demoapp.faults import ask

MOVES = ("scan", "confirm", "refuse", "sign_out")


def play(
    state_dir: Path,
    move: str,
    *,
    account: str | None = None,
    payload: str | None = None,
    timeout: float = 5.0,
) -> dict[str, Any]:
    """One move of the phone; the app's answer `{ok, screen, account, payload}`.

    Args:
        state_dir: the state directory the app was started with.
        move: one of `MOVES`.
        account: whose phone it is; the app's usual account unless an earlier move named one.
        payload: the code that was read, for `scan`; None for the one that is shown.
        timeout: seconds to wait for the app.

    Raises:
        OSError: no app listens there, or it did not answer in time.
        ValueError: the app refused, say because the code has expired.
    """
    request = {"phone": move, "account": account, "payload": payload}
    return ask(state_dir, request, timeout=timeout)


def main(argv: Sequence[str] | None = None) -> int:
    """The command: prints the app's answer; 1 when it refused or is not there."""
    parser = argparse.ArgumentParser(prog="python -m bridge.demoapp.phone")
    parser.add_argument("--state-dir", type=Path, required=True)
    parser.add_argument("move", choices=MOVES)
    parser.add_argument("--as", dest="account", metavar="ACCOUNT", help="whose phone it is")
    parser.add_argument("--payload", help="the code that was read (default: the one shown)")
    options = parser.parse_args(argv)
    try:
        answer = play(
            options.state_dir, options.move, account=options.account, payload=options.payload
        )
    except (OSError, ValueError) as error:
        print(f"demo app: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
