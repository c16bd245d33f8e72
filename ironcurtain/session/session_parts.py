"""The parts of a session: starts them in their order, and stops them in reverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from twisted.internet.defer import maybeDeferred, succeed

from ironcurtain.approver.trusted_input import InputSource, TrustedInput
from ironcurtain.audit.log import AuditLog
from ironcurtain.escalation.queue import EscalationQueue
from ironcurtain.process.accounts import Account
from ironcurtain.services.lifecycle import Lifecycle, started
from ironcurtain.session import events
from ironcurtain.session.identity import Identity
from ironcurtain.session.model import SessionInfo
from ironcurtain.session.parts import Core, PreparingAgent, Project, Services, SessionAgent, SessionKind, Tools
from ironcurtain.session.records import (
    Registration,
    close_audit,
    entry,
    make_snapshots,
    make_trusted_input,
    make_witnesses,
    open_audit,
    publish_escalations,
)
from ironcurtain.session.session_files import SessionFiles
from ironcurtain.session.snapshots import WorkspaceSnapshots
from ironcurtain.session.terminal import SharedTerminal


class StartedParts(msgspec.Struct):
    """What has started so far. It stays known when the session has ended."""

    audit: AuditLog | None = None
    snapshots: WorkspaceSnapshots | None = None
    project: Project | None = None
    tools: Tools | None = None
    agent: SessionAgent | None = None
    terminal: SharedTerminal | None = None


class Callbacks(msgspec.Struct, frozen=True):
    """
    What parts tell their session.

    :param emit: takes events.
    :param end: begins to end the session; takes the reason.
    :param info: returns the session's description.
    """

    emit: Callable[[events.SessionEvent], None]
    end: Callable[[str], None]
    info: Callable[[], SessionInfo]


class SessionParts:
    """
    :param escalations: the session's queue.
    :ivar up: what has started.
    :ivar trusted_input: what the user types.
    :ivar payers: which accounts pay for the agent's models, in words.
    """

    def __init__(
        self,
        kind: SessionKind[Any],
        known: Identity,
        services: Services,
        escalations: EscalationQueue,
        session: Callbacks,
    ) -> None:
        self.kind, self._known, self._services = kind, known, services
        self._escalations, self._session = escalations, session
        self.trusted_input: TrustedInput = make_trusted_input(known.paths, services)
        self.files, self.up = SessionFiles(known, services), StartedParts()
        self._life = Lifecycle(services.clock)
        self.payers: list[str] = []

    async def start(self) -> None:
        """
        Start all parts.

        :raises StartFailed: one did not start; all are stopped again.
        """
        account = await self._start_records()
        core = self._core(account)
        await self._start_project(core)
        tools = await self._life.start(
            "the MCP proxy", lambda: started(self.kind.make_tools(core)), lambda part: part.stop()
        )
        self.up.tools = tools
        has_terminal = self._known.request.terminal is not None
        if has_terminal:  # its program may start to work immediately
            self.trusted_input.add(self._known.request.typed, InputSource.TASK, self._known.request.task)
            await self._settle()
            if self.kind.in_turns:
                await self.before_turn(None)
        await self._start_agent(core, tools)
        if not has_terminal:
            await self._settle()
            if isinstance(self.up.agent, PreparingAgent):
                self.up.agent.prepare()
        listed = Registration(
            self._services.home, entry(self._session.info(), self._known.paths, self._services.control_socket)
        )
        await self._life.start("the registry entry", lambda: started(listed), lambda part: part.stop())

    async def stop(self) -> None:
        """Stop them all."""
        await self._life.stop()

    async def before_turn(self, turn: int | None) -> None:
        """See :meth:`~ironcurtain.session.parts.Project.before_turn`."""
        if self.up.project is not None:
            await self.up.project.before_turn(turn)

    async def after_turn(self) -> None:
        """A turn ended: its snapshot is complete."""
        if self.up.snapshots is not None:
            await self.up.snapshots.end()

    async def _start_records(self) -> Account:
        start, known, services, emit = self._life.start, self._known, self._services, self._session.emit
        account = await start("the session's directory", lambda: self.files.open(self._session.info()), self._close)
        witnesses = await start("the witnesses", lambda: make_witnesses(services, emit), lambda part: part.finish())
        audit = self.up.audit = await start(
            "the audit log",
            lambda: open_audit(self._session.info(), known.paths, services, witnesses, emit),
            lambda log: close_audit(log, known.number, self._session.info().reason),
        )
        await start(
            "the escalation files",
            lambda: publish_escalations(known.paths, self._escalations, services, emit),
            lambda part: maybeDeferred(part.stop),
        )
        made = make_snapshots(known.paths, services, audit, emit)
        self.up.snapshots = await start("undo", lambda: started(made), lambda part: part.stop())
        return account

    async def _start_project(self, core: Core) -> None:
        if (make := self.kind.make_project) is not None:
            part = make(core)
            self.up.project = await self._life.start("the project", lambda: started(part), lambda part: part.stop())

    async def _start_agent(self, core: Core, tools: Tools) -> None:
        agent = self.up.agent = await self._life.start(
            "the agent", lambda: started(self.kind.make_agent(core, tools)), lambda part: part.stop()
        )
        if (hub := agent.terminal) is not None:
            shared = SharedTerminal(core, hub)
            self.up.terminal = await self._life.start(
                "the terminal's socket", lambda: started(shared), lambda part: part.stop()
            )

    async def _settle(self) -> None:
        if (project := self.up.project) is not None:
            await self._life.start("the list of the workspace's files", project.settled, lambda _: succeed(None))

    def _core(self, account: Account) -> Core:
        known, up = self._known, self.up
        assert up.audit is not None and up.snapshots is not None  # they started
        return Core(
            *(known.id, known.request, known.workspace, account, known.resumed, known.paths, self._services, up.audit),
            *(self._escalations, up.snapshots, self.trusted_input, self._session.emit, self.files.log.write),
            self._session.end,
            payers=self.payers,
            directory=known.directory,
        )

    async def _close(self, _: Account) -> None:
        self.files.try_to_save(self._session.info())  # the exit status of a program in a terminal is known only now
        self.files.close()
