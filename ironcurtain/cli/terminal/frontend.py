"""
The front end: shows a session's events on a surface, and sends the person's input to the session.

It uses only :class:`~ironcurtain.operations.api.SessionApi`, so the session may be in this process or another. It never
ends the session; its starter does.
"""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable, Coroutine
from enum import Enum, auto
from math import inf
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.cli.terminal.carrying_out import Commands
from ironcurtain.cli.terminal.commands import Input, LineQueue, parse
from ironcurtain.cli.terminal.printer import Printer
from ironcurtain.cli.undoing import Propose
from ironcurtain.errors import IronCurtainError, SessionError
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.operations.api import SessionApi
from ironcurtain.operations.sender import Delivered, Sender
from ironcurtain.session import events
from ironcurtain.session.model import OWNER_GONE, Reply, SessionInfo
from ironcurtain.text.display import one_line
from ironcurtain.view.commands import Command, Message, Wrong
from ironcurtain.view.narration import Answers, Item, Say
from ironcurtain.view.sessions import how_to_resume

TWICE_SECONDS = 2.0
"""Seconds within which a second Ctrl-C leaves."""

T = TypeVar("T")


class Left(IronCurtainError):
    """The person or a signal ended the front end before there was an answer. With status 0, it was detached."""

    code = "INTERRUPTED"

    def __init__(self, status: int) -> None:
        super().__init__("interrupted: there is no answer")
        self.exit_status = status


class _Cause(Enum):
    """What ended the message or the front end, where that decides on the exit status."""

    NONE = auto()
    INTERRUPTED = auto()
    """Ctrl-C cancelled the message."""
    STOPPED = auto()
    DETACHED = auto()
    LOST = auto()
    """The surface is gone."""


class _Exit:
    """
    How and when the front end ends.

    :ivar end: fires with the exit status.
    :ivar cause: what ended it.
    :ivar leaving: ends it; ``None``: it goes on.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self.end: Deferred[int] = Deferred()
        self.cause = _Cause.NONE
        self._clock = clock
        self.leaving: IDelayedCall | None = None
        self._last_interrupt = -inf

    def leave(self, status: int) -> None:
        """End in the reactor's next turn, unless it ends already."""
        if self.leaving is None:
            self.leaving = self._clock.callLater(0, self.end.callback, status)

    def is_again(self) -> bool:
        """:returns: whether the interrupt that comes now follows another one within seconds."""
        last, self._last_interrupt = self._last_interrupt, self._clock.seconds()
        return self._clock.seconds() - last < TWICE_SECONDS

    def forget(self) -> None:
        """It has ended."""
        if self.leaving is not None and self.leaving.active():
            self.leaving.cancel()


