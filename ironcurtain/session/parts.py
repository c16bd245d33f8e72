"""What a session is built on, and how a kind of session builds on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from twisted.internet.interfaces import IReactorTime

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
    """

    home: Home
    settings: Settings
    clock: IReactorTime
    now: Callable[[], float]
    in_thread: InThread
    watcher: DirectoryWatcher
    redactor: Redactor
    control_socket: str = ""


@dataclass(frozen=True, slots=True)
class Core:
    """The parts of a session on which its tools and its agent are built."""

    id: str
    request: SessionRequest
    workspace: Path
    paths: SessionPaths
    services: Services
    audit: AuditLog
    escalations: EscalationQueue
    emit: Callable[[events.SessionEvent], None]
    log_line: Callable[[str, str], None]
    """Writes to the session's log: what speaks, and a line of text."""
    end: Callable[[str], None]
    """Begins to end the session, for a reason."""


class Tools(Protocol):
    """The tools of a session: the MCP proxy."""

    async def start(self) -> None:
        """Start backends and listeners."""

    async def stop(self) -> None:
        """End them all."""


T = TypeVar("T", bound=Tools)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """
    A kind of session: how its tools and its agent are made.

    :param agent_name: stands in the label.
    :param make_agent: gets the tools once they are up.
    """

    agent_name: str
    make_tools: Callable[[Core], T]
    make_agent: Callable[[Core, T], Agent]
