"""Connections to D-Bus on which no call waits for long: any program can be at the other end, and it may hang."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ironcurtain.servers.desktop.model import DesktopError, PermissionMissing, Unsupported, extra, shown

CALL_SECONDS = 2.0
"""How long one call may take."""

CONNECT_SECONDS = 5.0
"""How long a connection may take; the bus may start a program first."""

AT_ONCE = 32
"""Most calls that wait for answers; the library loses a connection whose buffer is full."""

NOTIFICATIONS = "org.freedesktop.Notifications"
"""Name of who shows notifications."""

_DAEMON = ("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus")


def session_address(environ: Mapping[str, str]) -> str:
    """
    :returns: the address of the bus of a login session.
    :raises Unsupported: there is none.
    """
    if address := environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return address
    if (directory := environ.get("XDG_RUNTIME_DIR")) and os.path.exists(path := os.path.join(directory, "bus")):
        return f"unix:path={path}"
    raise Unsupported("there is no session bus: DBUS_SESSION_BUS_ADDRESS is not set")


_GONE = frozenset(
    f"org.freedesktop.DBus.Error.{name}" for name in ("Disconnected", "NameHasNoOwner", "NoReply", "ServiceUnknown")
)
"""Errors of the bus itself, about who should answer."""


class NoAnswer(DesktopError):
    """The program at the other end did not answer in time, or has ended. What was asked may have happened."""


class Unreachable(Unsupported):
    """There is a bus, and it does not let us in: what it could tell is not known."""


class Bus:
    """
    One connection. It belongs to the running event loop.

    :param address: of a bus.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._bus: Any = None
        self._free = asyncio.Semaphore(AT_ONCE)

    async def __aenter__(self) -> Bus:
        """:raises DesktopError: there is no such bus."""
        client = extra("dbus_fast.aio").MessageBus
        try:
            self._bus = await asyncio.wait_for(client(bus_address=self._address).connect(), CONNECT_SECONDS)
        except PermissionError:
            raise PermissionMissing(
                "the desktop belongs to another account: run IronCurtain as that, or set run_as in config.toml"
            ) from None
        except Exception as e:  # it raises many kinds
            why = f"it does not answer within {CONNECT_SECONDS:g} seconds" if isinstance(e, TimeoutError) else str(e)
            raise Unreachable(f"D-Bus cannot be reached: {shown(why or type(e).__name__, 200)}") from None
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._bus is not None:
            self._bus.disconnect()
            with suppress(EOFError, OSError):  # it was lost before
                await asyncio.wait_for(self._bus.wait_for_disconnect(), CONNECT_SECONDS)

    async def call(
        self,
        target: tuple[str, str, str],
        member: str,
        returned: str,
        signature: str = "",
        body: Sequence[Any] = (),
        seconds: float = CALL_SECONDS,
    ) -> list[Any]:
        """
        :param target: name on the bus, path of the object, interface.
        :param returned: signature of the answer (D-Bus Specification, "Type System").
        :param signature: of ``body``.
        :returns: the values of the answer.
        :raises NoAnswer: there was none in time, or nobody is there any more.
        :raises DesktopError: it was an error, or has another signature.
        """
        from dbus_fast import Message, MessageType

        destination, path, interface = target
        message = Message(
            destination=destination, path=path, interface=interface, member=member, signature=signature, body=list(body)
        )
        try:
            async with self._free:
                answer = await asyncio.wait_for(self._bus.call(message), seconds)
        except TimeoutError:
            raise NoAnswer(f"the application does not answer within {seconds:g} seconds") from None
        except (EOFError, OSError) as e:
            raise NoAnswer(f"D-Bus was lost: {shown(str(e), 200)}") from None
        if answer is not None and answer.error_name in _GONE:
            raise NoAnswer("the application has ended, or is not on D-Bus any more")
        if answer is None or answer.message_type is MessageType.ERROR:
            said = "" if answer is None else f"{answer.error_name}: {answer.body[0] if answer.body else ''}"
            raise DesktopError(f"the application refuses: {shown(said, 300)}")
        if answer.signature != returned:
            raise DesktopError(f"the application answers {member} with {shown(answer.signature, 40) or 'nothing'}")
        return list(answer.body)

    async def process(self, name: str) -> int:
        """
        :returns: id of the process that has a name on the bus, as the kernel told it to the bus.
        :raises DesktopError: nobody has it.
        """
        (pid,) = await self.call(_DAEMON, "GetConnectionUnixProcessID", "u", "s", [name])
        return int(pid)

    async def has_owner(self, name: str) -> bool:
        """:returns: whether somebody has a name on the bus now."""
        (found,) = await self.call(_DAEMON, "NameHasOwner", "b", "s", [name])
        return bool(found)

    async def owner(self, name: str) -> str:
        """
        :returns: the name of the connection that has another name.
        :raises DesktopError: none has it.
        """
        (found,) = await self.call(_DAEMON, "GetNameOwner", "s", "s", [name])
        return str(found)

    async def startable(self) -> list[str]:
        """:returns: the names whose programs the bus starts when they are called."""
        (found,) = await self.call(_DAEMON, "ListActivatableNames", "as")
        return [str(name) for name in found]

    async def take_signals(self, rule: str, taker: Any) -> None:
        """:param taker: is called with each message that the match rule lets through."""
        self._bus.add_message_handler(taker)
        await self.call(_DAEMON, "AddMatch", "", "s", [rule])
