"""Sessions with an agent that is a shell script, in real containers of a small image."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from twisted.internet import reactor as global_reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThreadPool
from twisted.trial.unittest import TestCase

from ironcurtain.agents.adapter import Facts, File, Shareable
from ironcurtain.agents.outcome import AgentAnswer, TurnFailed, TurnOutcome
from ironcurtain.agents.streams.dialogue import WholeOutput
from ironcurtain.container.engine import Engine
from ironcurtain.container.image_plans import Basis
from ironcurtain.container_agent.kind import ContainerKind
from ironcurtain.errors import IronCurtainError
from ironcurtain.escalation.queue import closing_numbers
from ironcurtain.escalation.watcher import DirectoryWatcher
from ironcurtain.home.container_section import ContainerSettings
from ironcurtain.home.layout import Home
from ironcurtain.home.sections import Resources
from ironcurtain.home.settings import Settings
from ironcurtain.process.accounts import Account
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.services import unix_socket
from ironcurtain.session.event import Event
from ironcurtain.session.manager import SessionManager
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.parts import Services, SessionKind
from ironcurtain.session.project import ProjectPart
from ironcurtain.session.session import Session
from ironcurtain.terminal.screen import Screens
from ironcurtain.view.events import describe
from ironcurtain.view.speech import LoggedSpeech
from tests import engine
from tests.audit.doubles import open_files, scratch
from tests.http.direct import DIRECT
from tests.machine import UID

reactor: Any = global_reactor

KEY = "sk-ant-api03-canary-real-key-of-nobody-0123456789"
"""What must never be seen outside of this process."""


class ScriptAgent:
    """An agent whose program is the shell, and the message its script."""

    id = display_name = image = "script"
    providers: tuple[str, ...] = ("anthropic",)
    supports_pty = True
    shareable: tuple[Shareable, ...] = ()

    def environment(self, facts: Facts) -> Mapping[str, str]:
        """:returns: what shows whether it comes through."""
        return {"AGENT_KEY": facts.fake_keys["anthropic"], "RESUMED": str(facts.resumed)}

    def files(self, facts: Facts) -> Sequence[File]:
        """:returns: one in each place, and one that is kept."""
        return (
            File("orientation", "told.md", facts.orientation),
            File("home", ".agent/settings", "ours\n"),
            File("home", ".agent/state", "fresh\n", replace=False),
        )

    def turn(self, facts: Facts, first: bool) -> tuple[str, ...]:
        """:returns: the shell, with a word that says whether it is the first message."""
        return ("sh", "-s", "first" if first else "later")

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """:returns: a shell that says how it was called, and runs what is typed."""
        return ("sh", "-c", 'echo "$0|$1|$TERM|$AGENT_KEY"; exec sh', "first" if first else "later", task)

    def dialogue(self, facts: Facts) -> WholeOutput:
        """:returns: that its output is the answer."""
        return WholeOutput(self._answer)

    def _answer(self, outcome: TurnOutcome) -> AgentAnswer:
        """:returns: what it printed; status 3 stands for a used-up quota."""
        if outcome.exit_code == 3:
            raise TurnFailed("quota", "no money")
        if outcome.exit_code:
            raise TurnFailed("failed", f"status {outcome.exit_code}: {outcome.stderr.decode()}")
        return AgentAnswer(outcome.stdout.decode(errors="replace"))


class SmallImages:
    """One small image for all agents and projects."""

    def choose(self, workspace: str, settings: ContainerSettings) -> Basis:
        """:returns: nothing in particular."""
        return Basis()

    async def ensure(self, agent: str, progress: Callable[[str], None], basis: Basis) -> str:
        """:returns: the image."""
        progress("looking for the image")
        return engine.image()


class World:
    """One process with a home of its own."""

    adapter_class, images_class, kind_class = ScriptAgent, SmallImages, ContainerKind

    def __init__(self, home: Home, settings: Settings, environ: Mapping[str, str]) -> None:
        self.home, self.adapter = home, self.adapter_class()
        self.engine = Engine(reactor, engine.engine())
        self.watcher = DirectoryWatcher(reactor)
        self.account = Account(UID, UID)
        self.services = Services(
            home=home,
            settings=settings,
            clock=reactor,
            now=time.time,
            next_closing=closing_numbers(time.time()),
            in_thread=lambda work: deferToThreadPool(reactor, reactor.getThreadPool(), work),
            listen=unix_socket.listen,
            watcher=self.watcher,
            redactor=Redactor(),
            proxies=DIRECT,
            describe=describe,
            spoken=LoggedSpeech,
            choose_account=lambda workspace: self.account,
        )
        screens = Screens(reactor)
        self.images = self.images_class()
        self.maker = kind = self.kind_class(
            self.adapter, lambda: self.engine, lambda: self.images, self.services, reactor, environ, screens
        )
        self.kind = SessionKind(
            "script",
            kind.make_tools,
            kind.make_agent,
            lambda core: ProjectPart(core, reactor, environ),
            kind.check,
            in_container=True,
            no_terminal=kind.no_terminal,
            directory=kind.directory,
        )
        self.manager = SessionManager({"script": self.kind}, self.services, lambda request: request.workspace or Path())

    async def stop(self) -> None:
        """End all sessions."""
        await self.manager.stop("the test ends")
        self.engine.close()
        self.watcher.stop()


class ContainerTestCase(TestCase):
    """Real containers; each test may take its time."""

    settings = Settings(resources=Resources(memory_mb=256, pids=64))
    world_class = World

    def setUp(self) -> None:
        engine.image()
        self.before = open_files(alone=True)
        self.top = scratch(self)
        self.home = Home(self.top / "home", self.top / "run")
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(self.top), "ANTHROPIC_API_KEY": KEY}
        self.world = self.another()

    def another(self, settings: Settings | None = None) -> World:
        """:returns: one more process with the same home."""
        world = self.world_class(self.home, settings or self.settings, self.environ)
        self.addCleanup(lambda: Deferred.fromCoroutine(world.stop()))
        return world

    async def start(self, world: World | None = None, **request: Any) -> Session:
        """Start a session."""
        return await (world or self.world).manager.create(SessionRequest("script", **request))

    async def say(self, session: Session, *lines: str) -> str:
        """:returns: what a script printed."""
        return (await session.send("\n".join(lines) + "\n")).text

    async def fails(self, work: Any) -> IronCurtainError:
        """:returns: the error with which something ends."""
        try:
            await work
        except IronCurtainError as e:
            return e
        raise self.fail("it did not fail")

    async def until(self, session: Session, kind: type[Event]) -> Any:
        """:returns: the first event of a kind, once it comes."""
        while not (found := self.seen(session, kind)):
            await deferLater(reactor, 0.02)
        return found[0]

    def seen(self, session: Session, kind: type[Event]) -> list[Any]:
        """:returns: all events of a kind."""
        return [stamped.event for stamped in session.events.after(0) if isinstance(stamped.event, kind)]

    def audit(self, session: Session, kind: str) -> list[dict[str, Any]]:
        """:returns: all records of a kind."""
        records = map(json.loads, session.paths.audit.read_text().splitlines())
        return [record for record in records if record["kind"] == kind]

    def containers(self) -> list[dict[str, Any]]:
        """:returns: the containers of this home."""
        filters = quote(json.dumps({"label": [f"ironcurtain.home={self.home.path}"]}))
        found: list[list[dict[str, Any]]] = engine.call("GET", f"/containers/json?all=1&filters={filters}")
        return found[0] if found else []

    def with_settings(self, **changes: Any) -> Settings:
        """:returns: the settings with others in their place."""
        return msgspec.structs.replace(self.settings, **changes)
