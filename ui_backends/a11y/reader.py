"""Reads programs' accessibility trees, each call with a deadline."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

from ui_backends.a11y.dbus import BUS, PROPERTIES, BusClosed, CallFailed, Connection
from ui_backends.a11y.model import AccessibleApp, Element, Limits, Ref, Tree, states_of
from ui_backends.base import Region, UiError

CALL = 1.0
"""Seconds in which a program that runs answers one call."""

ACTIVATION = 5.0
"""Seconds that the accessibility bus may take to come up at the first question."""

_ATSPI = "org.a11y.atspi."
_LAUNCHER = Ref("org.a11y.Bus", "/org/a11y/bus")
_DESKTOP = Ref("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
_NULL = "/org/a11y/atspi/null"
_SCREEN = 0
_GONE = ("UnknownObject", "UnknownMethod", "UnknownInterface", "NameHasNoOwner", "ServiceUnknown")


class A11yUnavailable(UiError):
    """Raised when there is no accessibility bus; says why."""

    executed = False


class AppSilent(UiError):
    """Raised when the program does not answer in time: it hangs, was stopped, or is very busy."""

    executed = False


class ElementGone(UiError):
    """Raised when the element, or its program, is not there any more."""

    executed = False


class A11yReader:
    """Reads by way of one session bus. Make it with `open_a11y`.

    The connection is made at the first question and made anew when it was lost, so the bus may
    come later than the reader and may be restarted under it.
    """

    def __init__(self, session_bus: str, *, call: float = CALL) -> None:
        self.session_bus = session_bus
        self._call_time = call
        self._opening = trio.Lock()
        self._connection: Connection | None = None

    def close(self) -> None:
        """End the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # -- what can be asked ---------------------------------------------------------------

    async def apps(self) -> list[AccessibleApp]:
        """Programs that offer their tree. One that does not answer is left out."""
        found = []
        for ref in await self._children(_DESKTOP):
            try:
                name = await self._get(ref, "Accessible", "Name")
                (pid,) = await self._call(
                    BUS, BUS.bus, "GetConnectionUnixProcessID", "s", (ref.bus,)
                )
            except (AppSilent, ElementGone):
                continue
            found.append(AccessibleApp(ref, str(name), int(pid)))
        return found

    async def app(self, pid: int) -> AccessibleApp | None:
        """The program that is process `pid`; None when it offers no tree.

        Asks the bus for pids first, so that another program that hangs costs nothing.
        """
        for ref in await self._children(_DESKTOP):
            try:
                (owner,) = await self._call(
                    BUS, BUS.bus, "GetConnectionUnixProcessID", "s", (ref.bus,)
                )
            except ElementGone:
                continue
            if owner == pid:
                return AccessibleApp(ref, str(await self._get(ref, "Accessible", "Name")), pid)
        return None

    async def tree(self, root: Ref, limits: Limits = Limits()) -> Tree:  # noqa: B008
        """Everything below `root`, within the limits; elements that vanish meanwhile are left out.

        Raises AppSilent, ElementGone (of the root), A11yUnavailable.
        """
        walk = _Walk(self, limits)
        element = await walk.read(root, 0)
        if element is None:
            raise ElementGone(f"{root.path} is gone")
        return Tree(element, walk.complete, walk.count)

    async def element(self, ref: Ref, text_limit: int = Limits().text) -> Element:
        """One element afresh, without its children. Raises ElementGone, AppSilent."""
        interfaces: Sequence[str] = (await self._ask(ref, "Accessible", "GetInterfaces"))[0]
        (role,) = await self._ask(ref, "Accessible", "GetRoleName")
        name = await self._get(ref, "Accessible", "Name")
        ((low, high),) = await self._ask(ref, "Accessible", "GetState")
        text = await self.text(ref, text_limit) if f"{_ATSPI}Text" in interfaces else None
        actions = await self._actions(ref) if f"{_ATSPI}Action" in interfaces else ()
        return Element(ref, str(role), str(name), states_of(low, high), text, actions)

    async def text(self, ref: Ref, limit: int = Limits().text) -> str:
        """The element's text; of a longer one the last `limit` characters."""
        count = int(await self._get(ref, "Text", "CharacterCount"))
        begin = max(0, count - limit)
        (text,) = await self._ask(ref, "Text", "GetText", "ii", (begin, count))
        return str(text)

    async def region(self, ref: Ref) -> Region:
        """Where the element is, in screen pixels."""
        ((x, y, width, height),) = await self._ask(ref, "Component", "GetExtents", "u", (_SCREEN,))
        return Region(x, y, width, height)

    async def _actions(self, ref: Ref) -> tuple[str, ...]:
        (actions,) = await self._ask(ref, "Action", "GetActions")
        return tuple(str(action[0]) for action in actions)

    async def _children(self, ref: Ref) -> list[Ref]:
        (found,) = await self._ask(ref, "Accessible", "GetChildren")
        return [Ref(*child) for child in found if child[1] != _NULL]

    # -- calls ---------------------------------------------------------------------------

    async def _ask(self, ref: Ref, interface: str, member: str, *rest: Any) -> tuple[Any, ...]:
        return await self._call(ref, _ATSPI + interface, member, *rest)

    async def _get(self, ref: Ref, interface: str, name: str) -> Any:
        answer = await self._call(ref, PROPERTIES, "Get", "ss", (_ATSPI + interface, name))
        return answer[0][1]

    async def _call(
        self,
        ref: Ref,
        interface: str,
        member: str,
        signature: str | None = None,
        body: Sequence[Any] = (),
    ) -> tuple[Any, ...]:
        connection = await self._connected()
        try:
            return await connection.call(
                ref, interface, member, signature, body, timeout=self._call_time
            )
        except CallFailed as error:
            if error.name.endswith(_GONE):
                raise ElementGone(f"{ref.path}: {error}") from error
            raise AppSilent(f"{member}: {error}") from error
        except trio.TooSlowError as error:
            raise AppSilent(f"no answer to {member} within {self._call_time:g} s") from error
        except BusClosed as error:
            raise A11yUnavailable(f"the accessibility bus: {error}") from error

    async def _connected(self) -> Connection:
        async with self._opening:
            if self._connection is None or self._connection.closed:
                self._connection = await self._connect()
            return self._connection

    async def _connect(self) -> Connection:
        """By way of the session bus, which starts the accessibility bus when first asked."""
        try:
            session = await Connection.open(self.session_bus)
        except BusClosed as error:
            raise A11yUnavailable(f"the session bus: {error}") from error
        try:
            (address,) = await session.call(
                _LAUNCHER, "org.a11y.Bus", "GetAddress", timeout=ACTIVATION
            )
            # Qt offers its tree only where somebody says that it is wanted.
            wanted = ("org.a11y.Status", "IsEnabled", ("b", True))
            await session.call(_LAUNCHER, PROPERTIES, "Set", "ssv", wanted, timeout=ACTIVATION)
            return await Connection.open(address)
        except CallFailed as error:
            raise A11yUnavailable(f"{error}; at-spi2-core brings the service") from error
        except (BusClosed, trio.TooSlowError) as error:
            raise A11yUnavailable(f"the accessibility bus: {error or 'no answer'}") from error
        finally:
            session.close()


