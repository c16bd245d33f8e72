"""One session: manages its state and turns, and lets others use its parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.approver.trusted_input import InputSource
from ironcurtain.errors import SessionError
from ironcurtain.home.registry import label_by_message
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.services.lifecycle import StartFailed
from ironcurtain.session import events
from ironcurtain.session.history import History
from ironcurtain.session.identity import identity
from ironcurtain.session.message_queue import JoiningAgent, MessageQueue
from ironcurtain.session.messages import Messages
from ironcurtain.session.model import Cancelled, Reply, SessionInfo, SessionRequest, State
from ironcurtain.session.parts import Services, SessionAgent, SessionKind, Tools
from ironcurtain.session.progress import Ending, Progress
from ironcurtain.session.records import make_queue, newest_head
from ironcurtain.session.session_parts import Callbacks, SessionParts
from ironcurtain.session.snapshots import UndoReport
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
        self._services, known = services, identity(kind, request, number, services, earlier)
        self.identity = known
        self.events, self.history = events.EventLog(services.now), History(known.paths.history)
        self._progress, self._ending = Progress(len(self.history.turns)), Ending()
        self.escalations = make_queue(services, lambda: not self._progress.closed and attended())
        # New options are in force once the session has started with them.
        self._options = earlier.options if earlier else request.options
        session = Callbacks(self._emit, self._end, lambda: self.info)
        parts = self._parts = SessionParts(kind, known, services, self.escalations, session)
        self.ends_with_owner: bool | None = None
        """Whether it ends when the client that started it disconnects. Once ``False``, it stays so."""
        queue = MessageQueue(self._emit, services.redactor.live)
        history, answered, joined = self.history, self._answered, lambda: queue.joined
        turns = Turns(number, history, services, self._emit, parts.before_turn, answered, parts.after_turn, joined)
        self._messages = Messages(turns, queue, services.clock, lambda: self._enter(State.PROCESSING), self._turn_ended)

    @property
    def id(self) -> str:
        """Unique everywhere."""
        return self.identity.id

    @property
    def number(self) -> int:
        """For people; unique in a home."""
        return self.identity.number

    @property
    def label(self) -> str:
        """What it is about, in some words; a conversation begins with its first message."""
        return label_by_message(self.identity.label, self.history.first)

    @property
    def paths(self) -> SessionPaths:
        """Where its files are."""
        return self.identity.paths

    @property
    def workspace(self) -> Path:
        """What the agent works on."""
        return self.identity.workspace

    @property
    def state(self) -> State:
        """Its state."""
        return self._progress.state

    @property
    def reason(self) -> str:
        """Why it has this state; may be empty."""
        return self._progress.reason

    @property
    def info(self) -> SessionInfo:
        """The session's description for others."""
        known, up, progress = self.identity, self._parts.up, self._progress
        running = None if progress.closed else up.tools
        return SessionInfo(
            id=known.id,
            number=known.number,
            kind=known.request.kind,
            label=self.label,
            state=progress.state,
            started_at=known.started_at,
            workspace=str(known.workspace),
            turns=progress.turns,
            pending=len(self.escalations.pending()),
            reason=progress.reason,
            options=dict(self._options),
            sandbox=up.tools.sandbox if up.tools else "",
            unsandboxed=up.tools.unsandboxed if up.tools else (),
            servers_down=running.failures if running else {},
            servers_starting={} if progress.closed else progress.servers_starting,
            server_faults=running.faults if running else {},
            model=self.agent.model if self.agent is not None else str(self._options.get("model") or ""),
            payers=tuple(self._parts.payers),
            by=known.request.by,
            directory=known.directory,
            terminal=self._has_terminal,
            head=newest_head(up.audit),
            status=over.status if self.terminal is not None and (over := self.terminal.over) is not None else None,
        )

    @property
    def agent(self) -> SessionAgent | None:
        """The agent, for front ends that know its kind; ``None``: not started yet."""
        return self._parts.up.agent

    @property
    def terminal(self) -> Hub | None:
        """The terminal with the agent's own screen; ``None``: the agent accepts messages, or has not started yet."""
        return self.agent.terminal if self.agent is not None else None

    async def start(self) -> None:
        """
        Start all parts.

        :raises SessionError: ``SESSION_INIT_FAILED``, naming the part; all parts are stopped again.
        """
        try:
            await self._parts.start()
        except StartFailed as e:
            self._ended(str(e))
            error = SessionError("SESSION_INIT_FAILED", str(e))
            error.exit_status = e.exit_status
            raise error from e
        except CancelledError:
            self._ended("cancelled while starting")
            if self._ending.begun:
                raise SessionError("SESSION_INIT_FAILED", "the session was closed while it started") from None
            raise
        self._options = self.identity.request.options
        self._enter(State.READY)
        self._parts.files.try_to_save(self.info)
        self._parts.kind.begin(self.agent)

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
        agent, text = self.agent, message.encode("utf-8", "replace").decode()  # lone surrogates cannot be encoded
        waits = self.state is State.PROCESSING and self._progress.in_turn and isinstance(agent, JoiningAgent)
        if agent is None or not (waits or self.state is State.READY):
            raise self._not_ready(f"is {self.state}: wait for its answer")
        self._parts.trusted_input.add(typed, InputSource.MESSAGE, text)
        if isinstance(agent, JoiningAgent) and waits:
            return self._messages.keep(agent, text)
        return self._messages.begin(agent, text)

    def _not_ready(self, why: str) -> SessionError:
        return SessionError("SESSION_NOT_READY", f"session {self.number} {why}")

    @property
    def _has_terminal(self) -> bool:
        return self.identity.request.terminal is not None or self.terminal is not None

    @property
    def shared_terminal(self) -> SharedTerminal:
        """
        :returns: the terminal, for attaching.
        :raises SessionError: ``SESSION_CLOSED``; ``SESSION_NOT_READY`` while it starts, and if it accepts messages.
        """
        if self.state is State.CLOSED:
            raise SessionError("SESSION_CLOSED", f"session {self.number} is closed")
        if (shared := self._parts.up.terminal) is not None:
            return shared
        without = "has no terminal: it takes messages, and the console shows it"
        raise self._not_ready("is still starting" if self._has_terminal else without)

    def join(self, by: str) -> None:
        """
        Let another client take part in the conversation. From now on the session does not end with the client that
        started it.

        :raises SessionError: ``SESSION_CLOSED``; ``SESSION_NOT_READY`` while it starts, and if it has a terminal.
        :raises AuditUnavailable: it cannot be recorded.
        """
        if self.state is State.CLOSED:
            raise SessionError("SESSION_CLOSED", f"session {self.number} is closed")
        audit = self._parts.up.audit
        if self._has_terminal or audit is None or self.agent is None:
            raise self._not_ready("has a terminal, and no conversation" if self._has_terminal else "is still starting")
        audit.append("attach", by=by, mode=Mode.DRIVE)
        self.ends_with_owner = False

    def cancel(self) -> Cancelled:
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
        snapshots, project = self._parts.up.snapshots, self._parts.up.project
        if self.state is not State.READY or self._progress.in_turn or snapshots is None:
            raise self._not_ready("works, or has ended: wait, or cancel it")
        if not self._parts.kind.in_turns or (self._has_terminal and project is not None):
            raise self._not_ready(f"runs, and its agent could work: end it first with 'ironcurtain stop {self.number}'")
        self._enter(State.PROCESSING)
        try:
            return await snapshots.undo(snapshot, by, everything)
        finally:
            self._enter(State.READY)

    async def close(self, reason: str = "") -> None:
        """End the session: cancel its message, withdraw its escalations, stop its parts. Can be called twice."""
        if not self._ending.begun:
            self._ending.begun = True
            Deferred.fromCoroutine(self._close(reason)).addErrback(self._unclean).addBoth(lambda _: self._ending.over())
        await self.ended()

    def ended(self) -> Deferred[None]:
        """:returns: fires when the session is closed and all its parts have stopped."""
        return self._ending.awaited()

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
        await self._parts.stop()

    def _unclean(self, failure: Failure) -> None:
        self.log.failure("session {number} did not close cleanly", failure, number=self.number)

    def _end(self, reason: str) -> None:
        Deferred.fromCoroutine(self.close(reason)).addErrback(self._unclean)

    def _ended(self, reason: str) -> None:
        self._enter(State.CLOSED, reason)
        if self.paths.directory.is_dir():
            self._parts.files.try_to_save(self.info)

    def _enter(self, state: State, reason: str = "") -> None:
        if (changed := self._progress.enter(state, reason)) is not None:
            self._emit(changed)

    def _emit(self, event: events.SessionEvent) -> None:
        event = event.redacted(self._services.redactor.live)
        self._progress.heard(event)
        files = self._parts.files
        for line in files.spoken.lines(event):
            files.log.write("agent", line)
        if (words := self._services.describe(event)) is not None:
            files.log.write("session", words.logged)
            if (shared := self._parts.up.terminal) is not None:
                shared.tell(words)
        self.events.emit(event)
        self._messages.heard(event)
