"""
An agent program in a container: the container lives as long as possible, and the program runs once for each message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.agents.adapter import Adapter, Facts, TurnFailed, TurnOutcome
from ironcurtain.container.container import ProgramEnded, out_of_sight
from ironcurtain.container.errors import ContainerDied, EngineUnavailable
from ironcurtain.container.inside import ProbeFinding
from ironcurtain.container_agent.agent_sandbox import AgentSandbox
from ironcurtain.container_agent.leftovers import removed
from ironcurtain.container_agent.proxies import Proxies, Traffic
from ironcurtain.errors import IronCurtainError, SessionError
from ironcurtain.jsonrpc.framing import Framer, TooLong
from ironcurtain.session import events
from ironcurtain.session.model import Reply, Usage
from ironcurtain.session.parts import Core
from ironcurtain.text.display import one_line

TAIL_SHOWN = 600
"""Maximum length in characters of a failed program's last output in the error."""

BUDGET_SECONDS = 1.0
"""Seconds between checks of the time budget while a message is processed."""


ANSWER_LIMIT = 4 * 1024 * 1024
"""Maximum number of bytes kept of a program's output, the last ones (an answer with all its events)."""

ERRORS_LIMIT = 64 * 1024
"""Maximum number of bytes kept of its standard error, the last ones."""

LINE_LIMIT = 2000
"""Maximum length in characters of a reported line of standard error."""

LINES_A_SECOND = 50
"""Number of lines of standard error reported per second; further lines are counted."""


@dataclass(frozen=True, slots=True)
class Making:
    """
    Functions that an agent needs, which work once the session's other parts are up.

    :param container: creates a container without starting it; takes the function to call if it dies.
    :param place: writes the agent's files.
    :param orient: returns the orientation for the agent, once its tools are known.
    """

    container: Callable[[Callable[[ContainerDied], None]], Awaitable[AgentSandbox]]
    place: Callable[[Facts], None]
    orient: Callable[[], Awaitable[str]]


