"""
An agent program in a sandbox: both live as long as possible. A program that takes no further message runs once for
each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.defer import TimeoutError as Late
from twisted.internet.task import LoopingCall
from twisted.python.failure import Failure

from ironcurtain.agents.adapter import Adapter, Facts
from ironcurtain.agents.outcome import CUT, TurnFailed, failure
from ironcurtain.agents.streams.reports import Activity, Failed, Named, Report, Taken, TurnOver
from ironcurtain.container.container import ProgramEnded, out_of_sight
from ironcurtain.container.errors import ContainerDied, EngineUnavailable
from ironcurtain.container.execution import shielded
from ironcurtain.container.project_commands import CommandsProposal
from ironcurtain.container_agent.agent_sandbox import AgentSandbox
from ironcurtain.container_agent.conversation import Conversation
from ironcurtain.container_agent.handed_over import HandedOver
from ironcurtain.container_agent.output import tail
from ironcurtain.container_agent.program import AgentProgram
from ironcurtain.container_agent.project_setup import ProjectSetup
from ironcurtain.container_agent.proxies import Proxies, Traffic
from ironcurtain.container_agent.reporting import Reporting
from ironcurtain.container_agent.sandbox_life import SandboxLife, limit_words
from ironcurtain.errors import IronCurtainError, SessionError
from ironcurtain.session import events
from ironcurtain.session.agent_commands import Clear, Compact, UseModel, read_command
from ironcurtain.session.model import Reply, Usage
from ironcurtain.session.parts import Core

BUDGET_SECONDS = 1.0
"""Seconds between checks of the time budget while a message is processed."""

INTERRUPT_SECONDS = 5.0
"""Seconds that a program has to end its turn when it is asked (real ones need milliseconds), before it is ended."""

T = TypeVar("T")


class Making(msgspec.Struct, frozen=True):
    """
    Functions that an agent needs, which work once the session's other parts are up.

    :param container: creates a container without starting it; takes the function to call if it dies.
    :param place: writes the agent's files.
    :param orient: returns the orientation for the agent, once its tools are known.
    :param commands: returns what the project wants to be run in new containers.
    """

    container: Callable[[Callable[[ContainerDied], None]], Awaitable[AgentSandbox]]
    place: Callable[[Facts], None]
    orient: Callable[[], Awaitable[str]]
    commands: Callable[[], CommandsProposal | None]


class _Started(msgspec.Struct, frozen=True):
    """A program, the command line with which it was started, and the messages that it has."""

    program: AgentProgram
    command: tuple[str, ...]
    handed: HandedOver


class ContainerAgent:
    """
    :param facts: for the adapter; the orientation is added later.
    :param answered: whether a message of this conversation has been answered.
    :param notice: precedes the messages until one is answered; empty: nothing does.
    """

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
        self._core, self._proxies, self._adapter, self._traffic = core, proxies, adapter, traffic
        self._conversation = Conversation(core, adapter, facts, making.place, making.orient, answered, notice)
        self._sandboxes = SandboxLife(core, making.container, self._died)
        self._setup = ProjectSetup(core, making.commands)
        self._preparing: Deferred[None] = succeed(None)
        self._running: Deferred[TurnOver] | None = None
        self._started: _Started | None = None
        self._reporting = Reporting(core)
        self._abort: IronCurtainError | None = None
        proxies.on_exhausted = self.interrupt
        proxies.on_death = lambda why: self.interrupt(SessionError("MESSAGE_FAILED", why))

    @property
    def sandbox(self) -> AgentSandbox | None:
        """Where its programs run; ``None``: it is not up."""
        return self._sandboxes.current

    @property
    def model(self) -> str:
        """The name of the model that was chosen; empty: the default of its program."""
        return self._conversation.facts.model

    @property
    def _is_starting(self) -> bool:
        """Whether a message has to wait for a program that reports when it works on it."""
        if self._started is not None and self._started.program.running:
            return not self._started.program.ready
        return self._adapter.dialogue(self._conversation.facts).resident

    @property
    def _clock(self) -> Any:
        return self._core.services.clock

    async def start(self) -> None:
        """Start the container."""
        self._conversation.environment()  # raise now what would otherwise fail the first message
        await self._sandboxes.open()

    def prepare(self) -> None:
        """See :class:`~ironcurtain.session.parts.PreparingAgent`. What fails, fails again with the message."""
        self._preparing = Deferred.fromCoroutine(self._prepare()).addErrback(self._unprepared)

    async def respond(self, message: str) -> Reply:
        """
        Run the program for a message.

        :raises SessionError: ``MESSAGE_FAILED``: the program failed, or was ended: by the time limit, by the budget,
            with its container.
        """
        command, conversation = read_command(message), self._conversation
        if isinstance(command, Clear | UseModel):
            self._traffic.rest()
            return await (self._clear() if isinstance(command, Clear) else self._use_model(command.name))
        self._traffic.begin()
        if self._proxies.dead:
            raise SessionError("MESSAGE_FAILED", self._proxies.dead)
        if self._is_starting:
            self._reporting.take(Activity("starting"))
        await _followed(self._preparing)
        container = await self._ready_sandbox()
        started = await self._program_in(container)
        said = started.handed.begin(message, conversation.notice if command is None else "")
        over = await self._run(container, started, said)
        if over.failed is not None:
            raise self._failure(over, started.program)
        conversation.answered()
        # Not all agents say that their model was cut off.
        cut = self._traffic.cut and not over.answer.endswith(CUT)
        return Reply(f"{over.answer}\n{CUT}" if cut else over.answer, self._usage_of(over))

    def join(self, message: str, taken: Callable[[], None]) -> bool:
        """See :class:`~ironcurtain.session.message_queue.JoiningAgent`."""
        if self._running is None or self._started is None or read_command(message) is not None:
            return False
        if not self._started.program.join(message):
            return False
        self._started.handed.add(message, taken)
        return True

    async def stop(self) -> None:
        """End and remove the container."""
        self._preparing.cancel()
        await self._sandboxes.stop()

    def usage(self) -> Usage:
        """:returns: the usage of the message so far."""
        return self._traffic.usage()

    def interrupt(self, why: IronCurtainError) -> None:
        """End the run of the program, if there is one; its message fails with this error."""
        if self._running is not None and self._abort is None:
            self._abort = why
            self._running.cancel()

    async def _prepare(self) -> None:
        container = await self._ready_sandbox()
        if self._adapter.dialogue(self._conversation.facts).resident:
            await self._program_in(container)

    def _unprepared(self, failure: Failure) -> None:
        failure.trap(IronCurtainError, CancelledError)
        self._core.log_line(self._adapter.id, f"it could not be started before the first message: {failure.value}")

    async def _ready_sandbox(self) -> AgentSandbox:
        """:returns: one in which the agent's programs can start, and find what they need."""
        container = await self._sandboxes.roomy()
        try:
            await self._setup.run(container)
        except (ContainerDied, EngineUnavailable) as e:
            raise self._lost(e) from None
        await self._conversation.orient()
        return container

    async def _clear(self) -> Reply:
        await self._end_program()
        self._conversation.clear()
        return Reply("the next message begins a new conversation; the files stay as they are", Usage())

    async def _use_model(self, model: str) -> Reply:
        if not model:
            return Reply(f"the model is {self._conversation.facts.model or 'the default of the agent'}", Usage())
        self._conversation.use_model(model)
        await self._end_program()
        return Reply(f"the model is {model} from the next message on, until this session is resumed", Usage())

    async def _end_program(self) -> None:
        """End the program between messages: the next message starts another one."""
        if self._started is not None and self._started.program.running:
            with suppress(ContainerDied, EngineUnavailable):
                await self._started.program.end()

    async def _program_in(self, container: AgentSandbox) -> _Started:
        """:returns: the program that runs, or a new one."""
        if self._started is None or not self._started.program.running:
            dialogue = self._adapter.dialogue(self._conversation.facts)
            program = AgentProgram(dialogue, self._reported, self._error_line, self._clock)
            started = self._started = _Started(program, self._conversation.command, HandedOver())
            try:
                await program.start(container, started.command, self._conversation.environment())
            except (ContainerDied, EngineUnavailable) as e:
                raise self._lost(e) from None
        return self._started

    async def _run(self, container: AgentSandbox, started: _Started, message: str) -> TurnOver:
        program = started.program
        self._core.audit.append("run", command=list(started.command))
        began, before = self._clock.seconds(), program.stdout.size
        status: int | None = -1
        try:
            over = await self._ended(started, message)
            status = program.ended.status if program.ended is not None else None
        finally:
            self._reporting.end()
            took = round((self._clock.seconds() - began) * 1000, 1)
            self._core.audit.append("run-end", status=status, durationMs=took, size=program.stdout.size - before)
        crowded = await container.crowded()
        if crowded:
            await self._sandboxes.make_room(container)
        if (ended := program.ended) is not None and ended.status:
            self._check_limits(container, program, ended, crowded)
        return over

    def _check_limits(self, container: AgentSandbox, program: AgentProgram, ended: ProgramEnded, crowded: bool) -> None:
        said = tail(program.stderr.kept or program.stdout.kept)
        if crowded or ended.out_of_processes:
            raise SessionError(
                "MESSAGE_FAILED",
                f"the agent's program ended with status {ended.status}, after {limit_words(container)} was reached: "
                f"say what to do next, or raise resources.pids. {said}",
            )
        if ended.out_of_memory:
            raise SessionError(
                "MESSAGE_FAILED",
                f"the agent's program ended with status {ended.status}, after a process was ended because the "
                f"container's memory was used up: raise resources.memory_mb. {said}",
            )

    async def _ended(self, started: _Started, message: str) -> TurnOver:
        program = started.program
        limit = self._core.services.settings.agents.turn_seconds
        late = SessionError(
            "MESSAGE_FAILED",
            f"the agent was ended after {limit:g} s: say what to do next, or raise agents.turn_seconds",
        )
        self._abort = None
        timer = self._clock.callLater(limit, self.interrupt, late)
        looking = LoopingCall(self._traffic.look)
        looking.clock = self._clock
        looking.start(BUDGET_SECONDS, now=False)
        turn = program.send(message, isinstance(read_command(message), Compact))
        try:
            self._running = _followed(turn)
            return await self._running
        except CancelledError:
            self._running = None
            await shielded(Deferred.fromCoroutine(self._quieten(program, turn)))
            started.handed.clear()
            if self._abort is not None:
                raise self._abort from None
            raise
        except (ContainerDied, EngineUnavailable) as e:
            raise self._lost(e) from None
        finally:
            self._running = None
            looking.stop()
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
            self._conversation.name = report.conversation
        elif isinstance(report, Taken):
            if self._started is not None:
                self._started.handed.take(report.message)
        else:
            self._reporting.take(report)

    def _usage_of(self, over: TurnOver) -> Usage:
        """:returns: the usage of a turn, as the agent counted it if no provider did."""
        used, counted = self.usage(), over.usage
        if used.token_tracking_available or counted is None:
            return used
        return Usage(input_tokens=counted.prompt_tokens, output_tokens=counted.output_tokens)

    def _lost(self, error: ContainerDied | EngineUnavailable) -> SessionError:
        e = error if isinstance(error, ContainerDied) else out_of_sight(error)
        self._running = None
        self._sandboxes.died(e)
        return _without_container(e)

    def _error_line(self, line: str) -> None:
        self._core.log_line(self._adapter.id, line)
        self._core.emit(events.AgentDiagnostic(text=self._core.services.redactor.live(line)))

    def _died(self, why: ContainerDied) -> None:
        self._started = None
        self.interrupt(_without_container(why))


def _followed(work: Deferred[T]) -> Deferred[T]:
    """:returns: fires with the work's end. Cancelling it leaves the work alone, whose end interests nobody then."""
    waiting: Deferred[T] = Deferred()
    work.addBoth(lambda over: None if waiting.called else waiting.callback(over))
    return waiting


def _without_container(why: ContainerDied) -> SessionError:
    return SessionError("MESSAGE_FAILED", f"{why}. The next message starts a new one")
