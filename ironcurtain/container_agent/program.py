"""One running program of an agent: its streams, and the dialogue over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.agents.outcome import TurnOutcome
from ironcurtain.agents.streams.dialogue import Dialogue
from ironcurtain.agents.streams.reports import Outgoing, Report, TurnOver
from ironcurtain.container.container import ProgramEnded
from ironcurtain.container_agent.agent_sandbox import AgentSandbox, Program
from ironcurtain.container_agent.output import ANSWER_LIMIT, ERRORS_LIMIT, Lines, Tail
from ironcurtain.errors import SessionError

BURST = 16 * 1024 * 1024
"""Number of bytes of output that are read at once: some huge lines."""

RATE = 1024 * 1024
"""
Number of bytes of output read per second beyond that: the program has to wait, since to read small lines at full speed
would take all of this process's time.
"""

NOT_COMPACTED = "nothing was compacted: there is no conversation yet, or the agent compacts it by itself only"
"""The answer to a command that the program does not have."""


class _Pace:
    """
    How fast output is read.

    :param now: seconds of a monotonic clock.
    """

    def __init__(self, now: float) -> None:
        self._allowed, self._counted = float(BURST), now

    def delay(self, now: float, size: int) -> float:
        """:returns: seconds until more is read than these bytes."""
        self._allowed = min(BURST, self._allowed + (now - self._counted) * RATE) - size
        self._counted = now
        return max(-self._allowed / RATE, 0.0)


class AgentProgram:
    """
    A fault of the dialogue, or of who gets its reports, fails the turn at once and ends the program, of which nobody
    knows then what it was told.

    :param report: called with what the program reports.
    :param error_line: called with each line of its standard error.
    :param clock: the reactor.
    :ivar ended: how it ended; ``None``: it runs, or it is unknown.
    :ivar stdout: the end of what it printed, and of what it wrote to standard error.
    """

    log = Logger()

    def __init__(
        self,
        dialogue: Dialogue,
        report: Callable[[Report], None],
        error_line: Callable[[str], None],
        clock: Any,
    ) -> None:
        self._dialogue, self._report, self._error_line, self._clock = dialogue, report, error_line, clock
        self._pace = _Pace(clock.seconds())
        self._program: Program | None = None
        self._lines = Lines(self._said_wrong, clock.seconds)
        self._turn: Deferred[TurnOver] | None = None
        self._fault: Failure | None = None
        self.running = False
        self.ended: ProgramEnded | None = None
        self.stdout, self.stderr = Tail(ANSWER_LIMIT), Tail(ERRORS_LIMIT)

    async def start(self, sandbox: AgentSandbox, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """
        Start it.

        :raises ContainerDied: the sandbox ended meanwhile.
        """
        self.running = True
        try:
            self._program = await sandbox.open(
                command, stdout=self._output, stderr=self._errors, environment=environment
            )
        except BaseException:
            self.running = False
            raise
        self._program.ended.addCallbacks(self._over, self._lost)
        self._guarded(lambda: self._write(self._dialogue.begin()))

    def send(self, message: str, compact: bool = False) -> Deferred[TurnOver]:
        """
        Begin a turn.

        :param compact: whether it is one that shortens the conversation, if the program has that.

        :returns: fires with its end; fails with :class:`~ironcurtain.container.errors.ContainerDied` if the sandbox
            ends, and with :class:`~ironcurtain.container.errors.EngineUnavailable`.
        """
        if self.running and self._turn is not None:
            self.stdout.clear()  # what it said in earlier turns does not explain how this one ends; its start may
            self.stderr.clear()
        turn = self._turn = Deferred()
        self._guarded(lambda: self._begin(message, compact))
        return turn

    def join(self, message: str) -> bool:
        """:returns: whether a further message was handed over, to join the turn that runs."""
        return self._in_turn and self._told(lambda: self._dialogue.join(message))

    def interrupt(self) -> bool:
        """:returns: whether the program was asked to end its turn, and to go on."""
        return self.running and self._told(lambda: self._dialogue.interrupt() or None)

    async def end(self) -> None:
        """End it, with what it started: no further turn can begin."""
        self.running = False
        if self._program is not None:
            await self._program.end()

    @property
    def ready(self) -> bool:
        """Whether it runs, and gets a message at once."""
        return self.running and self._program is not None and self._dialogue.ready

    @property
    def outcome(self) -> TurnOutcome:
        """Its outcome so far."""
        return TurnOutcome(self.ended.status if self.ended else None, self.stdout.kept, self.stderr.kept)

    @property
    def _in_turn(self) -> bool:
        return self._turn is not None and not self._turn.called

    def _begin(self, message: str, compact: bool) -> None:
        data = self._dialogue.compact() if compact else self._dialogue.message(message)
        if compact and not data:
            self._finish(TurnOver(NOT_COMPACTED))
            return
        self._write(data)
        if not self._dialogue.resident and self._program is not None:
            self._program.close_input()

    def _told(self, make: Callable[[], bytes | None]) -> bool:
        """:returns: whether there was something to tell the program, which has it now."""
        told: list[bytes] = []

        def tell() -> None:
            if (data := make()) is not None:
                self._write(data)
                told.append(data)

        self._guarded(tell)
        return bool(told)

    def _guarded(self, work: Callable[[], None]) -> None:
        if self._fault is None:
            try:
                work()
            except Exception as e:
                self.log.failure("what an agent's program is told, or says, could not be handled")
                why = f"internal error: {type(e).__name__}, in talking to the agent's program; see the session's log"
                self._fault = Failure(SessionError("MESSAGE_FAILED", f"{why}. The next message starts it again"))
                Deferred.fromCoroutine(self.end()).addErrback(
                    lambda failure: self.log.failure("a program was not ended", failure)
                )
        if self._fault is not None:
            self._finish(self._fault)

    def _write(self, data: bytes) -> None:
        if data and self._program is not None:
            self._program.write(data)

    def _output(self, data: bytes) -> Deferred[None] | None:
        self.stdout.feed(data)
        self._guarded(lambda: self._take(self._dialogue.output(data)))
        delay = self._pace.delay(self._clock.seconds(), len(data))
        return deferLater(self._clock, delay, lambda: None) if delay else None

    def _errors(self, data: bytes) -> None:
        self.stderr.feed(data)
        self._lines.feed(data)

    def _said_wrong(self, line: str) -> None:
        self._error_line(line)
        self._guarded(lambda: self._take(self._dialogue.error_line(line)))

    def _take(self, found: Any) -> None:
        for report in found:
            if isinstance(report, Outgoing):
                self._write(report.data)
            elif isinstance(report, TurnOver):
                self._finish(report)
            else:
                self._report(report)

    def _finish(self, end: TurnOver | Failure) -> None:
        if self._turn is not None and self._in_turn:
            self._turn.callback(end)  # a Deferred that gets a Failure fails

    def _over(self, ended: ProgramEnded) -> None:
        self._lines.end()
        self.running, self.ended = False, ended
        self._guarded(lambda: self._finish(self._dialogue.ended(self.outcome)))

    def _lost(self, failure: Failure) -> None:
        self._lines.end()
        self.running = False
        self._finish(failure)