class ContainerAgent:
    """
    :param facts: for the adapter; the orientation is added later.
    :param answered: whether a message of this conversation has been answered.
    :param notice: precedes the messages until one is answered; empty: nothing does.
    """

    log = Logger()
    terminal = None

    def __init__(
        self,
        core: Core,
        proxies: Proxies,
        adapter: Adapter,
        facts: Facts,
        making: Making,
        traffic: Traffic,
        answered: bool,
        notice: str = "",
    ) -> None:
        self._core, self._proxies, self._adapter, self._facts = core, proxies, adapter, facts
        self._making, self._traffic, self._answered = making, traffic, answered
        self._notice = notice
        self._container: AgentSandbox | None = None
        self._dead: AgentSandbox | None = None
        self._removing: Deferred[None] | None = None
        self._oriented = False
        self._running: Deferred[ProgramEnded] | None = None
        self._abort: IronCurtainError | None = None
        self._clock: Any = core.services.clock
        self._looking = LoopingCall(traffic.look)
        self._looking.clock = self._clock
        proxies.on_exhausted = self.interrupt
        proxies.on_death = lambda why: self.interrupt(SessionError("MESSAGE_FAILED", why))

    async def start(self) -> None:
        """Start the container."""
        self._adapter.environment(self._facts)  # raise now what would otherwise fail the first message
        self._container = await self._open()

    async def respond(self, message: str) -> Reply:
        """
        Run the program for a message.

        :raises SessionError: ``MESSAGE_FAILED``: the program failed, or was ended: by the time limit, by the budget,
            with its container.
        """
        self._traffic.begin()
        if self._proxies.dead:
            raise SessionError("MESSAGE_FAILED", self._proxies.dead)
        if self._container is not None and await self._container.crowded():
            await self._make_room(self._container)
        if self._container is None:
            self._container = await self._open()
        if not self._oriented:
            await self._orient()
        answer = self._adapter.answer
        outcome = await self._run(self._container, f"{self._notice}\n\n{message}" if self._notice else message)
        try:
            text = answer(outcome).text
        except TurnFailed as e:
            self._core.audit.append("turn-failed", failure=e.kind, reason=str(e), status=outcome.exit_code)
            raise
        self._answered, self._notice = True, ""
        return Reply(text, self.usage())

    async def stop(self) -> None:
        """End and remove the container."""
        await self._removed()
        if (container := self._container or self._dead) is not None:
            self._container = self._dead = None
            await removed(container, self._core)

    def usage(self) -> Usage:
        """:returns: the usage of the message so far."""
        return self._traffic.usage()

    def interrupt(self, why: IronCurtainError) -> None:
        """End the run of the program, if there is one; its message fails with this error."""
        if self._running is not None and self._abort is None:
            self._abort = why
            self._running.cancel()

    async def _open(self) -> AgentSandbox:
        await self._removed()
        if self._dead is not None:  # the next container has the same name
            await self._dead.stop()
            self._dead = None
        container = await self._making.container(self._died)
        findings = await container.start()
        self._core.audit.append("container", containerId=container.id, checked=_words(findings))
        return container

    async def _orient(self) -> None:
        self._facts = replace(self._facts, orientation=await self._making.orient())
        self._making.place(self._facts)
        self._oriented = True

    async def _run(self, container: AgentSandbox, message: str) -> TurnOutcome:
        command = self._adapter.turn(self._facts, not self._answered)
        stdout, stderr, lines = Tail(ANSWER_LIMIT), Tail(ERRORS_LIMIT), Lines(self._error_line, self._clock.seconds)

        def error_output(data: bytes) -> None:
            stderr.feed(data)
            lines.feed(data)

        self._core.audit.append("run", command=list(command))
        began, status = self._clock.seconds(), -1
        try:
            ended = await self._ended(container, command, message, stdout.feed, error_output)
            status = ended.status
        finally:
            lines.end()
            took = round((self._clock.seconds() - began) * 1000, 1)
            self._core.audit.append("run-end", status=status, durationMs=took, size=stdout.size)
        crowded = await container.crowded()
        if crowded:
            await self._make_room(container)
        if status and (crowded or ended.out_of_processes):
            raise SessionError(
                "MESSAGE_FAILED",
                f"the agent's program ended with status {status}, after {_limit(container)} was reached: say what to "
                f"do next, or raise resources.pids. {tail(stderr.kept or stdout.kept)}",
            )
        if ended.out_of_memory and status:
            raise SessionError(
                "MESSAGE_FAILED",
                f"the agent's program ended with status {status}, after a process was ended because the container's "
                f"memory was used up: raise resources.memory_mb. {tail(stderr.kept or stdout.kept)}",
            )
        return TurnOutcome(status, stdout.kept, stderr.kept)

    async def _ended(
        self,
        container: AgentSandbox,
        command: tuple[str, ...],
        message: str,
        stdout: Callable[[bytes], None],
        stderr: Callable[[bytes], None],
    ) -> ProgramEnded:
        limit = self._core.services.settings.agents.turn_seconds
        late = SessionError(
            "MESSAGE_FAILED",
            f"the agent was ended after {limit:g} s: say what to do next, or raise agents.turn_seconds",
        )
        self._abort = None
        timer = self._clock.callLater(limit, self.interrupt, late)
        self._looking.start(BUDGET_SECONDS, now=False)
        try:
            self._running = Deferred.fromCoroutine(
                container.run(
                    command,
                    stdin=message.encode(),
                    stdout=stdout,
                    stderr=stderr,
                    environment=self._adapter.environment(self._facts),
                )
            )
            return await self._running
        except CancelledError:
            if self._abort is not None:
                raise self._abort from None
            raise
        except (ContainerDied, EngineUnavailable) as error:
            e = error if isinstance(error, ContainerDied) else out_of_sight(error)
            self._running = None
            self._died(e)
            raise _without_container(e) from None
        finally:
            self._running = None
            self._looking.stop()
            if timer.active():
                timer.cancel()

    async def _make_room(self, container: AgentSandbox) -> None:
        """No further process can start in the container: end all that this or earlier messages left running."""
        text = f"{_limit(container)} is reached: ending everything that the agent left running"
        self._core.emit(events.Notice(text=text))
        if not await container.end_programs():
            self._died(ContainerDied(f"the container was ended, since {_limit(container)} was reached"))

    def _error_line(self, line: str) -> None:
        self._core.log_line(self._adapter.id, line)
        self._core.emit(events.AgentDiagnostic(text=self._core.services.redactor.live(line)))

    def _died(self, why: ContainerDied) -> None:
        if self._container is None:  # both the run of the program and the watch notice it
            return
        self._dead, self._container = self._container, None
        self._core.emit(events.ContainerEnded(reason=str(why)))
        self._core.audit.append("container-end", reason=str(why))
        self.interrupt(_without_container(why))
        self._removing = Deferred.fromCoroutine(self._remove(self._dead))

    async def _remove(self, container: AgentSandbox) -> None:
        try:
            await container.stop()
            self._dead = None
        except IronCurtainError as e:  # removing is retried before the next container is created
            self.log.warn("a dead container could not be removed yet: {error}", error=e)

    async def _removed(self) -> None:
        """Wait until the previous container is removed, or cannot be removed now."""
        if self._removing is not None:
            await self._removing
            self._removing = None