class FrontEnd:
    """
    The front end of one session for one person; used once.

    :param paths: paths of the session's logs.
    :param propose: finds out what an undo would restore.
    """

    log = Logger()

    def __init__(
        self,
        api: SessionApi,
        session: SessionInfo,
        paths: SessionPaths,
        clock: IReactorTime,
        printer: Printer,
        propose: Propose,
    ) -> None:
        self._api, self._session = api, session
        self._printer, self._surface, self._view = printer, printer.surface, printer.view
        self._commands = Commands(api, session.number, paths, printer, propose)
        self._sender = Sender(api, session.number, clock)
        self._queue, self._exit = LineQueue(), _Exit(clock)
        self._single = self._open = False
        self._began = 0.0

    @property
    def detached(self) -> bool:
        """Whether the person detached, so that the session continues."""
        return self._exit.cause is _Cause.DETACHED

    async def single_shot(self, task: str, typed: str = "") -> Reply:
        """
        Send the session one message.

        :param typed: what of it a person typed.
        :returns: the agent's unprinted answer, and its usage.
        :raises Left: Ctrl-C (``exit_status`` 130), SIGTERM (143) or ``/detach`` (0) came first.
        :raises IronCurtainError: there is no answer; the session's error.
        """
        self._single = True
        return await self._run(lambda: self._one_answer(task, typed))

    async def interactive(self) -> int:
        """
        Run a conversation until the person leaves or the session is closed.

        :returns: the exit status: 0; 1 if the last message failed (plain streams), the session was closed elsewhere or
            the output is gone; 130 after Ctrl-C; 143 after SIGTERM.
        """
        self._view.begin(Answers.FLOWING if self._surface.live else Answers.WHOLE)
        self._printer.note(f"session {self._session.number} in {self._session.workspace}", "dim")
        status = await self._run(lambda: self._exit.end)
        return 1 if self._exit.cause is _Cause.LOST else status

    def interrupt(self) -> None:
        """Ctrl-C: leave the form that is filled in, else cancel the message; twice, or for a single task, leave."""
        if self._commands.leave_form():
            return
        if self._exit.is_again():
            self._leave(130)
        elif self._working:
            self._exit.cause = _Cause.INTERRUPTED
            self._spawn(self._cancel())
        elif self._single:
            self._leave(130)
        else:
            self._printer.note("press Ctrl-C again to leave", "dim")

    def signalled(self, number: int) -> bool:
        """:returns: ``True``: a signal of the process, of this number, is handled."""
        if number == signal.SIGINT:
            self.interrupt()
        else:
            self._leave(143)
        return True

    def typed(self, line: str, began: float, own: str = "") -> None:
        """The person entered a line, of which ``own`` was typed."""
        if self._surface.live and self._commands.filling:
            self._spawn(self._carry_out(line, began))
        elif self._surface.live or self._single:
            self._act(parse(line, own), began)
        else:
            self._queue.add(line, began, own)
            self._next()

    def input_ended(self) -> None:
        """The input ended."""
        if self._surface.live:
            self._printer.note("Ctrl-C cancels the task", "dim") if self._single else self._leave(0)
        elif not self._single:
            self._queue.add("/quit", inf)
            self._next()

    def lost(self, why: str) -> None:
        """The surface can no longer show or read anything."""
        self.log.warn("left session {number}: {why}", number=self._session.number, why=why, for_person=True)
        self._exit.cause = _Cause.LOST
        self._leave(1)

    @property
    def _working(self) -> bool:
        return self._sender.busy or self._view.working

    @property
    def _own_status(self) -> int:
        """The exit status if the person ends it."""
        return 130 if self._single else 0 if self._surface.live else int(self._sender.failed)

    async def _run(self, main: Callable[[], Awaitable[T]]) -> T:
        self._open, self._began, number = True, self._printer.now(), self._session.number
        async with self._printer.following(self._api, number, self, self._heard, reads=not self._single):
            try:
                return await main()
            finally:
                self._open = False
                self._exit.forget()

    async def _one_answer(self, task: str, typed: str) -> Reply:
        outcome: Deferred[Delivered] = Deferred()
        sending = Deferred.fromCoroutine(self._sender.send(task, typed))
        sending.addBoth(lambda result: None if outcome.called else outcome.callback(result))
        self._exit.end.addCallback(lambda status: None if outcome.called else outcome.errback(self._left(status)))
        delivered = await outcome
        if delivered.reply is not None:
            return delivered.reply
        interrupted = self._exit.cause in (_Cause.INTERRUPTED, _Cause.STOPPED)
        if interrupted or self._view.state == "closed" or delivered.error is None:
            raise self._left(130 if interrupted else 1)
        raise delivered.error

    def _left(self, status: int) -> IronCurtainError:
        if status == 1 and self._view.state == "closed":
            why = one_line(self._view.reason) or "no reason given"
            return SessionError("SESSION_CLOSED", f"session {self._session.number} was closed: {why}")
        return Left(status)

    def _leave(self, status: int) -> None:
        if self._open:
            self._exit.leave(status)

    async def _talk(self, message: Message) -> None:
        delivered = await self._sender.send(message.text, message.typed)
        if not delivered.shown:
            if delivered.reply is not None:
                self._printer.add(self._view.answer(delivered.reply.text))
            else:
                self._printer.add(self._view.failed(str(delivered.error)))
                self._surface.put_back(message.text)
        self._next()

    async def _cancel(self) -> None:
        try:
            cancelled = await self._api.cancel(self._session.number)
        except IronCurtainError as e:
            self._printer.add(self._view.failed(str(e)))
            return
        if cancelled.taken_back:
            self._surface.put_back("\n".join(cancelled.taken_back))

    def _heard(self, stamped: events.Stamped) -> None:
        if not self._open:
            return
        try:
            self._printer.add(self._shown(stamped))
        except Exception:  # a failure of the display must not affect the emitter
            self.log.failure("an event of session {number} could not be shown", number=self._session.number)
        match stamped.event:
            case events.TurnStarted():
                mine = self._sender.begun(stamped.event)
                if not mine or (self._surface.live and not self._single):
                    self._printer.add(self._view.message(stamped.event.message))
            case events.TurnFinished():
                self._sender.over()
            case events.StateChanged(state="closed", reason=reason):
                says = self._single or not self._surface.live  # else the command does
                if reason == OWNER_GONE and says and (how := how_to_resume(self._session)):
                    self._printer.note(how, "dim")
                self._leave(self._own_status if self._exit.cause is _Cause.STOPPED else 1)
            case events.Missed():
                self._spawn(self._resync())
        self._next()

    def _shown(self, stamped: events.Stamped) -> list[Item]:
        items = self._view.apply(stamped)
        if self._surface.live or stamped.time >= self._began:
            return items
        # Earlier answers do not answer messages from this pipe.
        return [Say(item.line) if isinstance(item, Say) else item for item in items]

    async def _resync(self) -> None:
        self._printer.add(await self._printer.resync(self._api, self._session.number))
        if self._view.state == "closed":
            self._leave(1)
        elif not self._view.working:
            self._sender.over()
        self._next()

    def _next(self) -> None:
        """Process lines from a pipe whose turn has come, once the session's state is known."""
        known = self._view.state != "initializing"
        while self._open and known and not self._surface.live and not self._single and not self._commands.busy:
            line = self._queue.next(self._working, bool(self._commands.waiting))
            if line is None or self._exit.leaving is not None:
                return
            self._printer.draw()
            self._act(line, self._queue.began)

    def _act(self, what: Input | None, began: float) -> None:
        match what:
            case Message():
                self._message(what)
            case Wrong(why):
                self._printer.note(why)
            case Command("detach"):
                self._exit.cause = _Cause.DETACHED
                self._leave(0)
            case Command("quit" | "exit"):
                self._leave(self._own_status)
            case Command():
                if what.word == "stop":
                    self._exit.cause = _Cause.STOPPED
                self._spawn(self._carry_out(what, began))

    def _message(self, message: Message) -> None:
        if (waiting := self._commands.waiting) and (self._single or self._working):
            number = min(waiting)
            act = "approve" if self._view.pending[number].form is None else "answer"
            self._printer.note(f"to answer, type /{act} {number} or /deny {number}")
            self._surface.put_back("" if self._single else message.text)
        elif self._single:
            self._printer.note("this is a single task: start without a task for a conversation")
        elif self._working:
            self._spawn(self._keep(message))
        else:
            self._spawn(self._talk(message))

    async def _keep(self, message: Message) -> None:
        if not await self._sender.keep(message.text, message.typed):  # this agent keeps none
            self._surface.put_back(message.text)
            self._printer.note("not sent: the agent is working. Press Enter again when it is done")

    async def _carry_out(self, command: Command | str, began: float) -> None:
        await self._commands.carry_out(command, began)
        self._next()

    def _spawn(self, work: Coroutine[Deferred[Any], Any, None]) -> None:
        if not self._open:
            work.close()
            return
        Deferred.fromCoroutine(work).addErrback(self._broken)

    def _broken(self, failure: Failure) -> None:
        self.log.failure("the front end of session {number} failed", failure, number=self._session.number)
        self._printer.note(f"internal error: {failure.type.__name__ if failure.type else ''}", "bad")
