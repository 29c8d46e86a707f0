"""The commands against a real server: what they send, print, write, and how they end."""

from __future__ import annotations

import io
import json
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import trio

from bridge.cli import main
from bridge.config import Settings
from tests.support.fakecore import PICTURE, TOKEN, FakeCore
from tests.support.serving import Site, serving, until

LIMIT = 20


def no_serve(settings: Settings) -> int:
    raise AssertionError("serve was not asked for")


async def run(site: Site, *argv: str, token: str = TOKEN) -> int:
    """The command in a thread of its own, as it blocks."""
    words = [argv[0], "--url", site.url, "--token", token, *argv[1:]]
    return await trio.to_thread.run_sync(lambda: main(serve=no_serve, argv=words))


@pytest.fixture
def core() -> FakeCore:
    return FakeCore()


async def test_send_is_told_and_carries_a_key(core: FakeCore, capsys: pytest.CaptureFixture[str]):
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            assert await run(site, "send", "张三", "hello\nworld") == 0
    request = core.requests[0]
    assert request.params == {"to": "张三", "text": "hello\nworld"}
    assert request.idempotency_key
    assert not request.respond_async
    assert capsys.readouterr().out == "sent (action a1, 0.0 s)\n"


async def test_send_takes_key_wait_and_async(core: FakeCore, capsys: pytest.CaptureFixture[str]):
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            status = await run(
                site, "send", "--key", "k1", "--async", "--wait", "2", "Alice", "--", "-x"
            )
    assert status == 0
    request = core.requests[0]
    assert (request.idempotency_key, request.respond_async, request.wait) == ("k1", True, 2.0)
    assert request.params["text"] == "-x"
    assert capsys.readouterr().out == "accepted: pending, waits: gap (action a1)\n"


async def test_send_reads_stdin(core: FakeCore, monkeypatch: pytest.MonkeyPatch):
    given = io.BytesIO("line 1\nline 2 🎉\n".encode())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=given))
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            assert await run(site, "send", "Alice", "-") == 0
    assert core.requests[0].params["text"] == "line 1\nline 2 🎉"


async def test_send_as_json(core: FakeCore, capsys: pytest.CaptureFixture[str]):
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            assert await run(site, "send", "--json", "Alice", "hi") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["action"]["state"] == "succeeded"
    assert document["result"] == {"message": "m1"}


@pytest.mark.parametrize(
    ("text", "code", "status"),
    [
        ("error NOT_LOGGED_IN", "NOT_LOGGED_IN", 1),
        ("error RATE_LIMITED", "RATE_LIMITED", 1),
        ("state failed FOCUS_LOST", "FOCUS_LOST", 1),
        ("state uncertain", "UNCERTAIN", 5),
        ("bug", "INTERNAL", 5),
    ],
)
async def test_errors_have_code_sentence_and_status(
    core: FakeCore, capsys: pytest.CaptureFixture[str], text: str, code: str, status: int
):
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            assert await run(site, "send", "Alice", text) == status
            said = capsys.readouterr()
            assert said.err.startswith(f"deskbridge: {code}: ")
            assert said.out == ""
            assert await run(site, "send", "--json", "Alice", text) == status
            said = capsys.readouterr()
            assert json.loads(said.out)["code"] == code
            assert said.err == ""


async def test_a_hint_to_try_again(core: FakeCore, capsys: pytest.CaptureFixture[str]):
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            await run(site, "send", "Alice", "error APP_NOT_READY")
    assert "try again in 3 s" in capsys.readouterr().err


async def test_wrong_params_say_what_is_wrong(core: FakeCore, capsys: pytest.CaptureFixture[str]):
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            assert await run(site, "send", "Alice", "") == 1
    said = capsys.readouterr().err
    assert said.startswith("deskbridge: INVALID_REQUEST: ")
    assert "text" in said


async def test_a_wrong_token(core: FakeCore, capsys: pytest.CaptureFixture[str]):
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            assert await run(site, "send", "Alice", "hi", token="wrong") == 4
            assert await run(site, "watch", token="wrong") == 4
            assert await run(site, "watch", "--once", token="wrong") == 4
    assert capsys.readouterr().err.count("UNAUTHORIZED") == 3


async def test_no_bridge_there(capsys: pytest.CaptureFixture[str]):
    with trio.fail_after(LIMIT):
        async with serving(FakeCore()) as site:
            pass
        assert await run(site, "send", "Alice", "hi") == 3
        assert await run(site, "watch", "--once") == 3
    assert capsys.readouterr().err.count("UNREACHABLE: no bridge answers at") == 2


async def test_a_server_that_is_no_bridge(capsys: pytest.CaptureFixture[str]):
    async def answer(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nhi")

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, answer, listeners)
            site = Site(listeners[0].socket.getsockname()[1])
            assert await run(site, "send", "Alice", "hi") == 3
            nursery.cancel_scope.cancel()
    assert "not as a bridge does" in capsys.readouterr().err


