"""
The operations for one principal: the interface of every front end, in this process or another.

:class:`LocalApi` binds them to a principal in this process; the control client has the same methods over a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ironcurtain.escalation import Outcome
from ironcurtain.operations.model import EscalationView, Name, PermissionView
from ironcurtain.operations.principal import Principal
from ironcurtain.session.events import Stamped
from ironcurtain.session.model import Cancelled, Reply, SessionInfo, SessionRequest, Ticket, Turn
from ironcurtain.terminal.model import Mode

if TYPE_CHECKING:
    from ironcurtain.operations.operations import Operations
    from ironcurtain.session.session import Session
    from ironcurtain.session.snapshots import UndoReport

OnEvent = Callable[[Stamped], None]


class OversightApi(Protocol):
    """
    What a person needs to oversee sessions: the lists, and the decisions.

    Errors are those of :class:`~ironcurtain.operations.operations.Operations`.
    """

    async def sessions(self) -> list[SessionInfo]:
        """:returns: all sessions of the processes."""

    async def escalations(self, closed: bool = False) -> list[EscalationView]:
        """:returns: the pending escalations, by number; with ``closed`` also closed ones."""

    async def shown(self, number: int, digest: str, calls: int = 1) -> None:
        """Report that an escalation was shown completely, so that it may be approved by its number."""

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

        :param digest: digest of the arguments that were shown; a different one is refused.
        :param keep: whether an approval covers all calls of its scope.
        :param calls: the number of equal calls shown.
        """

    async def answer(self, number: int, content: Mapping[str, Any] | None, digest: str | None = None) -> EscalationView:
        """
        Answer a form.

        :param content: its values; ``None``: it is cancelled.
        :param digest: digest of the form that was shown.
        """

    async def deny_all(self, name: Name | None = None) -> list[int]:
        """Deny all pending escalations, or those of one session; returns their numbers."""

    async def stop(self, name: Name) -> SessionInfo:
        """End a session."""

    async def permissions(self) -> list[PermissionView]:
        """:returns: the kept approvals in force."""

    async def revoke(self, number: int) -> PermissionView:
        """Revoke a kept approval: its calls are asked about again."""


class SessionApi(OversightApi, Protocol):
    """Everything that a front end can do with the sessions of one process."""

    async def start(self, request: SessionRequest, on_event: OnEvent = lambda stamped: None) -> SessionInfo:
        """
        Start a session. Cancelling ends it.

        :param on_event: called with its events until it is ready.
        """

    async def send(self, name: Name, message: str, typed: str = "") -> Reply:
        """
        Send a session a message and wait for the reply. While an agent works that keeps messages, it waits.

        :param typed: what of it a person typed, and neither pasted nor piped in.
        """

    async def cancel(self, name: Name) -> Cancelled:
        """:returns: whether there was a message to cancel, and those that waited for its end."""

    async def withdraw(self, name: Name, number: int = 0) -> str:
        """
        Take back a message that waits.

        :param number: its number in the queue; 0: the newest.
        :returns: its text.
        """

    async def undo(self, name: Name, snapshot: int, everything: bool = False) -> UndoReport:
        """
        Restore the workspace of a session from a snapshot.

        :param everything: whether to restore also what others than the agent have changed since.
        """

    async def history(self, name: Name) -> list[Turn]:
        """:returns: the turns so far."""

    async def escalations(self, closed: bool = False, after: int = 0) -> list[EscalationView]:
        """
        :param closed: include closed ones.
        :param after: only those closed after this ``closing`` number.
        :returns: the escalations of the process, by number.
        """

    async def follow(self, name: Name, after: int, on_event: OnEvent) -> Callable[[], None]:
        """
        Receive a session's events after a sequence number, and all later ones.

        :returns: a function that ends the delivery.
        """


class ProcessApi(SessionApi, Protocol):
    """Everything that can be done with the sessions of one process, from another one, too."""

    async def ticket(self, name: Name, mode: Mode) -> Ticket:
        """:returns: a ticket for attaching to a session's terminal."""


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

    async def send(self, name: Name, message: str, typed: str = "") -> Reply:
        """See :meth:`SessionApi.send`."""
        return await self._operations.send(self._who, name, message, typed)

    async def cancel(self, name: Name) -> Cancelled:
        """See :meth:`SessionApi.cancel`."""
        return self._operations.cancel(self._who, name)

    async def withdraw(self, name: Name, number: int = 0) -> str:
        """See :meth:`SessionApi.withdraw`."""
        return self._operations.withdraw(self._who, name, number)

    async def undo(self, name: Name, snapshot: int, everything: bool = False) -> UndoReport:
        """See :meth:`SessionApi.undo`."""
        return await self._operations.undo(self._who, name, snapshot, everything)

    async def stop(self, name: Name) -> SessionInfo:
        """End a session."""
        return await self._operations.stop(self._who, name)

    async def history(self, name: Name) -> list[Turn]:
        """:returns: the turns so far."""
        return self._operations.history(self._who, name)

    async def escalations(self, closed: bool = False, after: int = 0) -> list[EscalationView]:
        """:returns: the pending escalations; with ``closed`` also those closed after that number."""
        return self._operations.escalations(self._who, closed, after)

    async def shown(self, number: int, digest: str, calls: int = 1) -> None:
        """Report that an escalation was shown completely, so that it may be approved by its number."""
        self._operations.shown(self._who, number, digest, calls)

    async def decide(
        self,
        number: int,
        outcome: Outcome,
        digest: str | None = None,
        keep: bool = False,
        calls: int | None = None,
    ) -> EscalationView:
        """Answer an escalation; with ``keep``, an approval covers all calls of its scope."""
        return self._operations.decide(self._who, number, outcome, digest, keep, calls)

    async def answer(self, number: int, content: Mapping[str, Any] | None, digest: str | None = None) -> EscalationView:
        """Answer a form."""
        return self._operations.answer(self._who, number, content, digest)

    async def deny_all(self, name: Name | None = None) -> list[int]:
        """Deny all pending escalations, or those of one session; returns their numbers."""
        return self._operations.deny_all(self._who, name)

    async def permissions(self) -> list[PermissionView]:
        """:returns: the kept approvals in force."""
        return self._operations.permissions(self._who)

    async def revoke(self, number: int) -> PermissionView:
        """Revoke a kept approval."""
        return self._operations.revoke(self._who, number)

    async def ticket(self, name: Name, mode: Mode) -> Ticket:
        """:returns: a ticket for attaching to a session's terminal."""
        return self._operations.ticket(self._who, name, mode)

    async def follow(self, name: Name, after: int, on_event: OnEvent) -> Callable[[], None]:
        """Receive a session's events."""
        follower = Follower(self._operations, self._who, name, after, on_event)
        follower.more()
        return self._operations.watch(self._who, name, follower.more)


class Follower:
    """
    Delivers a session's events in order, each time it is notified of new ones.

    :param after: number of the last event that the reader has.
    """

    def __init__(self, operations: Operations, who: Principal, name: Name, after: int, on_event: OnEvent) -> None:
        self._operations, self._who, self._name = operations, who, name
        self._after, self._on_event = after, on_event
        self._reading = False

    def more(self) -> None:
        """Deliver new events."""
        if self._reading:  # the reader itself caused an event: the loop below delivers it
            return
        self._reading = True
        try:
            while stamped := self._operations.events(self._who, self._name, self._after):
                for event in stamped:
                    self._after = event.sequence
                    self._on_event(event)
        finally:
            self._reading = False
