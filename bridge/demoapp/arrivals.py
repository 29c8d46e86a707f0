"""Let something arrive in a running demo app: a friend request, a message, a moment.

    python -m bridge.demoapp.arrivals --state-dir DIR friend dave --name Dave --greeting Hello
    python -m bridge.demoapp.arrivals --state-dir DIR message alice "How are you?"
    python -m bridge.demoapp.arrivals --state-dir DIR moment bob "What a day"

The wire is that of the faults (`bridge.demoapp.faults`): `{"arrive": "friend", "contact": …}`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.demoapp.faults import ask
from bridge.demoapp.memory import Memory, new_id

_ACCOUNT = re.compile(r"[a-z0-9._-]{1,40}")


def arrive(request: Mapping[str, Any], memory: Memory) -> tuple[str, dict[str, Any]]:
    """The journal's effect and facts for what is to arrive. ValueError when it cannot."""
    what, contact_id = request["arrive"], str(request["contact"])
    known = memory.contact(contact_id)
    text = str(request.get("text") or "")
    if what == "friend":
        if known is not None or not _ACCOUNT.fullmatch(contact_id):
            raise ValueError(f"{contact_id!r} cannot ask: a contact already, or no account's name")
        name = str(request.get("name") or contact_id.title())
        return "friend_requested", {
            "request": new_id("r"),
            "contact": contact_id,
            "name": name,
            "greeting": text,
        }
    if known is None:
        raise ValueError(f"{contact_id!r} is no contact")
    if what == "message":
        return "message_received", {
            "from": memory.handle(known),
            "contact": known.id,
            "text": text,
            "message": new_id("m"),
        }
    if what == "moment":
        return "moment_received", {"author": known.id, "moment": new_id("p"), "text": text}
    raise ValueError(f"no such arrival: {what}")


def let_arrive(
    state_dir: Path,
    what: str,
    contact: str,
    *,
    text: str = "",
    name: str | None = None,
    timeout: float = 5.0,
) -> dict[str, Any]:
    """Let it arrive and return its facts, among them its id (`request`, `message`, `moment`).

    Args:
        state_dir: the state directory the app was started with.
        what: `friend`, `message` or `moment`.
        contact: the account it comes from.
        text: the greeting, the message, or what the moment says.
        name: what the account that asks is called.
        timeout: seconds to wait for the app.

    Raises:
        OSError: no app listens there, or it did not answer in time.
        ValueError: the app refused, say because nobody is signed in.
    """
    request = {"arrive": what, "contact": contact, "text": text, "name": name}
    return ask(state_dir, request, timeout=timeout)


def main(argv: Sequence[str] | None = None) -> int:
    """The command: prints the app's answer; 1 when it refused or is not there."""
    parser = argparse.ArgumentParser(prog="python -m bridge.demoapp.arrivals")
    parser.add_argument("--state-dir", type=Path, required=True)
    kinds = parser.add_subparsers(dest="what", required=True)
    friend = kinds.add_parser("friend")
    friend.add_argument("contact")
    friend.add_argument("--name")
    friend.add_argument("--greeting", dest="text", default="")
    for name in ("message", "moment"):
        other = kinds.add_parser(name)
        other.add_argument("contact")
        other.add_argument("text")
    options = vars(parser.parse_args(argv))
    try:
        answer = let_arrive(
            options.pop("state_dir"), options.pop("what"), options.pop("contact"), **options
        )
    except (OSError, ValueError) as error:
        print(f"demo app: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
