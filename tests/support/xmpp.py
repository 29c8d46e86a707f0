"""An XMPP server, a Pidgin folder for it, and a peer that writes down what arrives.

Everything runs on ports that the system hands out, in folders of the test, and is ended by the
process that was started here.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import trio

from tests.support.xserver import end

HOST = "localhost"
OWNER = "alice"
OWNER_JID = f"{OWNER}@{HOST}"
_PEER = Path(__file__).with_name("xmpp_peer.py")

_CONFIG = """
run_as_root = true
pidfile = "{folder}/prosody.pid"
data_path = "{folder}/data"
certificates = "{folder}/certs"
interfaces = {{ "127.0.0.1" }}
c2s_ports = {{ {port} }}; s2s_ports = {{}}; http_ports = {{}}; https_ports = {{}}
c2s_direct_tls_ports = {{}}
modules_enabled = {{ "roster", "saslauth", "disco", "ping", "presence", "message", "iq" }}
modules_disabled = {{ "s2s", "tls", "http", "offline" }}
authentication = "internal_plain"
storage = "internal"
c2s_require_encryption = false
allow_unencrypted_plain_auth = true
log = {{ {{ levels = {{ min = "info" }}, to = "file", filename = "{folder}/log" }} }}
VirtualHost "{host}"
"""


@dataclass(frozen=True)
class Buddy:
    """An account of the server that the owner has in the buddy list, under a name or without."""

    user: str
    alias: str | None

    @property
    def jid(self) -> str:
        return f"{self.user}@{HOST}"


BOB, BOBBY = Buddy("bob", "Bob"), Buddy("bobby", "Bobby")
TWINS = (Buddy("twin1", "李雷"), Buddy("twin2", "李雷"))
NAMELESS = Buddy("nameless", None)
BUDDIES = (BOB, BOBBY, *TWINS, NAMELESS)


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class XmppServer:
    """A prosody with the owner's and the buddies' accounts; can be stopped and started again."""

    folder: Path
    buddies: Sequence[Buddy]
    port: int = 0
    process: trio.Process | None = field(default=None, repr=False)

    async def start(self) -> None:
        """Listen, the first time on whatever port is free, later on the same one."""
        for _ in range(10):
            port = self.port or free_port()
            if await self._try(port):
                self.port = port
                return
            await self.stop()
        raise RuntimeError((self.folder / "log").read_text())

    async def _try(self, port: int) -> bool:
        config, log = self.folder / "prosody.cfg.lua", self.folder / "log"
        config.write_text(_CONFIG.format(folder=self.folder, port=port, host=HOST))
        log.write_text("")
        self.process = await trio.lowlevel.open_process(
            ["prosody", "-F", "--config", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with trio.fail_after(20):
            while self.process.poll() is None:
                said = log.read_text()
                if f"Activated service 'c2s' on [127.0.0.1]:{port}" in said:
                    return True
                if "Failed to open server port" in said:
                    return False
                await trio.sleep(0.02)
        return False

    async def stop(self) -> None:
        """End the server; its clients see their connection end."""
        if self.process is not None:
            await end(self.process)
            self.process = None


@asynccontextmanager
async def xmpp_server(
    folder: Path, buddies: Sequence[Buddy] = BUDDIES
) -> AsyncIterator[XmppServer]:
    """A running server whose data lies in `folder`."""
    data = folder / "data" / HOST
    (data / "accounts").mkdir(parents=True)
    (data / "roster").mkdir()
    (folder / "certs").mkdir()
    for user in [OWNER, *(buddy.user for buddy in buddies)]:
        account = f'return {{ ["password"] = "pw-{user}"; }};'
        (data / "accounts" / f"{user}.dat").write_text(account)
    entries = "".join(_roster_entry(buddy.jid, buddy.alias) for buddy in buddies)
    (data / "roster" / f"{OWNER}.dat").write_text(_roster(entries))
    for buddy in buddies:
        back = _roster(_roster_entry(OWNER_JID, "Alice"))
        (data / "roster" / f"{buddy.user}.dat").write_text(back)
    server = XmppServer(folder, buddies)
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


def _roster(entries: str) -> str:
    return f'return {{ [false] = {{ ["version"] = 1; ["pending"] = {{}}; }};{entries} }};'


def _roster_entry(jid: str, alias: str | None) -> str:
    name = f'["name"] = "{alias}"; ' if alias else ""
    return (
        f' ["{jid}"] = {{ ["subscription"] = "both"; {name}'
        f'["groups"] = {{ ["Buddies"] = true; }}; }};'
    )


def seed_pidgin(
    state_dir: Path,
    server: XmppServer,
    *,
    password: str | None = f"pw-{OWNER}",
    enabled: bool = True,
    alias: str | None = "Alice",
) -> Path:
    """Write what a person would have entered in Pidgin: account and buddies. The folder."""
    folder = state_dir / "pidgin"
    folder.mkdir(parents=True)
    secret = f"<password>{password}</password>" if password else ""
    named = f"<alias>{escape(alias)}</alias>" if alias else ""
    (folder / "accounts.xml").write_text(
        f"""<?xml version='1.0' encoding='UTF-8' ?>
