"""A kind of session whose tools and agent do what the test says, and the services of a process around it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolFactory
from twisted.internet.task import Clock

from ironcurtain.errors import AccountLimitReached, SessionError
from ironcurtain.escalation import EscalationRequest, Scope, arguments_digest
from ironcurtain.escalation.queue import closing_numbers
from ironcurtain.escalation.watcher import DirectoryWatcher
from ironcurtain.home.layout import Home
from ironcurtain.home.settings import Settings
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.session.manager import SessionManager
from ironcurtain.session.model import Reply, SessionRequest, Usage
from ironcurtain.session.parts import Core, Services, SessionKind
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.screen import RingScreen
from ironcurtain.view.events import describe
from ironcurtain.view.speech import LoggedSpeech
from tests.audit.doubles import at_once
from tests.escalation.doubles import no_more_files
from tests.http.direct import DIRECT
from tests.terminal.doubles import Program

NOW = 1.5e9
USAGE = Usage(input_tokens=3, output_tokens=2)


@dataclass
class Part:
    """
    Something that is started and stopped.

    :param trouble: raised by ``start``.
    :param pause: awaited by ``start``.
    :param stop_trouble: raised by ``stop``.
    :param stop_pause: awaited by ``stop``.
    """

    trouble: Exception | None = None
    pause: Deferred[None] | None = None
    stop_trouble: Exception | None = None
    stop_pause: Deferred[None] | None = None
    calls: list[str] = field(default_factory=list)

    async def start(self) -> None:
        """Start as told."""
        self.calls.append("start")
        if self.pause is not None:
            await self.pause
        if self.trouble is not None:
            raise self.trouble
        self.calls.append("up")

    async def stop(self) -> None:
        """Stop as told."""
        self.calls.append("stop")
        if self.stop_pause is not None:
            await self.stop_pause
        if self.stop_trouble is not None:
            raise self.stop_trouble


class PlainTools(Part):
    """Tools that are none."""

    unsandboxed: tuple[str, ...] = ()
    sandbox: str = ""

    @property
    def failures(self) -> dict[str, str]:
        """No server fails."""
        return {}

    @property
    def faults(self) -> dict[str, tuple[str, ...]]:
        """No server has faults."""
        return {}


@dataclass
class PlainAgent(Part):
    """Answers at once, or as the message says: ``wait``, ``ask``, ``fail``, ``limit``, ``crash``."""

    core: Core | None = None
    terminal: Hub | None = None
    model: str = ""
    waiting: list[Deferred[None]] = field(default_factory=list)

    async def respond(self, message: str) -> Reply:
        """Do what the message says."""
        assert self.core is not None
        if message == "wait":
            self.waiting.append(Deferred())
            await self.waiting[-1]
        if message == "ask":
            answer = await self.core.escalations.ask(make_request(self.core))
            return Reply(f"{answer.outcome} by {answer.by}", USAGE)
        if message == "fail":
            raise SessionError("MESSAGE_FAILED", "no model")
        if message == "limit":
            raise AccountLimitReached("a limit is reached", 100.0)
        if message == "crash":
            raise RuntimeError("a bug")
        return Reply(f"you said {message}", USAGE)

    def usage(self) -> Usage:
        """:returns: always the same."""
        return USAGE


def make_request(core: Core, arguments: dict[str, Any] | None = None, scope: Scope | None = None) -> EscalationRequest:
    """:returns: a request of a session."""
    arguments = {"remote": "origin"} if arguments is None else arguments
    digest = arguments_digest("git", "push", arguments)
    why = "leaves this machine"
    return EscalationRequest(core.id, "c1", "git", "push", arguments, why, "push", "v1", digest, scope)


class World:
    """
    One process with a home of its own.

    :param path: a directory for it.
    :param at: the home of another process to share.
    :param reactor: where time shall pass by itself.
    """

    def __init__(self, path: Path, at: Home | None = None, reactor: Any = None) -> None:
        self.clock = Clock()
        self.home = at or Home(path / "home", path / "run")
        with no_more_files():
            self.watcher = DirectoryWatcher(reactor or self.clock)
        self.services = Services(
            home=self.home,
            settings=Settings(),
            clock=reactor or self.clock,
            now=lambda: NOW + self.clock.seconds(),
            next_closing=closing_numbers(NOW),
            in_thread=at_once,
            listen=self._listen,
            watcher=self.watcher,
            redactor=Redactor(),
            proxies=DIRECT,
            describe=describe,
            spoken=LoggedSpeech,
            control_socket="/run/control.sock",
        )
        self.programs: list[Program] = []
        self.served: dict[Path, IProtocolFactory] = {}
        self.tools: list[PlainTools] = []
        self.agents: list[PlainAgent] = []
        self.next_tools, self.next_agent = PlainTools(), PlainAgent()
        self.kind = SessionKind("plain", self._make_tools, self._make_agent, no_terminal="")
        self.manager = SessionManager({"plain": self.kind}, self.services, lambda request: request.workspace or Path())

    def _make_tools(self, core: Core) -> PlainTools:
        self.tools.append(replace(self.next_tools, calls=[]))
        return self.tools[-1]

    def _make_agent(self, core: Core, tools: PlainTools) -> PlainAgent:
        hub = None
        if core.request.terminal is not None:
            self.programs.append(Program())
            hub = Hub(self.programs[-1], self.services.clock, RingScreen(), core.request.terminal)
        self.agents.append(replace(self.next_agent, core=core, terminal=hub, calls=[], waiting=[]))
        return self.agents[-1]

    async def _listen(self, path: Path, factory: IProtocolFactory) -> Part:
        self.served[path] = factory
        return Part()

    def registered(self) -> list[Path]:
        """:returns: the entries in the registry."""
        return sorted(self.home.registry.glob("*")) if self.home.registry.exists() else []


def request(**options: Any) -> SessionRequest:
    """:returns: a request for a plain session."""
    return SessionRequest("plain", **options)
