"""The services and parts of a session, and the interface of a kind of session."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import msgspec
from msgspec.structs import replace
from twisted.internet.interfaces import IProtocolFactory, IReactorTime

from ironcurtain.accounts.limits import AccountLimits
from ironcurtain.approver.trusted_input import TrustedInput
from ironcurtain.audit.log import AuditLog
from ironcurtain.audit.syncing import InThread
from ironcurtain.escalation.queue import EscalationQueue
from ironcurtain.escalation.watcher import DirectoryWatcher
from ironcurtain.home.layout import Home
from ironcurtain.home.sections import Telemetry
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.home.settings import Settings
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.llm.model import TokenUsage
from ironcurtain.policy.pathmap import AGENT_WORKSPACE
from ironcurtain.process.accounts import Account, session_account
from ironcurtain.sandbox.spec import Kind
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.session import events
from ironcurtain.session.model import Reply, SessionRequest, Usage
from ironcurtain.session.snapshots import WorkspaceSnapshots
from ironcurtain.terminal.hub import Hub
from ironcurtain.traces.otlp import Export


class EventWords(Protocol):
    """An event in words."""

    @property
    def logged(self) -> str:
        """For the session's log and for recordings; not escaped."""

    @property
    def rings(self) -> bool:
        """Whether the bells of those ring who view the session's terminal."""

    @property
    def marked(self) -> bool:
        """Whether it is marked in the recording of the session's terminal."""


class SpokenLines(Protocol):
    """What an agent says and changes, as lines."""

    def lines(self, event: events.SessionEvent) -> list[str]:
        """:returns: the lines that an event completes; not escaped."""


class SessionListener(Protocol):
    """A listening socket."""

    async def stop(self) -> None:
        """Stop listening, and remove the file."""


class Services(msgspec.Struct, frozen=True):
    """
    What all sessions of a process share.

    :param clock: the reactor.
    :param now: returns seconds since the epoch.
    :param next_closing: returns the next number for a closed escalation.
    :param in_thread: runs a blocking function in a thread.
    :param listen: listens on a UNIX socket for this user only, with the protocols of a factory.
    :param proxies: upstream proxies of what connects to other hosts.
    :param describe: returns an event in words, if it has any: sessions report events, and others word them.
    :param spoken: makes, for one session, lines of what its agent says and changes.
    :param control_socket: where this process serves its control API; empty if it does not.
    :param limits: of accounts that pay, which all sessions learn from.
    :param export: returns what exports a span as the settings say, if they do.
    :param choose_account: returns the account of a session with a workspace, ``None`` being a fresh one; raises
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
    proxies: UpstreamProxies
    describe: Callable[[events.SessionEvent], EventWords | None]
    spoken: Callable[[], SpokenLines]
    control_socket: str = ""
    choose_account: Callable[[Path | None], Account] = lambda workspace: session_account(
        str(os.geteuid()), {}, workspace, os.geteuid()
    )
    export: Callable[[Telemetry, UpstreamProxies], Export | None] = lambda telemetry, proxies: None
    limits: AccountLimits = msgspec.field(default_factory=lambda: AccountLimits(time.monotonic))

    def for_session(self) -> Services:
        """:returns: a copy with a redactor of the session's own, for secrets that end with it."""
        return replace(self, redactor=Redactor(base=self.redactor))


class Core(msgspec.Struct, frozen=True):
    """
    The parts of a session that its tools and its agent use.

    :param account: the account that MCP servers, interpreter and container run as.
    :param resumed: whether the session was resumed.
    :param directory: path of the workspace for the agent, the same for all its life: agents find conversations by it.
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
    snapshots: WorkspaceSnapshots
    trusted_input: TrustedInput
    emit: Callable[[events.SessionEvent], None]
    log_line: Callable[[str, str], None]
    """Writes to the session's log: takes the source and a line of text."""
    end: Callable[[str], None]
    """Begins to end the session; takes the reason."""
    aside: list[Callable[[TokenUsage], None]] = msgspec.field(default_factory=list)
    """Count usage of models that is not the agent's; added by whoever accounts for the session."""
    payers: list[str] = msgspec.field(default_factory=list)
    """Which accounts pay for the agent's models, in words for people; added by whoever chooses them."""
    held: list[str] = msgspec.field(default_factory=list)
    """The git repositories whose settings the session holds; added by its project."""
    directory: str = AGENT_WORKSPACE

    @property
    def switched(self) -> Account | None:
        """The account, if it is not that of this process."""
        return self.account.switched

    @property
    def sandbox_kind(self) -> Kind | None:
        """What the settings choose to implement sandboxes; ``None`` for the strongest kind that works."""
        return self.services.settings.sandbox.chosen


