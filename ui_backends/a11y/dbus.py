"""A D-Bus connection for calls with a deadline, over jeepney's Trio channel.

A call to a program that has been stopped never returns by itself, and D-Bus has no deadline of
its own: every call here has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio
from jeepney import DBusAddress, Message, MessageType, new_method_call
from jeepney.auth import BEGIN, Authenticator
from jeepney.bus import get_bus
from jeepney.bus_messages import message_bus
from jeepney.io.trio import DBusConnection
from jeepney.low_level import HeaderFields

from ui_backends.a11y.model import Ref

PROPERTIES = "org.freedesktop.DBus.Properties"
BUS = Ref("org.freedesktop.DBus", "/org/freedesktop/DBus")

OPENING = 5.0
"""Seconds that connecting and greeting a bus may take."""


class BusClosed(Exception):
    """Raised when the bus is not there, or the connection to it ended."""


class CallFailed(Exception):
    """Raised when the other side answered with an error; `name` is the D-Bus error's."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(f"{name}: {detail}")
        self.name = name


class Connection:
    """One connection; calls go one after another. Closed by the first call that is cut short."""

    def __init__(self, channel: DBusConnection) -> None:
        self._channel = channel
        self._turn = trio.Lock()
        self.closed = False

    @classmethod
    async def open(cls, address: str) -> Connection:
        """Connect and greet. Raises BusClosed."""
        try:
            with trio.fail_after(OPENING):
                return await cls._open(address)
        except trio.TooSlowError as error:
            raise BusClosed(f"{address} does not answer") from error
        except (OSError, trio.BrokenResourceError, RuntimeError, ValueError) as error:
            raise BusClosed(f"{address}: {error}") from error

    @classmethod
    async def _open(cls, address: str) -> Connection:
        stream = await trio.open_unix_socket(get_bus(address))
        try:
            await stream.send_all(b"\0")
            auth = Authenticator(enable_fds=False, inc_null_byte=False)
            for request in auth:
                await stream.send_all(request)
                auth.feed(await stream.receive_some())
            await stream.send_all(BEGIN)
            connection = cls(DBusConnection(stream.socket))
            await connection._ask(message_bus.Hello())  # must be the first message
        except BaseException:
            stream.socket.close()
            raise
        return connection

    def close(self) -> None:
        """Give the socket back; does not wait."""
        self.closed = True
        self._channel.socket.close()

    async def call(
        self,
        target: Ref,
        interface: str,
        member: str,
        signature: str | None = None,
        body: Sequence[Any] = (),
        *,
        timeout: float,
    ) -> tuple[Any, ...]:
        """Call a method; the reply's body. Raises CallFailed, BusClosed, trio.TooSlowError."""
        address = DBusAddress(target.path, bus_name=target.bus, interface=interface)
        message = new_method_call(address, member, signature, tuple(body))
        async with self._turn:
            if self.closed:
                raise BusClosed("the connection has been closed")
            with trio.fail_after(timeout):
                reply = await self._ask(message)
        if reply.header.message_type is MessageType.error:
            detail = str(reply.body[0]) if reply.body else ""
            raise CallFailed(str(reply.header.fields.get(HeaderFields.error_name, "")), detail)
        return tuple(reply.body)

    async def get(self, target: Ref, interface: str, name: str, *, timeout: float) -> Any:
        """A property's value."""
        answer = await self.call(
            target, PROPERTIES, "Get", "ss", (interface, name), timeout=timeout
        )
        return answer[0][1]

    async def _ask(self, message: Message) -> Message:
        serial = next(self._channel.outgoing_serial)
        try:
            await self._channel.send(message, serial=serial)
            while True:
                reply = await self._channel.receive()
                if reply.header.fields.get(HeaderFields.reply_serial) == serial:
                    return reply
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.EndOfChannel) as error:
            self.close()
            raise BusClosed("the bus has ended the connection") from error
        except trio.Cancelled:
            self.close()  # an answer that comes late would be taken for the next call's
            raise
