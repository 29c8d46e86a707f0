"""The adapter, installed as a package of its own, on Profanity, with a real server and a peer."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path

import pytest
import trio

from bridge.errors import BridgeError
from bridge.kinds import SendText
from bridge.polling import poll
from tests.support.bridge import bridge_process
from tests.support.xmpp import OWNER_JID, xmpp_world

HERE = Path(__file__).parent

_spec = importlib.util.spec_from_file_location(
    "deskbridge_profanity", HERE / "deskbridge_profanity.py"
)
assert _spec
assert _spec.loader
profanity = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(profanity)

ACCOUNT = """\
[{jid}]
enabled=true
jid={jid}
resource=deskbridge
password=pw-alice
server=127.0.0.1
port={port}
tls.policy=disable
"""


@pytest.fixture(scope="session")
def package(tmp_path_factory) -> Path:
    """A folder into which the example has been installed."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source")
    for file in ("pyproject.toml", "README.md", "deskbridge_profanity.py"):
        (source / file).write_bytes((HERE / file).read_bytes())
    argv = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    argv += ["--no-build-isolation", "--target", str(folder), str(source)]
    status = os.spawnv(os.P_WAIT, sys.executable, argv)
    assert status == 0, "pip could not install the example"
    return folder


def sign_in(world) -> None:
    """What a person does once in Profanity."""
    folder = world.state_dir / "profanity" / "data" / "profanity"
    folder.mkdir(parents=True)
    (folder / "accounts").write_text(ACCOUNT.format(jid=OWNER_JID, port=world.server.port))


def bridge(world, package, **more: str):
    return bridge_process(
        world.state_dir,
        DESKBRIDGE_APP="profanity",
        DESKBRIDGE_PROFANITY_ACCOUNT=OWNER_JID,
        PYTHONPATH=str(package),
        **more,
    )


async def signed_in(it) -> None:
    async def there() -> bool | None:
        login = (await it.http.get("/api/login")).json()
        return (login["state"], login["account"]) == ("logged_in", OWNER_JID) or None

    assert await poll(there, 60), it.log()


TEXTS = [
    "hello",
    "你好 🎉",
    'he said "no"',
    "/quit",
    "-x 'a' \\n",
    "two  spaces",
    "long " * 60 + ".",
]


async def test_texts_arrive_once_in_order_and_exactly(tmp_path, package):
    with trio.fail_after(240):
        async with xmpp_world(tmp_path) as world:
            sign_in(world)
            async with bridge(world, package) as it:
                await signed_in(it)
                expected = []
                for n, text in enumerate(TEXTS):
                    user = ("bob", "bobby")[n % 2]
                    answer = await it.send(f"{user}@localhost", text)
                    assert answer.status_code == 200, answer.text
                    assert answer.json()["result"]["message"]
                    expected.append((user, text))
                assert await world.peer.arrived(len(TEXTS)) == expected


async def test_what_it_refuses_never_leaves(tmp_path, package):
    with trio.fail_after(180):
        async with xmpp_world(tmp_path) as world:
            sign_in(world)
            async with bridge(world, package) as it:
                await signed_in(it)
                unknown = await it.send("Bob", "no")
                assert (unknown.status_code, unknown.json()["code"]) == (404, "CONTACT_NOT_FOUND")
                lines = await it.send("bob@localhost", "one\ntwo")
                assert (lines.status_code, lines.json()["code"]) == (422, "INVALID_REQUEST")
                assert (await it.send("bob@localhost", "yes")).status_code == 200
                assert await world.peer.arrived(1) == [("bob", "yes")]


async def test_a_killed_app_comes_back_and_goes_on(tmp_path, package):
    with trio.fail_after(240):
        async with xmpp_world(tmp_path) as world:
            sign_in(world)
            async with bridge(world, package) as it:
                await signed_in(it)
                assert (await it.send("bob@localhost", "one")).status_code == 200
                os.kill(it.record("app"), signal.SIGKILL)
                later = await it.send("bob@localhost", "two", Prefer="respond-async")
                assert later.status_code == 202
                await it.settled()
                assert await world.peer.arrived(2) == [("bob", "one"), ("bob", "two")]


async def test_without_a_server_it_is_offline(tmp_path, package):
    with trio.fail_after(180):
        async with xmpp_world(tmp_path) as world:
            sign_in(world)
            async with bridge(world, package) as it:
                await signed_in(it)
                await world.server.stop()

                async def offline() -> bool | None:
                    state = (await it.http.get("/api/login")).json()["state"]
                    return state == "offline" or None

                assert await poll(offline, 60)
                refused = await it.send("bob@localhost", "no")
                assert (refused.status_code, refused.json()["code"]) == (503, "APP_NOT_READY")


@pytest.mark.parametrize("to", ["Bob", "bob@", "@localhost", "bob@local host", 'b"b@localhost'])
def test_what_is_no_address(to):
    with pytest.raises(BridgeError, match="address"):
        profanity.check(SendText(to=to, text="x"))


@pytest.mark.parametrize("text", [" a", "a ", "a\nb", '"a" b', "a\x07b", "a\u2028b"])
def test_texts_that_would_change_on_the_way(text):
    with pytest.raises(BridgeError, match="one line"):
        profanity.check(SendText(to="bob@localhost", text=text))


@pytest.mark.parametrize(
    ("title", "account"),
    [
        ("Profanity", None),
        ("Profanity - a@b/c", "a@b"),
        ("Profanity (3) - a@b/c - d", "a@b"),
    ],
)
def test_who_is_connected_by_the_title(title, account):
    assert profanity.account_of(title) == account