class SessionAgent(Protocol):
    """
    The agent of a session.

    Either it accepts messages, one at a time; cancelling a message's Deferred cancels the message. Or it has a screen
    of its own in a terminal: from the end of :meth:`start` on, :attr:`terminal` is set; it calls :attr:`Core.end` when
    its program ends, and gets no messages.
    """

    @property
    def terminal(self) -> Hub | None:
        """Its terminal; ``None``: it accepts messages."""

    @property
    def model(self) -> str:
        """The name of its model; empty: the default of its program, or none was chosen yet."""

    async def start(self) -> None:
        """Get ready; on failure, undo everything."""

    async def respond(self, message: str) -> Reply:
        """
        Work on a message.

        :raises SessionError: ``MESSAGE_FAILED``, with the reason; the conversation can continue.
        """

    async def stop(self) -> None:
        """Release everything."""

    def usage(self) -> Usage:
        """:returns: the usage of the current or last message so far."""


@runtime_checkable
class PreparingAgent(Protocol):
    """An agent that can do something for its first message before there is one."""

    def prepare(self) -> None:
        """Begin to: the session is ready, and its workspace may be changed."""


class SessionPart(Protocol):
    """A part that starts and stops with a session."""

    async def start(self) -> None:
        """Start it; on failure, undo everything."""

    async def stop(self) -> None:
        """End it."""


class Tools(SessionPart, Protocol):
    """The tools of a session: the MCP proxy, and other parts that an agent needs."""

    @property
    def unsandboxed(self) -> tuple[str, ...]:
        """Names of the MCP servers that the configuration runs outside any sandbox."""

    @property
    def sandbox(self) -> str:
        """The kind of its sandboxes; empty: it has none, or none can be made."""

    @property
    def failures(self) -> dict[str, str]:
        """Why MCP servers are down, by name."""

    @property
    def faults(self) -> dict[str, tuple[str, ...]]:
        """What MCP servers sent that breaks the protocol, in sentences, by name."""


class NoTools:
    """The tools of a session whose programs bring their own along."""

    unsandboxed: tuple[str, ...] = ()
    sandbox = ""

    @property
    def failures(self) -> dict[str, str]:
        """There are no servers of ours."""
        return {}

    @property
    def faults(self) -> dict[str, tuple[str, ...]]:
        """There are no servers of ours."""
        return {}

    async def start(self) -> None:
        """Nothing has to be started."""

    async def stop(self) -> None:
        """Nothing runs."""


class Project(SessionPart, Protocol):
    """Prepares the workspace before the agent starts and before each turn, and checks it after the agent has ended."""

    async def settled(self) -> None:
        """Wait until the workspace is listed, so that the agent may change it."""

    async def before_turn(self, turn: int | None) -> None:
        """
        Take a snapshot of the workspace.

        :param turn: its number; ``None``: the agent begins to work in a terminal, without turns.
        """


T = TypeVar("T", bound=Tools)


async def anything_goes(request: SessionRequest) -> SessionRequest:
    """:returns: the same request, for a kind without requirements."""
    return request


def from_anywhere(request: SessionRequest) -> None:
    """The check of a kind whose sessions need neither this process's terminal nor its standard streams."""


class SessionKind(msgspec.Struct, Generic[T], frozen=True):
    """
    A kind of session: how to create its tools and its agent.

    :param agent_name: used in the label.
    :param make_agent: called with the tools once they are up.
    :param make_project: ``None``: the workspace is used as it is, and not checked.
    :param check: raises if sessions of this kind cannot be started here, before anything is created; returns the
        request, with what was chosen for it.
    :param check_remote: raises :class:`~ironcurtain.errors.UsageError` if only a command that runs the session itself
        can start it, not the operations.
    :param limited: returns the seconds until the account can be used that would pay for a session, as far as this
        process knows.
    :param begin: called with the agent once its session is ready, for agents that begin to work by themselves.
    :param in_container: whether sessions of this kind count for ``max_concurrent_sessions``.
    :param in_turns: whether its agents, if they have no screen of their own, work during turns only. Others take
        their own snapshots.
    :param own_spans: whether its agents export spans of their own, so that those of the events are not exported.
    :param no_terminal: why its agents cannot show a screen of their own in a terminal; empty: they can.
    :param directory: returns the path of a new session's workspace for its agent; ``None`` is a fresh one.
    """

    agent_name: str
    make_tools: Callable[[Core], T]
    make_agent: Callable[[Core, T], SessionAgent]
    make_project: Callable[[Core], Project] | None = None
    check: Callable[[SessionRequest], Awaitable[SessionRequest]] = anything_goes
    check_remote: Callable[[SessionRequest], None] = from_anywhere
    limited: Callable[[SessionRequest], float] = lambda request: 0.0
    begin: Callable[[Any], None] = lambda agent: None
    in_container: bool = False
    in_turns: bool = True
    own_spans: bool = False
    no_terminal: str = "it has no interactive interface"
    directory: Callable[[Path | None], str] = lambda workspace: AGENT_WORKSPACE
