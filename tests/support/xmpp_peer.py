"""The other end: signs in several XMPP accounts and writes down, as JSON lines, what they get.

Run as a program: `xmpp_peer.py PORT FILE USER…` (the password of USER is `pw-USER`). A line on
standard input, `{"from": USER, "to": JID, "body": TEXT}`, makes USER say something.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, TextIO

import slixmpp

HOST = "localhost"


class Recorder(slixmpp.ClientXMPP):
    """One account: notes every chat message it gets."""

    def __init__(self, user: str, out: TextIO) -> None:
        super().__init__(f"{user}@{HOST}/peer", f"pw-{user}")
        self.user, self.out = user, out
        self.enable_direct_tls = False
        self.enable_starttls = False
        self.enable_plaintext = True
        self.plugin["feature_mechanisms"].unencrypted_plain = True
        self.add_event_handler("session_start", self._begin)
        self.add_event_handler("message", self._message)

    def note(self, **what: Any) -> None:
        self.out.write(json.dumps({"user": self.user, **what}) + "\n")
        self.out.flush()

    async def _begin(self, _event: object) -> None:
        self.send_presence()
        await self.get_roster()
        self.note(event="ready")

    def _message(self, message: slixmpp.Message) -> None:
        if message["type"] in {"chat", "normal"} and message["body"]:
            sender = message["from"].bare
            self.note(event="message", sender=sender, body=message["body"])


async def main(port: int, path: Path, users: list[str]) -> None:
    with path.open("a", encoding="utf-8") as out:
        peers = {user: Recorder(user, out) for user in users}
        for peer in peers.values():
            peer.add_event_handler("disconnected", lambda _event: sys.exit(0))
            peer.connect("127.0.0.1", port)
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            peers[order["from"]].send_message(order["to"], order["body"], mtype="chat")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
