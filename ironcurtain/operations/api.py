"""
The operations as one principal uses them: the interface of every front end, in this process or another.

:class:`LocalApi` binds them to a principal here; the control client has the same methods over a socket.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ironcurtain.escalation import Outcome
from ironcurtain.operations.model import EscalationView, PermissionView
from ironcurtain.operations.operations import Name, Operations
from ironcurtain.operations.principal import Principal
from ironcurtain.session.events import Stamped
from ironcurtain.session.model import Reply, SessionInfo, SessionRequest, Turn
from ironcurtain.session.session import Session

OnEvent = Callable[[Stamped], None]


class OversightApi(Protocol):
    """
    What a person needs to oversee sessions: the lists, and the decisions.

    Errors are those of :class:`~ironcurtain.operations.operations.Operations`.
    """

    async def sessions(self) -> list[SessionInfo]:
        """:returns: all sessions of the processes behind this."""

    async def escalations(self, closed: bool = False) -> list[EscalationView]:
        """:returns: what waits for a person, by number; with ``closed`` also what waited before."""

    async def shown(self, number: int, digest: str, calls: int = 1) -> None:
        """An escalation was shown whole: it may be approved by its number from now on."""

    async def decide(
        self,
        number: int,
        outcome: Outcome,
        digest: str | None = None,
        keep: bool = False,
        calls: int | None = None,
    ) -> EscalationView:
        """
        Answer an escalation.

        :param digest: of the arguments that were shown; another one is refused.
        :param keep: whether an approval stands for all calls of its scope.
        :param calls: how many equal calls were shown.
        """

    async def deny_all(self, name: Name | None = None) -> list[int]:
        """Deny all that waits, or all of one session; the result is the numbers."""

    async def stop(self, name: Name) -> SessionInfo:
        """End a session."""

    async def permissions(self) -> list[PermissionView]:
        """:returns: the approvals that were kept and still stand."""

    async def revoke(self, number: int) -> PermissionView:
        """End a kept approval: such calls are asked about again."""


class SessionApi(OversightApi, Protocol):
    """All that a front end can do with the sessions of one process."""

    async def start(self, request: SessionRequest, on_event: OnEvent = lambda stamped: None) -> SessionInfo:
        """
        Start a session. Whoever cancels this ends it.

        :param on_event: gets its events until it is ready.
        """

    async def send(self, name: Name, message: str) -> Reply:
        """Give a session a message and wait for the reply."""

    async def cancel(self, name: Name) -> bool:
        """:returns: whether there was a message to cancel."""

    async def history(self, name: Name) -> list[Turn]:
        """:returns: the turns so far."""

    async def escalations(self, closed: bool = False, after: int = 0) -> list[EscalationView]:
        """
        :param closed: also those that have their outcome.
        :param after: of these, only those with a greater number of closing.
        :returns: the escalations of the process behind this, by number.
        """

    async def follow(self, name: Name, after: int, on_event: OnEvent) -> Callable[[], None]:
        """
        Get a session's events after a sequence number, and all that come.

        :returns: call it to get no more.
        """


class LocalApi:
    """The operations of this process for one principal."""

    def __init__(self, operations: Operations, who: Principal) -> None:
        self._operations, self._who = operations, who

    async def sessions(self) -> list[SessionInfo]:
        """:returns: all sessions of this process."""
        return self._operations.sessions(self._who)

    async def start(self, request: SessionRequest, on_event: OnEvent = lambda stamped: None) -> SessionInfo:
        """Start a session."""
        followers: list[Callable[[], None]] = []

        def made(session: Session) -> None:
            follower = Follower(self._operations, self._who, session.id, 0, on_event)
            followers.append(self._operations.watch(self._who, session.id, follower.more))

        try:
            return await self._operations.start(self._who, request, made)
        finally:
            for unfollow in followers:
                unfollow()

    async def send(self, name: Name, message: str) -> Reply:
        """Give a session a message and wait for the reply."""
        return await self._operations.send(self._who, name, message)

    async def cancel(self, name: Name) -> bool:
        """:returns: whether there was a message to cancel."""
        return self._operations.cancel(self._who, name)

    async def stop(self, name: Name) -> SessionInfo:
        """End a session."""
        return await self._operations.stop(self._who, name)

    async def history(self, name: Name) -> list[Turn]:
        """:returns: the turns so far."""
        return self._operations.history(self._who, name)

    async def escalations(self, closed: bool = False, after: int = 0) -> list[EscalationView]:
        """:returns: what waits for a person; with ``closed`` also what was closed after that."""
        return self._operations.escalations(self._who, closed, after)

    async def shown(self, number: int, digest: str, calls: int = 1) -> None:
        """An escalation was shown whole: it may be approved by its number from now on."""
        self._operations.shown(self._who, number, digest, calls)

    async def decide(
        self,
        number: int,
        outcome: Outcome,
        digest: str | None = None,
        keep: bool = False,
        calls: int | None = None,
    ) -> EscalationView:
        """Answer an escalation; with ``keep``, an approval stands for all calls of its scope."""
        return self._operations.decide(self._who, number, outcome, digest, keep, calls)

    async def deny_all(self, name: Name | None = None) -> list[int]:
        """Deny all that waits, or all of one session; the result is the numbers."""
        return self._operations.deny_all(self._who, name)

    async def permissions(self) -> list[PermissionView]:
        """:returns: the approvals that were kept and still stand."""
        return self._operations.permissions(self._who)

    async def revoke(self, number: int) -> PermissionView:
        """Have people asked again about what an approval permits."""
        return self._operations.revoke(self._who, number)

    async def follow(self, name: Name, after: int, on_event: OnEvent) -> Callable[[], None]:
        """Hear a session's events."""
        follower = Follower(self._operations, self._who, name, after, on_event)
        follower.more()
        return self._operations.watch(self._who, name, follower.more)


class Follower:
    """
    Reads a session's events in order, as far as there are any, each time it is told that there are more.

    :param after: number of the last event that the reader has.
    """

    def __init__(self, operations: Operations, who: Principal, name: Name, after: int, on_event: OnEvent) -> None:
        self._operations, self._who, self._name = operations, who, name
        self._after, self._on_event = after, on_event
        self._reading = False

    def more(self) -> None:
        """Give the reader what is new."""
        if self._reading:  # the reader itself caused an event: the loop below comes to it
            return
        self._reading = True
        try:
            while stamped := self._operations.events(self._who, self._name, self._after):
                for event in stamped:
                    self._after = event.sequence
                    self._on_event(event)
        finally:
            self._reading = False
