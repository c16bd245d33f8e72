"""
An agent program in a sandbox: both live as long as possible. A program that takes no further message runs once for
each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as Late
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.agents.adapter import Adapter, Facts
from ironcurtain.agents.outcome import CUT, TurnFailed, failure
from ironcurtain.agents.streams.reports import Failed, Named, Report, Taken, TurnOver
from ironcurtain.container.container import ProgramEnded, out_of_sight
from ironcurtain.container.errors import ContainerDied, EngineUnavailable
from ironcurtain.container.execution import shielded
from ironcurtain.container.inside import ProbeFinding
from ironcurtain.container_agent.agent_sandbox import AgentSandbox
from ironcurtain.container_agent.leftovers import removed
from ironcurtain.container_agent.output import tail
from ironcurtain.container_agent.program import AgentProgram
from ironcurtain.container_agent.proxies import Proxies, Traffic
from ironcurtain.container_agent.reporting import Reporting
from ironcurtain.errors import IronCurtainError, SessionError, UsageError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.session import events
from ironcurtain.session.agent_commands import Clear, Compact, UseModel, read_command
from ironcurtain.session.model import Reply, Usage
from ironcurtain.session.parts import Core

BUDGET_SECONDS = 1.0
"""Seconds between checks of the time budget while a message is processed."""

INTERRUPT_SECONDS = 5.0
"""Seconds that a program has to end its turn when it is asked (real ones need milliseconds), before it is ended."""


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
        self._running: Deferred[TurnOver] | None = None
        self._program: AgentProgram | None = None
        self._command: tuple[str, ...] = ()
        self._conversation = ""
        self._handed: list[tuple[str, Callable[[], None]]] = []
        self._reporting = Reporting(core)
        self._abort: IronCurtainError | None = None
        self._clock: Any = core.services.clock
        self._looking = LoopingCall(traffic.look)
        self._looking.clock = self._clock
        proxies.on_exhausted = self.interrupt
        proxies.on_death = lambda why: self.interrupt(SessionError("MESSAGE_FAILED", why))

    @property
    def sandbox(self) -> AgentSandbox | None:
        """Where its programs run; ``None``: it is not up."""
        return self._container

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
        command = read_command(message)
        if isinstance(command, Clear):
            return await self._clear()
        if isinstance(command, UseModel):
            return await self._use_model(command.name)
        self._traffic.begin()
        if self._proxies.dead:
            raise SessionError("MESSAGE_FAILED", self._proxies.dead)
        if self._container is not None and await self._container.crowded():
            await self._make_room(self._container)
        if self._container is None:
            self._container = await self._open()
        if not self._oriented:
            await self._orient()
        program = await self._program_in(self._container)
        said = f"{self._notice}\n\n{message}" if self._notice and command is None else message
        over = await self._run(self._container, program, said)
        if over.failed is not None:
            raise self._failure(over, program)
        self._answered, self._notice = True, ""
        self._remember()
        # Not all agents say that their model was cut off.
        cut = self._traffic.cut and not over.answer.endswith(CUT)
        return Reply(f"{over.answer}\n{CUT}" if cut else over.answer, self._usage_of(over))

    def join(self, message: str, taken: Callable[[], None]) -> bool:
        """See :class:`~ironcurtain.session.message_queue.JoiningAgent`."""
        if self._running is None or self._program is None or read_command(message) is not None:
            return False
        if not self._program.join(message):
            return False
        self._handed.append((message, taken))
        return True

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

    async def _clear(self) -> Reply:
        await self._end_program()
        self._facts, self._conversation = replace(self._facts, conversation=""), ""
        self._answered, self._notice = False, ""
        self._core.paths.agent_conversation.unlink(missing_ok=True)
        return Reply("the next message begins a new conversation; the files stay as they are", Usage())

    async def _use_model(self, model: str) -> Reply:
        if not model:
            return Reply(f"the model is {self._facts.model or 'the default of the agent'}", Usage())
        facts = replace(self._facts, model=model)
        try:
            self._adapter.environment(facts)
        except UsageError as e:
            raise SessionError("MESSAGE_FAILED", str(e)) from None
        self._facts = facts
        if self._oriented:
            self._making.place(facts)
        await self._end_program()
        return Reply(f"the model is {model} from the next message on, until this session is resumed", Usage())

    async def _end_program(self) -> None:
        """End the program between messages: the next message starts another one."""
        if self._program is not None and self._program.running:
            with suppress(ContainerDied, EngineUnavailable):
                await self._program.end()

    async def _program_in(self, container: AgentSandbox) -> AgentProgram:
        """:returns: the program that runs, or a new one."""
        if self._program is None or not self._program.running:
            dialogue = self._adapter.dialogue(self._facts)
            self._program = AgentProgram(dialogue, self._reported, self._error_line, self._clock)
            command = self._command = self._adapter.turn(self._facts, not self._answered)
            try:
                await self._program.start(container, command, self._adapter.environment(self._facts))
            except (ContainerDied, EngineUnavailable) as e:
                raise self._lost(e) from None
        return self._program

    async def _run(self, container: AgentSandbox, program: AgentProgram, message: str) -> TurnOver:
        self._core.audit.append("run", command=list(self._command))
        began, before = self._clock.seconds(), program.stdout.size
        status: int | None = -1
        try:
            over = await self._ended(program, message)
            status = program.ended.status if program.ended is not None else None
        finally:
            self._reporting.end()
            took = round((self._clock.seconds() - began) * 1000, 1)
            self._core.audit.append("run-end", status=status, durationMs=took, size=program.stdout.size - before)
        crowded = await container.crowded()
        if crowded:
            await self._make_room(container)
        if (ended := program.ended) is not None and ended.status:
            self._check_limits(container, program, ended, crowded)
        return over

    def _check_limits(self, container: AgentSandbox, program: AgentProgram, ended: ProgramEnded, crowded: bool) -> None:
        said = tail(program.stderr.kept or program.stdout.kept)
        if crowded or ended.out_of_processes:
            raise SessionError(
                "MESSAGE_FAILED",
                f"the agent's program ended with status {ended.status}, after {_limit(container)} was reached: say "
                f"what to do next, or raise resources.pids. {said}",
            )
        if ended.out_of_memory:
            raise SessionError(
                "MESSAGE_FAILED",
                f"the agent's program ended with status {ended.status}, after a process was ended because the "
                f"container's memory was used up: raise resources.memory_mb. {said}",
            )

    async def _ended(self, program: AgentProgram, message: str) -> TurnOver:
        limit = self._core.services.settings.agents.turn_seconds
        late = SessionError(
            "MESSAGE_FAILED",
            f"the agent was ended after {limit:g} s: say what to do next, or raise agents.turn_seconds",
        )
        self._abort = None
        self._handed = [handed for handed in self._handed if handed[0] != message]
        timer = self._clock.callLater(limit, self.interrupt, late)
        self._looking.start(BUDGET_SECONDS, now=False)
        turn = program.send(message, isinstance(read_command(message), Compact))
        try:
            self._running = _followed(turn)
            return await self._running
        except CancelledError:
            self._running = None
            await shielded(Deferred.fromCoroutine(self._quieten(program, turn)))
            if self._abort is not None:
                raise self._abort from None
            raise
        except (ContainerDied, EngineUnavailable) as e:
            raise self._lost(e) from None
        finally:
            self._running = None
            self._looking.stop()
            if timer.active():
                timer.cancel()

    async def _quieten(self, program: AgentProgram, turn: Deferred[TurnOver]) -> None:
        """End a turn: ask the program to, and end the program if it cannot be asked or does not do it."""
        if program.interrupt():
            with suppress(Late):
                await turn.addTimeout(INTERRUPT_SECONDS, self._clock)
                return
        with suppress(ContainerDied, EngineUnavailable):
            await program.end()

    def _failure(self, over: TurnOver, program: AgentProgram) -> TurnFailed:
        failed, outcome = over.failed, program.outcome
        if isinstance(failed, Failed):
            failed = failure(self._adapter.display_name, outcome, failed.reason, status=failed.status, kind=failed.kind)
        assert failed is not None
        self._core.audit.append("turn-failed", failure=failed.kind, reason=str(failed), status=outcome.exit_code)
        failed.partial = over.answer
        return failed

    def _reported(self, report: Report) -> None:
        if isinstance(report, Named):
            self._conversation = report.conversation
        elif isinstance(report, Taken):
            self._take(report.message)
        else:
            self._reporting.take(report)

    def _take(self, message: str) -> None:
        for handed in self._handed:
            if handed[0] == message:
                self._handed.remove(handed)
                handed[1]()
                return

    def _remember(self) -> None:
        """Keep the conversation's id for later programs: it has been answered, so that it can be resumed."""
        if self._conversation and self._conversation != self._facts.conversation:
            self._facts = replace(self._facts, conversation=self._conversation)
            write_atomically(self._core.paths.agent_conversation, self._conversation.encode())

    def _usage_of(self, over: TurnOver) -> Usage:
        """:returns: the usage of a turn, as the agent counted it if no provider did."""
        used, counted = self.usage(), over.usage
        if used.token_tracking_available or counted is None:
            return used
        return Usage(input_tokens=counted.prompt_tokens, output_tokens=counted.output_tokens)

    def _lost(self, error: ContainerDied | EngineUnavailable) -> SessionError:
        e = error if isinstance(error, ContainerDied) else out_of_sight(error)
        self._running = None
        self._died(e)
        return _without_container(e)

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
        self._dead, self._container, self._program = self._container, None, None
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


def _followed(turn: Deferred[TurnOver]) -> Deferred[TurnOver]:
    """:returns: fires with the turn's end. Cancelling it leaves the turn alone, whose end interests nobody then."""
    waiting: Deferred[TurnOver] = Deferred()
    turn.addBoth(lambda over: None if waiting.called else waiting.callback(over))
    return waiting


def _limit(container: AgentSandbox) -> str:
    return f"the limit of {container.most_processes} processes and threads (resources.pids)"


def _without_container(why: ContainerDied) -> SessionError:
    return SessionError("MESSAGE_FAILED", f"{why}. The next message starts a new one")


def _words(findings: tuple[ProbeFinding, ...]) -> list[str]:
    return [finding.what for finding in findings]