<account version='1.0'><account>
 <protocol>prpl-jabber</protocol><name>{OWNER_JID}/pidgin</name>{secret}{named}
 <statuses>
  <status type='available' name='Available' active='true'><attributes/></status>
  <status type='offline' name='Offline' active='false'><attributes/></status>
 </statuses>
 <settings>
  <setting name='connection_security' type='string'>opportunistic_tls</setting>
  <setting name='auth_plain_in_clear' type='bool'>1</setting>
  <setting name='connect_server' type='string'>127.0.0.1</setting>
  <setting name='port' type='int'>{server.port}</setting>
  <setting name='ft_proxies' type='string'></setting>
 </settings>
 <settings ui='gtk-gaim'>
  <setting name='auto-login' type='bool'>{int(enabled)}</setting>
 </settings>
</account></account>
"""
    )
    people = "".join(_contact(buddy) for buddy in server.buddies)
    (folder / "blist.xml").write_text(
        f"""<?xml version='1.0' encoding='UTF-8' ?>
<purple version='1.0'>
 <blist><group name='Buddies'>{people}</group></blist>
 <privacy/>
</purple>
"""
    )
    return folder


def _contact(buddy: Buddy) -> str:
    alias = f"<alias>{escape(buddy.alias)}</alias>" if buddy.alias else ""
    account = quoteattr(f"{OWNER_JID}/pidgin")
    return (
        f"<contact><buddy account={account} proto='prpl-jabber'>"
        f"<name>{buddy.jid}</name>{alias}</buddy></contact>"
    )


@dataclass
class Peer:
    """The buddies, signed in; what they got lies in a file of JSON lines."""

    path: Path
    process: trio.Process

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The whole lines written so far of one kind of event, in order."""
        text = self.path.read_text("utf-8") if self.path.exists() else ""
        whole = text[: text.rfind("\n") + 1].splitlines()
        return [line for line in map(json.loads, whole) if line["event"] == event]

    def messages(self) -> list[tuple[str, str]]:
        """What arrived so far, as (user, body), in order."""
        return [(line["user"], line["body"]) for line in self.lines("message")]

    async def arrived(self, count: int, *, timeout: float = 10.0) -> list[tuple[str, str]]:
        """Wait until at least `count` messages have arrived; all of them."""
        with trio.fail_after(timeout):
            while len(self.messages()) < count:  # noqa: ASYNC110 another process's file
                await trio.sleep(0.01)
        return self.messages()

    async def say(self, user: str, body: str) -> None:
        """Let a buddy write to the owner."""
        assert self.process.stdin is not None
        order = json.dumps({"from": user, "to": OWNER_JID, "body": body}) + "\n"
        await self.process.stdin.send_all(order.encode())


@asynccontextmanager
async def xmpp_peer(
    path: Path, server: XmppServer, users: Sequence[str] | None = None
) -> AsyncIterator[Peer]:
    """All buddies (or `users`) signed in and recording to `path`."""
    names = [buddy.user for buddy in server.buddies] if users is None else list(users)
    process = await trio.lowlevel.open_process(
        [sys.executable, str(_PEER), str(server.port), str(path), *names],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    peer = Peer(path, process)
    try:
        with trio.fail_after(30):
            while len(peer.lines("ready")) < len(names):
                if process.poll() is not None:
                    raise RuntimeError(f"the peer ended with {process.returncode}")
                await trio.sleep(0.02)
        yield peer
    finally:
        await end(process)
        if process.stdin is not None:
            await process.stdin.aclose()


@dataclass(frozen=True)
class XmppWorld:
    """A server, a Pidgin folder that knows it, and the buddies. Pidgin itself is not started."""

    server: XmppServer
    peer: Peer
    state_dir: Path


@asynccontextmanager
async def xmpp_world(
    folder: Path, buddies: Sequence[Buddy] = BUDDIES, **seed: Any
) -> AsyncIterator[XmppWorld]:
    """What a bridge with the app `pidgin` needs: its state directory is `folder/state`."""
    async with AsyncExitStack() as stack:
        (folder / "xmpp").mkdir(parents=True)
        server = await stack.enter_async_context(xmpp_server(folder / "xmpp", buddies))
        peer = await stack.enter_async_context(xmpp_peer(folder / "received.jsonl", server))
        seed_pidgin(folder / "state", server, **seed)
        yield XmppWorld(server, peer, folder / "state")