def _limit(container: AgentSandbox) -> str:
    return f"the limit of {container.most_processes} processes and threads (resources.pids)"


def tail(output: bytes) -> str:
    """:returns: the end of a program's output as one line, for an error."""
    text = output[-4 * TAIL_SHOWN :].decode("utf-8", "replace").strip()
    return one_line(text[-TAIL_SHOWN:])


def _without_container(why: ContainerDied) -> SessionError:
    return SessionError("MESSAGE_FAILED", f"{why}. The next message starts a new container")


def _words(findings: tuple[ProbeFinding, ...]) -> list[str]:
    return [finding.what for finding in findings]


class Tail:
    """
    Keeps the end of a stream.

    :param limit: in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._data = limit, bytearray()
        self.size = 0
        """Number of bytes in total."""

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        self.size += len(data)
        self._data += data
        if len(self._data) > 2 * self._limit:  # rarely, so that not every piece causes a copy
            del self._data[: -self._limit]

    @property
    def kept(self) -> bytes:
        """The last bytes."""
        return bytes(self._data[-self._limit :])


class Lines:
    """
    Splits standard error into lines, bounded in length and rate.

    :param tell: called with each line.
    :param seconds: a monotonic clock.
    """

    def __init__(self, tell: Callable[[str], None], seconds: Callable[[], float]) -> None:
        self._tell, self._seconds = tell, seconds
        self._framer = Framer(4 * LINE_LIMIT)
        self._second, self._count = 0, 0

    def feed(self, data: bytes) -> None:
        """Process bytes as they arrive."""
        for line in self._framer.feed(data):
            self._line("(a line that is too long)" if isinstance(line, TooLong) else line.decode("utf-8", "replace"))

    def end(self) -> None:
        """The stream ended; the last line may lack a line end."""
        self.feed(b"\n")
        self._left_out()

    def _line(self, line: str) -> None:
        if not line.strip():
            return
        if (second := int(self._seconds())) != self._second:
            self._left_out()
            self._second, self._count = second, 0
        self._count += 1
        if self._count <= LINES_A_SECOND:
            self._tell(line.rstrip()[:LINE_LIMIT])

    def _left_out(self) -> None:
        if self._count > LINES_A_SECOND:
            self._tell(f"({self._count - LINES_A_SECOND} more lines were left out)")
        self._count = 0