class _Walk:
    """One reading of a tree."""

    def __init__(self, reader: A11yReader, limits: Limits) -> None:
        self._reader = reader
        self._limits = limits
        self.count = 0
        self.complete = True

    async def read(self, ref: Ref, depth: int) -> Element | None:
        """The element and what is below it; None when it has gone meanwhile."""
        if self.count >= self._limits.elements:
            self.complete = False
            return None
        self.count += 1
        try:
            element = await self._reader.element(ref, self._limits.text)
            refs = await self._reader._children(ref)
        except ElementGone:
            return None
        if depth >= self._limits.depth and refs:
            self.complete, refs = False, []
        if len(refs) > self._limits.children:
            self.complete, refs = False, refs[-self._limits.children :]
        children = [await self.read(child, depth + 1) for child in refs]
        return Element(
            element.ref,
            element.role,
            element.name,
            element.states,
            element.text,
            element.actions,
            tuple(child for child in children if child is not None),
        )


@asynccontextmanager
async def open_a11y(session_bus: str, *, call: float = CALL) -> AsyncIterator[A11yReader]:
    """A reader on a session bus, by its D-Bus address; connects when it is first asked.

    Args:
        session_bus: such as `unix:path=/run/user/1000/bus`.
        call: seconds that one call may take.
    """
    reader = A11yReader(session_bus, call=call)
    try:
        yield reader
    finally:
        reader.close()
