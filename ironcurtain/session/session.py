"""One session: starts and stops its parts, and manages its state and turns."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TypeVar

import msgspec
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.approver.trusted_input import InputSource
from ironcurtain.audit import AuditLog
from ironcurtain.audit.chain import timestamp
from ironcurtain.errors import SessionError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import FileLock
from ironcurtain.home.registry import label
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.process.accounts import Account
from ironcurtain.services.lifecycle import Lifecycle, StartFailed, started
from ironcurtain.session import events
from ironcurtain.session.history import History
from ironcurtain.session.message_queue import JoiningAgent, MessageQueue
from ironcurtain.session.messages import Messages
from ironcurtain.session.model import Reply, SessionInfo, SessionRequest, State
from ironcurtain.session.parts import Core, Project, Services, SessionAgent, SessionKind, Tools
from ironcurtain.session.records import (
    Registration,
    SessionLog,
    close_audit,
    entry,
    make_directories,
    make_queue,
    make_snapshots,
    make_trusted_input,
    make_witnesses,
    newest_head,
    open_audit,
    publish_escalations,
)
from ironcurtain.session.snapshots import UndoReport, WorkspaceSnapshots
from ironcurtain.session.terminal import SharedTerminal
from ironcurtain.session.turns import Turns
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode

T = TypeVar("T", bound=Tools)


class Session:
    """
    A conversation with an agent, and all its parts.

    :param number: for people; never reused.
    :param attended: whether anybody could answer an escalation.
    :param earlier: the description of the resumed session; ``None`` for a new one.
    """

    log = Logger()

    def __init__(
        self,
        kind: SessionKind[T],
        request: SessionRequest,
        number: int,
        services: Services,
        attended: Callable[[], bool],
        earlier: SessionInfo | None = None,
    ) -> None:
        self.id, self.number, self.request = earlier.id if earlier else str(uuid.uuid4()), number, request
        self.paths = SessionPaths(request.directory) if request.directory else services.home.session(self.id)
        self.label = earlier.label if earlier and not request.task else label(kind.agent_name, request.task)
        self.events, self.history = events.EventLog(services.now), History(self.paths.history)
        self.workspace = request.workspace or self.paths.sandbox
        self.directory = earlier.directory if earlier else kind.directory(request.workspace)
        self.state, self.reason = State.INITIALIZING, ""
        self.escalations = make_queue(services, lambda: self.state is not State.CLOSED and attended())
        self._kind, self._services, self._resumed = kind, services, earlier is not None
        # New options are in force once the session has started with them.
        self._options = earlier.options if earlier else request.options
        self._trusted_input = make_trusted_input(self.paths, services)
        self._lock = FileLock(self.paths.lock)
        self._log_file = SessionLog(self.paths.log, services.now, services.redactor)
        self._life, self._started_at = Lifecycle(services.clock), timestamp(services.now())
        self.ends_with_owner: bool | None = None
        """Whether it ends when the client that started it disconnects. Once ``False``, it stays so."""
        self._agent: SessionAgent | None = None
        self._audit: AuditLog | None = None
        self._shared: SharedTerminal | None = None
        queue = MessageQueue(self._emit, services.redactor.live)
        answered, joined = self._answered, lambda: queue.joined
        turns = Turns(number, self.history, services, self._emit, self._before_turn, answered, self._after_turn, joined)
        self._messages = Messages(turns, queue, services.clock, lambda: self._enter(State.PROCESSING), self._turn_ended)
        self._closing, self._is_down, self._in_turn, self._turns = False, False, False, len(self.history.turns)
        self._project: Project | None = None
        self._snapshots: WorkspaceSnapshots | None = None
        self._tools: Tools | None = None
        self._waiting: list[Deferred[None]] = []
        self._payers: list[str] = []

    @property
    def info(self) -> SessionInfo:
        """The session's description for others."""
        running = None if self.state is State.CLOSED else self._tools
        return SessionInfo(
            id=self.id,
            number=self.number,
            kind=self.request.kind,
            label=self.label,
            state=self.state,
            started_at=self._started_at,
            workspace=str(self.workspace),
            turns=self._turns,
            pending=len(self.escalations.pending()),
            reason=self.reason,
            options=dict(self._options),
            sandbox=self._tools.sandbox if self._tools else "",
            unsandboxed=self._tools.unsandboxed if self._tools else (),
            servers_down=running.failures if running else {},
            server_faults=running.faults if running else {},
            payers=tuple(self._payers),
            by=self.request.by,
            directory=self.directory,
            terminal=self._has_terminal,
            head=newest_head(self._audit),
            status=over.status if self.terminal is not None and (over := self.terminal.over) is not None else None,
        )

    @property
    def agent(self) -> SessionAgent | None:
        """The agent, for front ends that know its kind; ``None``: not started yet."""
        return self._agent

    @property
    def terminal(self) -> Hub | None:
        """The terminal with the agent's own screen; ``None``: the agent accepts messages, or has not started yet."""
        return self._agent.terminal if self._agent is not None else None

    async def start(self) -> None:
        """
        Start all parts.

        :raises SessionError: ``SESSION_INIT_FAILED``, naming the part; all parts are stopped again.
        """
        try:
            await self._start_parts()
        except StartFailed as e:
            self._ended(str(e))
            error = SessionError("SESSION_INIT_FAILED", str(e))
            error.exit_status = e.exit_status
            raise error from e
        except CancelledError:
            self._ended("cancelled while starting")
            if self._closing:
                raise SessionError("SESSION_INIT_FAILED", "the session was closed while it started") from None
            raise
        self._options = self.request.options
        self._enter(State.READY)
        self._try_to_save()

    def send(self, message: str, typed: str = "") -> Deferred[Reply]:
        """
        Send the agent a message.

        :param typed: what of it a person typed, and neither pasted nor piped in.
        :returns: fires with its reply. Cancelling it cancels the message, and the session becomes ready. While an agent
            works that can keep messages, the message waits; then cancelling it takes it back.
        :raises SessionError: ``SESSION_NOT_READY`` while it starts or works, and if it has a terminal;
            ``SESSION_CLOSED`` afterwards.
        """
        if self.state is State.CLOSED:
            raise SessionError("SESSION_CLOSED", f"session {self.number} is closed")
        if self._has_terminal:
            raise self._not_ready(f"takes no messages: attach to it with 'ironcurtain attach {self.number}'")
        agent, text = self._agent, message.encode("utf-8", "replace").decode()  # lone surrogates cannot be encoded
        waits = self.state is State.PROCESSING and self._in_turn and isinstance(agent, JoiningAgent)
        if agent is None or not (waits or self.state is State.READY):
            raise self._not_ready(f"is {self.state}: wait for its answer")
        self._trusted_input.add(typed, InputSource.MESSAGE, text)
        if isinstance(agent, JoiningAgent) and waits:
            return self._messages.keep(agent, text)
        return self._messages.begin(agent, text)

    def _not_ready(self, why: str) -> SessionError:
        return SessionError("SESSION_NOT_READY", f"session {self.number} {why}")

    @property
    def _has_terminal(self) -> bool:
        return self.request.terminal is not None or self.terminal is not None

    @property
    def shared_terminal(self) -> SharedTerminal:
        """
        :returns: the terminal, for attaching.
        :raises SessionError: ``SESSION_CLOSED``; ``SESSION_NOT_READY`` while it starts, and if it accepts messages.
        """
        if self.state is State.CLOSED:
            raise SessionError("SESSION_CLOSED", f"session {self.number} is closed")
        if self._shared is not None:
            return self._shared
        raise self._not_ready("is still starting" if self._has_terminal else "has no terminal: it takes messages")

    def join(self, by: str) -> None:
        """
        Let another client take part in the conversation. From now on the session does not end with the client that
        started it.

        :raises SessionError: ``SESSION_CLOSED``; ``SESSION_NOT_READY`` while it starts, and if it has a terminal.
        :raises AuditUnavailable: it cannot be recorded.
        """
        if self.state is State.CLOSED:
            raise SessionError("SESSION_CLOSED", f"session {self.number} is closed")
        if self._has_terminal or self._audit is None or self._agent is None:
            raise self._not_ready("has a terminal, and no conversation" if self._has_terminal else "is still starting")
        self._audit.append("attach", by=by, mode=Mode.DRIVE)
        self.ends_with_owner = False

    def cancel(self) -> bool:
        """See :meth:`~ironcurtain.session.messages.Messages.cancel`."""
        return self._messages.cancel()

    def withdraw(self, number: int = 0) -> str:
        """See :meth:`~ironcurtain.session.message_queue.MessageQueue.withdraw`."""
        return self._messages.withdraw(number)

    async def undo(self, snapshot: int, by: str, everything: bool = False) -> UndoReport:
        """
        Restore the workspace from a snapshot.

        :raises SessionError: ``SESSION_NOT_READY`` while its agent works or could work, and afterwards.
        :raises NotFound: there is no such snapshot.
        """
        if self.state is not State.READY or self._in_turn or self._snapshots is None:
            raise self._not_ready("works, or has ended: wait, or cancel it")
        if not self._kind.in_turns or (self._has_terminal and self._project is not None):
            raise self._not_ready(f"runs, and its agent could work: end it first with 'ironcurtain stop {self.number}'")
        self._enter(State.PROCESSING)
        try:
            return await self._snapshots.undo(snapshot, by, everything)
        finally:
            self._enter(State.READY)

    async def close(self, reason: str = "") -> None:
        """End the session: cancel its message, withdraw its escalations, stop its parts. Can be called twice."""
        if not self._closing:
            self._closing = True
            Deferred.fromCoroutine(self._close(reason)).addErrback(self._unclean).addBoth(lambda _: self._down())
        await self.ended()

    def ended(self) -> Deferred[None]:
        """:returns: fires when the session is closed and all its parts have stopped."""
        done: Deferred[None] = Deferred()
        if self._is_down:
            done.callback(None)
        else:
            self._waiting.append(done)
        return done

    async def _start_parts(self) -> None:
        start, kind = self._life.start, self._kind
        account = await start("the session's directory", self._make_directories, self._close_log)
        witnesses = await start(
            "the witnesses", lambda: make_witnesses(self._services, self._emit), lambda part: part.finish()
        )
        self._audit = await start(
            "the audit log",
            lambda: open_audit(self.info, self.paths, self._services, witnesses, self._emit),
            lambda log: close_audit(log, self.number, self.reason),
        )
        await start(
            "the escalation files",
            lambda: publish_escalations(self.paths, self.escalations, self._services, self._emit),
            lambda part: maybeDeferred(part.stop),
        )
        made = make_snapshots(self.paths, self._services, self._audit, self._emit)
        self._snapshots = await start("undo", lambda: started(made), lambda part: part.stop())
        core = self._core(account, self._audit, made)
        project = self._project = await self._start_project(core)
        tools = await start("the MCP proxy", lambda: started(kind.make_tools(core)), lambda part: part.stop())
        self._tools = tools
        if self.request.terminal is not None:  # its program may start to work immediately
            self._trusted_input.add(self.request.typed, InputSource.TASK, self.request.task)
            await self._settle(project)
        if self.request.terminal is not None and self._kind.in_turns:
            await self._before_turn(None)
        self._agent = await start("the agent", lambda: started(kind.make_agent(core, tools)), lambda part: part.stop())
        if (hub := self._agent.terminal) is not None:
            shared = SharedTerminal(core, hub)
            self._shared = await start("the terminal's socket", lambda: started(shared), lambda part: part.stop())
        if self.request.terminal is None:
            await self._settle(project)
        listed = Registration(self._services.home, entry(self.info, self.paths, self._services.control_socket))
        await start("the registry entry", lambda: started(listed), lambda part: part.stop())

    async def _start_project(self, core: Core) -> Project | None:
        if (make := self._kind.make_project) is None:
            return None
        part = make(core)
        return await self._life.start("the project", lambda: started(part), lambda part: part.stop())

    async def _settle(self, project: Project | None) -> None:
        if project is not None:
            await self._life.start("the list of the workspace's files", project.settled, lambda _: succeed(None))

    async def _before_turn(self, turn: int | None) -> None:
        if self._project is not None:
            await self._project.before_turn(turn)

    async def _after_turn(self) -> None:
        if self._snapshots is not None:
            await self._snapshots.end()

    def _core(self, account: Account, audit: AuditLog, snapshots: WorkspaceSnapshots) -> Core:
        return Core(
            *(self.id, self.request, self.workspace, account, self._resumed, self.paths, self._services, audit),
            *(self.escalations, snapshots, self._trusted_input, self._emit, self._log_file.write, self._end),
            payers=self._payers,
            directory=self.directory,
        )

    async def _make_directories(self) -> Account:
        account = make_directories(self.id, self.number, self.request, self.paths, self._services, self._lock)
        try:
            self._save()
            self._log_file.open()
        except BaseException:
            self._lock.release()
            raise
        return account

    async def _close_log(self, _: Account) -> None:
        self._try_to_save()  # the exit status of a program in a terminal is known only now
        self._log_file.close()
        self._lock.release()

    def _turn_ended(self) -> bool:
        if self.state is State.PROCESSING:
            self._enter(State.READY)
        return self.state is State.READY

    def _answered(self) -> None:
        self._messages.answered()
        self.escalations.withdraw_all()

    async def _close(self, reason: str) -> None:
        self._ended(reason)
        self._messages.close()
        self.escalations.end()
        await self._life.stop()

    def _unclean(self, failure: Failure) -> None:
        self.log.failure("session {number} did not close cleanly", failure, number=self.number)

    def _down(self) -> None:
        self._is_down = True
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done.callback(None)

    def _end(self, reason: str) -> None:
        Deferred.fromCoroutine(self.close(reason)).addErrback(self._unclean)

    def _ended(self, reason: str) -> None:
        self._enter(State.CLOSED, reason)
        if self.paths.directory.is_dir():
            self._try_to_save()

    def _enter(self, state: State, reason: str = "") -> None:
        if self.state is State.CLOSED:
            return
        self.state, self.reason = state, reason
        self._emit(events.StateChanged(state=state, reason=reason))

    def _try_to_save(self) -> None:
        try:
            self._save()
        except OSError as e:
            self.log.error("session {number} is not described on disk: {error}", number=self.number, error=e)

    def _save(self) -> None:
        write_atomically(self.paths.snapshot, msgspec.json.encode(self.info) + b"\n")

    def _emit(self, event: events.SessionEvent) -> None:
        event = event.redacted(self._services.redactor.live)
        if isinstance(event, events.TurnStarted | events.TurnFinished):
            self._in_turn = isinstance(event, events.TurnStarted)
        self._turns = event.turn if isinstance(event, events.TurnFinished) else self._turns
        if (words := self._services.describe(event)) is not None:
            self._log_file.write("session", words.logged)
            if self._shared is not None:
                self._shared.tell(words)
        self.events.emit(event)
        self._messages.heard(event)
