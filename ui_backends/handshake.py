"""The first bytes of an X connection, with deadlines that python-xlib does not know."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import closing
from typing import Any

from Xlib.error import DisplayError
from Xlib.support import connect

from ui_backends.base import DisplayDead

_SUCCESS = 1


def handshake(display: str, timeout: float) -> tuple[int, str]:
    """Connect, send the X setup request, and read the first bytes of the answer; blocks.

    Returns (status, reason): 1 is success, 0 a refusal ("Maximum number of clients reached").
    Raises DisplayDead when nothing answers within `timeout` seconds. python-xlib itself cannot
    be interrupted while it connects, so this goes first.
    """
    try:
        name, protocol, host, number, _screen = connect.get_display(display)
        kind: Any = protocol
        with closing(_connect(host, number, timeout)) as sock:
            auth_name, auth_data = connect.get_auth(sock, name, kind, host, number)
            sock.sendall(_setup_request(_as_bytes(auth_name), _as_bytes(auth_data)))
            head = _receive(sock, 8)
            reason = _receive(sock, head[1]) if head[0] != _SUCCESS else b""
            return head[0], reason.decode("latin-1")
    except (OSError, DisplayError) as error:
        raise DisplayDead(f"display {display} does not answer: {error}") from error


def _as_bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


def _connect(host: str | None, number: int, timeout: float) -> socket.socket:
    if host and host != "unix":
        return socket.create_connection((host, 6000 + number), timeout)
    path = f"/tmp/.X11-unix/X{number}"
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.connect(path if os.path.exists(path) else f"\0{path}")
    except OSError:
        sock.close()
        raise
    return sock


def _setup_request(auth_name: bytes, auth_data: bytes) -> bytes:
    def pad(data: bytes) -> bytes:
        return data + bytes(-len(data) % 4)

    head = struct.pack("<BxHHHHxx", 0x6C, 11, 0, len(auth_name), len(auth_data))
    return head + pad(auth_name) + pad(auth_data)


def _receive(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        chunk = sock.recv(count - len(data))
        if not chunk:
            raise ConnectionError("closed during the setup")
        data += chunk
    return data
