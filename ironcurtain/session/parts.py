"""What a session is built on, and how a kind of session builds on it."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from twisted.internet.interfaces import IReactorTime

from ironcurtain.accounts import Account, session_account
from ironcurtain.audit import AuditLog
from ironcurtain.audit.log import InThread
from ironcurtain.escalation import EscalationQueue
from ironcurtain.escalation.watcher import DirectoryWatcher
from ironcurtain.home import Home, SessionPaths
from ironcurtain.secrets import Redactor
from ironcurtain.session import events
from ironcurtain.session.model import Agent, SessionRequest
from ironcurtain.settings import Settings


@dataclass(frozen=True, slots=True)
class Services:
    """
    What all sessions of a process share, all of it handed in.

    :param now: seconds since the epoch.
    :param in_thread: runs a blocking function elsewhere.
    :param control_socket: where this process serves its control API; empty if it does not.
    :param choose_account: as whom a session with a workspace runs, ``None`` being a fresh one; it raises
        :class:`~ironcurtain.errors.ConfigurationError`.
    """

    home: Home
    settings: Settings
    clock: IReactorTime
    now: Callable[[], float]
    in_thread: InThread
    watcher: DirectoryWatcher
    redactor: Redactor
    control_socket: str = ""
    choose_account: Callable[[Path | None], Account] = lambda workspace: session_account(
        str(os.geteuid()), {}, workspace, os.geteuid()
    )


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
        return self.account if self.account.uid != os.geteuid() else None


class Tools(Protocol):
    """The tools of a session: the MCP proxy."""

    async def start(self) -> None:
        """Start backends and listeners."""

    async def stop(self) -> None:
        """End them all."""


class Project(Tools, Protocol):
    """What comes into the workspace before the agent starts, and what is looked at when it has ended."""

    async def settled(self) -> None:
        """Wait until the workspace is known, so that the agent may change it."""


T = TypeVar("T", bound=Tools)


async def anything_goes(request: SessionRequest) -> None:
    """The check of a kind that needs nothing besides ourselves."""


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """
    A kind of session: how its tools and its agent are made.

    :param agent_name: stands in the label.
    :param make_agent: gets the tools once they are up.
    :param make_project: ``None``: the workspace is used as it is, and not looked at.
    :param check: raises if sessions of this kind cannot be started here, before anything is made.
    :param in_container: whether sessions of this kind count for ``max_concurrent_sessions``.
    """

    agent_name: str
    make_tools: Callable[[Core], T]
    make_agent: Callable[[Core, T], Agent]
    make_project: Callable[[Core], Project] | None = None
    check: Callable[[SessionRequest], Awaitable[None]] = anything_goes
    in_container: bool = False
