"""What a session is built on, and how a kind of session builds on it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from twisted.internet.interfaces import IProtocolFactory, IReactorTime

from ironcurtain.audit import AuditLog
from ironcurtain.audit.log import InThread
from ironcurtain.escalation import EscalationQueue
from ironcurtain.escalation.watcher import DirectoryWatcher
from ironcurtain.home.layout import Home, SessionPaths
from ironcurtain.home.settings import Settings
from ironcurtain.process.accounts import Account, session_account
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.session import events
from ironcurtain.session.model import Reply, SessionRequest, Usage
from ironcurtain.terminal.hub import Hub


class SessionListener(Protocol):
    """A socket that is listened on."""

    async def stop(self) -> None:
        """Let nobody in any more, and remove the file."""


@dataclass(frozen=True, slots=True)
class Services:
    """
    What all sessions of a process share, all of it handed in.

    :param now: seconds since the epoch.
    :param next_closing: numbers escalations as they get their outcome.
    :param in_thread: runs a blocking function elsewhere.
    :param listen: listens on a UNIX socket that only we may use, for protocols that a factory makes.
    :param control_socket: where this process serves its control API; empty if it does not.
    :param choose_account: as whom a session with a workspace runs, ``None`` being a fresh one; it raises
        :class:`~ironcurtain.errors.ConfigurationError`.
    """

    home: Home
    settings: Settings
    clock: IReactorTime
    now: Callable[[], float]
    next_closing: Callable[[], int]
    in_thread: InThread
    listen: Callable[[Path, IProtocolFactory], Awaitable[SessionListener]]
    watcher: DirectoryWatcher
    redactor: Redactor
    control_socket: str = ""
    choose_account: Callable[[Path | None], Account] = lambda workspace: session_account(
        str(os.geteuid()), {}, workspace, os.geteuid()
    )

    def for_session(self) -> Services:
        """:returns: the same with a redactor of a session's own, for the secrets that end with it."""
        return replace(self, redactor=Redactor(base=self.redactor))


@dataclass(frozen=True, slots=True)
class Core:
    """
    The parts of a session on which its tools and its agent are built.

    :param account: as whom MCP servers, interpreter and container run.
    :param resumed: whether the session ended before, and goes on.
    """

    id: str
    request: SessionRequest
    workspace: Path
    account: Account
    resumed: bool
    paths: SessionPaths
    services: Services
    audit: AuditLog
    escalations: EscalationQueue
    emit: Callable[[events.SessionEvent], None]
    log_line: Callable[[str, str], None]
    """Writes to the session's log: what speaks, and a line of text."""
    end: Callable[[str], None]
    """Begins to end the session, for a reason."""

    @property
    def switched(self) -> Account | None:
        """The account, if it is another than ours."""
        return self.account.switched


class SessionAgent(Protocol):
    """
    Who thinks in a session.

    Either it takes messages, one at a time, where a message is cancelled by cancelling its Deferred. Or it shows a
    screen of its own in a terminal: then it has that terminal from the end of :meth:`start` on, calls
    :attr:`Core.end` when its program ends, and is given no messages.
    """

    @property
    def terminal(self) -> Hub | None:
        """Its terminal; ``None``: it takes messages."""

    async def start(self) -> None:
        """Get ready; on failure leave nothing behind."""

    async def respond(self, message: str) -> Reply:
        """
        Work on a message.

        :raises SessionError: ``MESSAGE_FAILED``, with the reason; the conversation can go on.
        """

    async def stop(self) -> None:
        """Give everything back."""

    def usage(self) -> Usage:
        """:returns: what the message that is being worked on, or was last, used so far."""


class SessionPart(Protocol):
    """What starts and stops with a session."""

    async def start(self) -> None:
        """Start it; on failure leave nothing behind."""

    async def stop(self) -> None:
        """End it."""


class Tools(SessionPart, Protocol):
    """The tools of a session: the MCP proxy, and what else an agent needs."""

    @property
    def unsandboxed(self) -> tuple[str, ...]:
        """Names of the MCP servers that run outside any sandbox, as somebody said."""

    @property
    def failures(self) -> dict[str, str]:
        """Why MCP servers are down, by their names."""


class NoTools:
    """The tools of a session whose programs bring their own along."""

    unsandboxed: tuple[str, ...] = ()

    @property
    def failures(self) -> dict[str, str]:
        """There are no servers of ours."""
        return {}

    async def start(self) -> None:
        """Nothing has to be started."""

    async def stop(self) -> None:
        """Nothing runs."""


class Project(SessionPart, Protocol):
    """What comes into the workspace before the agent starts, and what is looked at when it has ended."""

    async def settled(self) -> None:
        """Wait until the workspace is known, so that the agent may change it."""


T = TypeVar("T", bound=Tools)


async def anything_goes(request: SessionRequest) -> None:
    """The check of a kind that needs nothing besides ourselves."""


def from_anywhere(request: SessionRequest) -> None:
    """The check of a kind whose sessions need no terminal and no standard streams of ours."""


@dataclass(frozen=True, slots=True)
class SessionKind(Generic[T]):
    """
    A kind of session: how its tools and its agent are made.

    :param agent_name: stands in the label.
    :param make_agent: gets the tools once they are up.
    :param make_project: ``None``: the workspace is used as it is, and not looked at.
    :param check: raises if sessions of this kind cannot be started here, before anything is made.
    :param check_remote: raises :class:`~ironcurtain.errors.UsageError` if only a command that runs a session itself can
        start it, and the operations cannot.
    :param in_container: whether sessions of this kind count for ``max_concurrent_sessions``.
    :param no_terminal: why its agents cannot show a screen of their own in a terminal; empty: they can.
    """

    agent_name: str
    make_tools: Callable[[Core], T]
    make_agent: Callable[[Core, T], SessionAgent]
    make_project: Callable[[Core], Project] | None = None
    check: Callable[[SessionRequest], Awaitable[None]] = anything_goes
    check_remote: Callable[[SessionRequest], None] = from_anywhere
    in_container: bool = False
    no_terminal: str = "it has no screen of its own"