async def test_an_answer_that_does_not_come_names_the_key(capsys: pytest.CaptureFixture[str]):
    async def hang_up(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.aclose()

    with trio.fail_after(LIMIT):
        async with trio.open_nursery() as nursery:
            listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
            nursery.start_soon(trio.serve_listeners, hang_up, listeners)
            site = Site(listeners[0].socket.getsockname()[1])
            assert await run(site, "send", "--key", "k7", "Alice", "hi") == 5
            nursery.cancel_scope.cancel()
    said = capsys.readouterr().err
    assert said.startswith("deskbridge: UNKNOWN: ")
    assert "--key k7" in said


async def test_screenshot_into_a_file(
    core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "a.jpg"
    file.write_text("old")
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            assert (
                await run(
                    site, "screenshot", str(file), "--window", "Chat", "--region", "1,2,30x40"
                )
                == 0
            )
    assert file.read_bytes() == PICTURE
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(file.stat().st_mode) == 0o666 & ~umask
    assert os.listdir(tmp_path) == ["a.jpg"]
    params = core.requests[0].params
    assert params["format"] == "jpeg"
    assert params["window"] == "Chat"
    assert params["region"] == {"x": 1, "y": 2, "width": 30, "height": 40}
    assert capsys.readouterr().out == f"{file} ({len(PICTURE):,} bytes, image/png)\n"


async def test_screenshot_as_json_and_by_default_name(
    core: FakeCore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            assert await run(site, "screenshot", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (tmp_path / told["file"]).read_bytes() == PICTURE
    assert told["action"] == "a1"
    assert told["bytes"] == len(PICTURE)


async def test_screenshot_to_stdout(core: FakeCore, capfdbinary: pytest.CaptureFixture[bytes]):
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            assert await run(site, "screenshot", "-") == 0
    assert capfdbinary.readouterr().out == PICTURE


async def test_a_picture_that_cannot_be_written(
    core: FakeCore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            assert await run(site, "screenshot", str(tmp_path / "missing" / "a.png")) == 1
    assert "cannot write" in capsys.readouterr().err


async def test_leaving_a_waiting_send_takes_it_back(core: FakeCore):
    """Ctrl+C at the terminal: the bridge sees that its caller has gone."""
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            command = [
                sys.executable,
                "-c",
                "from routes.main import main; raise SystemExit(main())",
            ]
            words = ["send", "--url", site.url, "--token", TOKEN, "Alice", "wait"]
            async with trio.open_nursery() as nursery:
                process = await nursery.start(_process, [*command, *words])
                await until(lambda: core.waiters == 1)
                process.send_signal(2)
                await process.wait()
            assert process.returncode == 130
            await until(lambda: core.hung_up == 1)


async def _process(
    command: list[str], *, task_status: trio.TaskStatus[trio.Process] = trio.TASK_STATUS_IGNORED
) -> None:
    await trio.run_process(command, check=False, capture_stderr=True, task_status=task_status)


def test_the_local_bridge_is_found_by_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("DESKBRIDGE_STATE_DIR", str(tmp_path))
    monkeypatch.delenv("DESKBRIDGE_URL", raising=False)
    monkeypatch.delenv("DESKBRIDGE_TOKEN", raising=False)
    assert main(serve=no_serve, argv=["send", "Alice", "hi"]) == 3
    assert f"there is no {tmp_path / 'port'}" in capsys.readouterr().err


async def test_the_local_bridge_answers(
    core: FakeCore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("DESKBRIDGE_URL", raising=False)
    monkeypatch.delenv("DESKBRIDGE_TOKEN", raising=False)
    # A proxy for everybody else must not get what is meant for this machine.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with trio.fail_after(LIMIT):
        async with serving(core) as site:
            (tmp_path / "port").write_text(f"{site.port}\n")
            (tmp_path / "token").write_text(f"{TOKEN}\n")
            words = ["send", "--state-dir", str(tmp_path), "Alice", "hi"]
            assert await trio.to_thread.run_sync(lambda: main(serve=no_serve, argv=words)) == 0


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["send", "Alice"],
        ["send", "--wait", "-1", "Alice", "hi"],
        ["screenshot", "--region", "1,2,3"],
        ["screenshot", "--format", "gif"],
        ["nonsense"],
    ],
)
def test_wrong_usage(words: list[str]):
    with pytest.raises(SystemExit) as caught:
        main(serve=no_serve, argv=words)
    assert caught.value.code == 2


@pytest.mark.parametrize("url", ["127.0.0.1:8655", "ftp://h", "http://", "http://h/?x=1"])
def test_an_address_that_is_none(url: str, capsys: pytest.CaptureFixture[str]):
    assert main(serve=no_serve, argv=["send", "--url", url, "--token", "t", "A", "b"]) == 2
    assert "UNUSABLE" in capsys.readouterr().err


def test_serve_gets_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DESKBRIDGE_APP", "pidgin")
    got: list[Settings] = []

    def serve(settings: Settings) -> int:
        got.append(settings)
        return 7

    words = ["serve", "--port", "0", "--state-dir", str(tmp_path), "--display", ":42"]
    assert main(serve=serve, argv=words) == 7
    settings = got[0]
    assert (settings.port, settings.display, settings.app) == (0, ":42", "pidgin")
    assert settings.state_dir == tmp_path


def test_serve_says_which_setting_is_wrong(capsys: pytest.CaptureFixture[str]):
    assert main(serve=no_serve, argv=["serve", "--port", "eighty"]) == 2
    assert "DESKBRIDGE_PORT" in capsys.readouterr().err
