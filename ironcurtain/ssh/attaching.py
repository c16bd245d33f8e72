"""Attach an SSH channel to a session's terminal, in any process of the home."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ironcurtain.errors import NotFound
from ironcurtain.operations import Principal
from ironcurtain.session.model import Ticket
from ironcurtain.ssh.channel import ChannelProgram, SessionChannel
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.keys import DETACH, QUIT, Keys
from ironcurtain.terminal.model import Mode
from ironcurtain.terminal.viewing import Viewing
from ironcurtain.terminal.wire import Hello

GONE = 69
"""Exit status if the program's is unknown (sysexits.h, EX_UNAVAILABLE)."""


class Attaching:
    """
    Connects channels and terminals.

    :param own: returns the terminal of a session of this process, or raises :class:`~ironcurtain.errors.NotFound`.
    :param ticket: requests a ticket for that of another process.
    """

    def __init__(
        self,
        reactor: Any,
        own: Callable[[Principal, str, Mode], Hub],
        ticket: Callable[[Principal, str, Mode], Awaitable[Ticket]],
    ) -> None:
        self._reactor, self._own, self._ticket = reactor, own, ticket

    async def attach(self, who: Principal, session: str, mode: Mode, channel: SessionChannel) -> ChannelProgram:
        """
        Show the terminal of a session. Both reserved keys detach: over SSH neither ends the session.

        :raises NotFound: no process has such a session, or its program has ended.
        :raises NotAllowed: the key lacks the role.
        :raises SessionError: the session has no terminal.
        """
        leaving = _Leaving(session, channel)
        keys = Keys((QUIT, DETACH))
        viewing = Viewing(channel, self._reactor, keys, lambda name: leaving.leave(viewing), leaving.ended)
        try:
            hub = self._own(who, session, mode)
        except NotFound:
            ticket = await self._ticket(who, session, mode)
            hello = Hello(ticket.session, mode, *channel.size(), ticket.token)
            await viewing.begin_remote(self._reactor, ticket.socket, hello)
        else:
            viewing.begin(hub, mode)
        return viewing


class _Leaving:
    """The end of one attachment: the message for the person, and the client's exit status."""

    def __init__(self, session: str, channel: SessionChannel) -> None:
        self._session, self._channel = session, channel
        self._left = False

    def leave(self, viewing: Viewing) -> None:
        """The person detaches."""
        self._left = True
        viewing.leave("detached; it continues")

    def ended(self, reason: str, status: int | None) -> None:
        """The program ended."""
        self._channel.write(f"\r\nironcurtain: session {self._session}: {reason}\r\n".encode())
        self._channel.close(0 if self._left else GONE if status is None else status)
