"""An agent program in a container: one container while all is well, one run of the program for each message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.agents.adapter import Adapter, Facts, TurnFailed, TurnOutcome
from ironcurtain.container.container import Container, ProgramEnded, out_of_sight
from ironcurtain.container.errors import ContainerDied, EngineUnavailable
from ironcurtain.container.inside import ProbeFinding
from ironcurtain.container_agent.leftovers import removed
from ironcurtain.container_agent.proxies import Proxies, Traffic
from ironcurtain.errors import IronCurtainError, SessionError
from ironcurtain.jsonrpc.framing import Framer, TooLong
from ironcurtain.session import events
from ironcurtain.session.model import Reply, Usage
from ironcurtain.session.parts import Core
from ironcurtain.text.display import one_line

TAIL_SHOWN = 600
"""Most characters of a failed program's last output in the error."""

BUDGET_SECONDS = 1.0
"""How often the budget of time is looked at while a message is worked on."""


ANSWER_LIMIT = 4 * 1024 * 1024
"""Most bytes of a program's output that are kept, the last ones (an answer with all its events)."""

ERRORS_LIMIT = 64 * 1024
"""Most bytes of its error output that are kept, the last ones."""

LINE_LIMIT = 2000
"""Most characters of a line of error output that are told."""

LINES_A_SECOND = 50
"""How many lines of error output are told each second; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Making:
    """
    What an agent needs that is made once the session's other parts are up.

    :param container: makes a container that is not started; gets whom to tell if it dies.
    :param place: writes the agent's files.
    :param orient: gives what the agent is told about where it is, once its tools are known.
    """

    container: Callable[[Callable[[ContainerDied], None]], Awaitable[Container]]
    place: Callable[[Facts], None]
    orient: Callable[[], Awaitable[str]]


class ContainerAgent:
    """
    :param facts: for the adapter; the orientation comes later.
    :param answered: whether a message of this conversation was answered before.
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
    ) -> None:
        self._core, self._proxies, self._adapter, self._facts = core, proxies, adapter, facts
        self._making, self._traffic, self._answered = making, traffic, answered
        self._container: Container | None = None
        self._dead: Container | None = None
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
        self._adapter.environment(self._facts)  # raises now what would otherwise fail the first message
        self._container = await self._open()

    async def respond(self, message: str) -> Reply:
        """
        Let the program work on a message.

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
        outcome = await self._run(self._container, message)
        try:
            text = answer(outcome).text
        except TurnFailed as e:
            self._core.audit.append("turn-failed", failure=e.kind, reason=str(e), status=outcome.exit_code)
            raise
        self._answered = True
        return Reply(text, self.usage())

    async def stop(self) -> None:
        """End the container and all in it, and remove it."""
        await self._removed()
        if (container := self._container or self._dead) is not None:
            self._container = self._dead = None
            await removed(container, self._core)

    def usage(self) -> Usage:
        """:returns: what the message used so far."""
        return self._traffic.usage()

    def interrupt(self, why: IronCurtainError) -> None:
        """End the run of the program, if there is one; its message fails with this error."""
        if self._running is not None and self._abort is None:
            self._abort = why
            self._running.cancel()

    async def _open(self) -> Container:
        await self._removed()
        if self._dead is not None:  # the next one has its name
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

    async def _run(self, container: Container, message: str) -> TurnOutcome:
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
        container: Container,
        command: tuple[str, ...],
        message: str,
        stdout: Callable[[bytes], None],
        stderr: Callable[[bytes], None],
    ) -> ProgramEnded:
        limit = self._core.services.settings.agents.turn_seconds
        late = SessionError(
            "MESSAGE_FAILED",
            f"the agent worked for {limit:g} s and was ended: say what to do next, or raise agents.turn_seconds",
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

    async def _make_room(self, container: Container) -> None:
        """Nothing more can start in the container: end all that earlier messages, or this one, left in it."""
        text = f"{_limit(container)} is reached: all that the agent left running is ended"
        self._core.emit(events.Notice(text=text))
        if not await container.end_programs():
            self._died(ContainerDied(f"the container was ended, since {_limit(container)} was reached"))

    def _error_line(self, line: str) -> None:
        self._core.log_line(self._adapter.id, line)
        self._core.emit(events.AgentDiagnostic(text=self._core.services.redactor.live(line)))

    def _died(self, why: ContainerDied) -> None:
        if self._container is None:  # the run of the program and the watch both see it
            return
        self._dead, self._container = self._container, None
        self._core.emit(events.ContainerEnded(reason=str(why)))
        self._core.audit.append("container-end", reason=str(why))
        self.interrupt(_without_container(why))
        self._removing = Deferred.fromCoroutine(self._remove(self._dead))

    async def _remove(self, container: Container) -> None:
        try:
            await container.stop()
            self._dead = None
        except IronCurtainError as e:  # it is tried again before the next one is made
            self.log.warn("a dead container is not removed yet: {error}", error=e)

    async def _removed(self) -> None:
        """Wait until the container before is gone, or cannot be removed now."""
        if self._removing is not None:
            await self._removing
            self._removing = None


def _limit(container: Container) -> str:
    return f"the limit of {container.most_processes} processes and threads (resources.pids)"


def tail(output: bytes) -> str:
    """:returns: the end of a program's output on one line, for an error."""
    text = output[-4 * TAIL_SHOWN :].decode("utf-8", "replace").strip()
    return one_line(text[-TAIL_SHOWN:])


def _without_container(why: ContainerDied) -> SessionError:
    return SessionError("MESSAGE_FAILED", f"{why}. The next message starts a new container")


def _words(findings: tuple[ProbeFinding, ...]) -> list[str]:
    return [finding.what for finding in findings]


class Tail:
    """
    The end of what is fed.

    :param limit: in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._data = limit, bytearray()
        self.size = 0
        """How many bytes there were in all."""

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""
        self.size += len(data)
        self._data += data
        if len(self._data) > 2 * self._limit:  # seldom, so that not each piece moves all of them
            del self._data[: -self._limit]

    @property
    def kept(self) -> bytes:
        """The last bytes."""
        return bytes(self._data[-self._limit :])


class Lines:
    """
    Error output, cut into lines, bounded in length and number.

    :param tell: hears each line.
    :param seconds: a clock that never goes back.
    """

    def __init__(self, tell: Callable[[str], None], seconds: Callable[[], float]) -> None:
        self._tell, self._seconds = tell, seconds
        self._framer = Framer(4 * LINE_LIMIT)
        self._second, self._count = 0, 0

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""
        for line in self._framer.feed(data):
            self._line("(a line that is too long)" if isinstance(line, TooLong) else line.decode("utf-8", "replace"))

    def end(self) -> None:
        """There will be no more: the last line may have no end."""
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
