"""The agent of a loop: it accepts no messages, and runs the same prompt repeatedly."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from twisted.internet.defer import CancelledError, Deferred, succeed

from ironcurtain.audit.chain import timestamp
from ironcurtain.errors import NotFound, SessionError, Unavailable, UsageError
from ironcurtain.loop.backend import IterationTask, LoopBackend, OutputHandler, RunningProgram
from ironcurtain.loop.checkpoint import Checkpoints
from ironcurtain.loop.config import LoopSettings
from ironcurtain.loop.interrupts import Action, Interrupts
from ironcurtain.loop.iteration import IterationMonitor
from ironcurtain.loop.model import (
    EXIT_STATUS,
    Iteration,
    IterationMode,
    LoopEnding,
    LoopLimits,
    LoopState,
    RunOutcome,
    loop_end,
)
from ironcurtain.loop.output_scan import OutputScan
from ironcurtain.loop.stage import LoopFrontEnd, StreamStage, TerminalStage
from ironcurtain.loop.state import Journal, read_prompt, with_events
from ironcurtain.session import events
from ironcurtain.session.model import Reply, Usage
from ironcurtain.session.parts import Core
from ironcurtain.terminal.echo import LoopEvent, Promise
from ironcurtain.terminal.forked import NoPty
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import ProgramExit

T = TypeVar("T")


class LoopAgent:
    """
    :param backend: what each iteration runs.
    :param mode: how to run it.
    :param idle_seconds: seconds without activity after which an iteration is ended; 0: never.
    :param checkpoints: ``None``: no checkpoints.
    :param take_snapshot: takes a snapshot of the workspace before the iteration with a number.
    """

    def __init__(
        self,
        core: Core,
        reactor: Any,
        settings: LoopSettings,
        backend: LoopBackend,
        mode: IterationMode,
        idle_seconds: float,
        checkpoints: Checkpoints | None,
        take_snapshot: Callable[[int], Deferred[None]],
    ) -> None:
        self._core, self._reactor, self._settings = core, reactor, settings
        self._backend, self._mode, self._idle_seconds, self._checkpoints = backend, mode, idle_seconds, checkpoints
        self._take_snapshot, self._snapshot = take_snapshot, succeed(None)
        self._clock = core.services.clock
        self._promise = Promise(settings.event_loop.completion_promise)
        self._limits = _limits(settings, core)
        self._journal = Journal(core.paths)
        self._first = len(self._journal.state.iterations) + 1
        self._terminal: TerminalStage | None = None
        self._stage: TerminalStage | StreamStage | None = None
        self._reader: OutputScan | None = None
        self._watch: IterationMonitor | None = None
        self._interrupts = Interrupts()
        self._interrupted = ""
        self._starting: Deferred[RunningProgram] | None = None
        self._loop: Deferred[tuple[LoopEnding, str]] | None = None

    @property
    def terminal(self) -> Hub | None:
        """The terminal of all iterations, if they have one."""
        return self._terminal.hub if self._terminal is not None else None

    @property
    def state(self) -> LoopState:
        """The state of the loop."""
        return self._journal.state

    @property
    def description(self) -> str:
        """What runs and where, in words."""
        return f"{self._backend.name}, {self._backend.where}"

    async def start(self) -> None:
        """
        Check the requirements, and open the terminal; no iteration starts yet.

        :raises UsageError: there is no prompt.
        :raises NotFound: there is no such command.
        """
        self._prompt()
        self._backend.check(self._mode)
        if self._checkpoints is not None:
            await self._checkpoints.check()
        self._journal.open()
        await self._backend.start()
        if self._mode is not IterationMode.HEADLESS:
            try:
                await self._open_terminal()
            except BaseException:
                await self.stop()
                raise

    async def _open_terminal(self) -> None:
        """
        Open the terminal, and wait until its screen model answers; meanwhile the first reader of output starts.

        Both use much processor time while starting, so the first program starts afterwards.
        """
        size = self._core.request.terminal or (80, 24)
        self._terminal = TerminalStage(self._core, self._reactor, size, f"loop: {self._backend.name}")
        self._reader = self._make_reader(self._terminal)
        await self._terminal.hub.text()

    def run(self, front: LoopFrontEnd) -> Deferred[tuple[LoopEnding, str]]:
        """
        Run iterations until the loop ends.

        :returns: why it ended, as a value and in words; fails if the loop cannot continue.
        """
        self._stage = self._terminal or StreamStage(front)
        self._loop = Deferred.fromCoroutine(self._run(self._stage))
        return self._loop

    def interrupt(self, reason: str, *, at_once: bool = False) -> None:
        """
        End the program, and with it the loop.

        :param at_once: without a grace period.
        """
        self._interrupted = self._interrupted or reason
        self._snapshot.cancel()
        if self._starting is not None:
            self._starting.cancel()
        elif self._watch is not None:
            self._watch.end(RunOutcome.INTERRUPTED, reason, at_once=at_once)

    def pressed(self, key: str) -> Action:
        """
        A reserved key was pressed at the loop's own terminal.

        :param key: ``interrupt`` or ``quit``.
        :returns: the action taken; the caller forwards the key.
        """
        keys = self._interrupts
        action = keys.ctrl_backslash() if key == "quit" else keys.ctrl_c(self._clock.seconds())
        if action is Action.TERMINATE:
            self.interrupt("Ctrl-C was pressed twice")
        elif action is Action.KILL:
            self.interrupt("Ctrl-Backslash was pressed", at_once=True)
        return action

    async def respond(self, message: str) -> Reply:
        """:raises SessionError: always, since a loop's only input is its prompt."""
        raise SessionError("MESSAGE_FAILED", "a loop accepts no messages: change the file of its prompt instead")

    async def stop(self) -> None:
        """End the current program, and the loop."""
        self.interrupt("the session was ended")
        if self._loop is not None and not self._loop.called:
            await self._ended()
        elif self._terminal is not None:
            self._terminal.close(EXIT_STATUS[LoopEnding.INTERRUPTED], self._interrupted)
        if self._reader is not None:
            self._reader.lost("is not needed")
        await self._backend.stop()

    def _ended(self) -> Deferred[None]:
        done: Deferred[None] = Deferred()

        def ended(result: T) -> T:
            done.callback(None)
            return result

        if self._loop is not None:
            self._loop.addBoth(ended)
        return done

    def usage(self) -> Usage:
        """:returns: the known usage of all iterations."""
        return Usage(cost=self.state.cost or None, token_tracking_available=False)

    async def _run(self, stage: TerminalStage | StreamStage) -> tuple[LoopEnding, str]:
        ending, reason = LoopEnding.FAILURES, "it could not continue"
        try:
            while (found := self._over()) is None:
                number = len(self.state.iterations) + 1
                if await self._is_prepared(number):
                    await self._iterate(stage, number)
            ending, reason = found
            return found
        except Exception as e:
            reason = str(e)
            raise
        finally:
            try:
                self._journal.over(ending, reason)
                self._core.audit.append("loop-end", outcome=str(ending), reason=reason)
            finally:
                stage.close(EXIT_STATUS[ending], reason)

    def _over(self) -> tuple[LoopEnding, str] | None:
        if self._interrupted:
            return LoopEnding.INTERRUPTED, self._interrupted
        return loop_end(self.state, self._limits, self._first)

    async def _is_prepared(self, number: int) -> bool:
        """:returns: whether the iteration may begin: it was not interrupted during its snapshot."""
        self._snapshot = self._take_snapshot(number)
        try:
            await self._snapshot
        except CancelledError:
            if not self._interrupted:
                raise
        return not self._interrupted

    async def _iterate(self, stage: TerminalStage | StreamStage, number: int) -> None:
        prompt = with_events(self._prompt(), self.state.events)
        iteration = Iteration(
            number=number, outcome=RunOutcome.RUNNING, started_at=timestamp(self._core.services.now())
        )
        self._journal.begin(iteration, prompt)
        self._begin(stage, number)
        watch, reader, ended = await self._work(stage, prompt, number)
        outcome, reason = await watch.ended(ended)
        self._watch, stage.reader = None, None
        stage.iteration_ended()
        iteration = msgspec.structs.replace(
            iteration,
            outcome=outcome,
            status=ended.status,
            reason=reason,
            seconds=round(self._clock.seconds() - watch.began, 3),
            cost=self._backend.cost(),
            events=len(reader.events),
            commit=await self._checkpoint(stage, number),
        )
        self._journal.end(iteration, reader.events, self._core.services.redactor.text(watch.text))
        self._end(stage, iteration)

    def _begin(self, stage: TerminalStage | StreamStage, number: int) -> None:
        command = list(self._backend.shown(self._mode))
        self._core.audit.append("iteration", number=number, mode=str(self._mode), command=command)
        self._core.emit(events.TurnStarted(turn=number, message=f"iteration {number}"))
        stage.mark(f"iteration {number}")
        stage.say(f"iteration {number} of at most {self._limits.iterations}: {self._backend.name}")

    def _end(self, stage: TerminalStage | StreamStage, iteration: Iteration) -> None:
        self._core.audit.append(
            "iteration-end",
            number=iteration.number,
            outcome=str(iteration.outcome),
            status=iteration.status,
            reason=iteration.reason,
            durationMs=round(iteration.seconds * 1000, 1),
            cost=iteration.cost,
            commit=iteration.commit,
        )
        failed = iteration.outcome is RunOutcome.FAILED
        error = (iteration.reason or "failed") if failed else ""
        self._core.emit(events.TurnFinished(turn=iteration.number, answer=str(iteration.outcome), error=error))
        why = f": {iteration.reason}" if iteration.reason else ""
        stage.say(f"iteration {iteration.number}: {iteration.outcome} after {iteration.seconds:.1f} s{why}")

    async def _work(
        self, stage: TerminalStage | StreamStage, prompt: str, number: int
    ) -> tuple[IterationMonitor, OutputScan, ProgramExit]:
        try:
            return await self._try(stage, prompt, number, self._mode)
        except NoPty as e:
            self._core.log_line("loop", f"no terminal: {e}")
            stage.say(f"error: {e}; falling back to headless for this iteration")
            return await self._try(stage, prompt, number, IterationMode.HEADLESS)

    async def _try(
        self, stage: TerminalStage | StreamStage, prompt: str, number: int, mode: IterationMode
    ) -> tuple[IterationMonitor, OutputScan, ProgramExit]:
        piped = mode is IterationMode.HEADLESS
        stream = stage.stream
        reader, self._reader = self._reader or self._make_reader(stage), None
        reader.begin(self._promise.text, prompt, None if piped else stage.size)
        left = None if self._limits.seconds is None else max(0.0, self._limits.seconds - self.state.seconds)
        show = stage.piped if piped else stage.output
        watch = IterationMonitor(self._clock, reader, show, self._idle_seconds, left, lambda: self._active(stage))
        stream.listens = mode is IterationMode.INTERACTIVE

        owner = OutputHandler(watch.received, stage.complained, stage.input_full)
        task = IterationTask(prompt, mode, self._environ(number), stage.size, stream)
        self._starting = Deferred.fromCoroutine(self._backend.run(task, owner))
        try:
            running: RunningProgram = await self._starting
        except (CancelledError, NotFound, Unavailable, SessionError, UsageError) as e:
            if isinstance(e, NoPty) or (isinstance(e, CancelledError) and not self._interrupted):
                reader.lost("is not needed")
                raise
            if self._interrupted:
                watch.end(RunOutcome.INTERRUPTED, self._interrupted)
            return watch, reader, ProgramExit(None if self._interrupted else 1, str(e))
        except BaseException:
            reader.lost("is not needed")
            raise
        finally:
            self._starting = None
        stage.reader, self._watch = reader, watch
        watch.begin(running)
        ended = await running.done
        return watch, reader, ended

    def _make_reader(self, stage: TerminalStage | StreamStage) -> OutputScan:
        return OutputScan(self._reactor, lambda event: self._event(stage, event), stage.stream.hold_back)

    def _active(self, stage: TerminalStage | StreamStage) -> tuple[float, bool]:
        """Waiting for a person does not count as idle."""
        typed, held_up = stage.active()
        return typed, held_up or bool(self._core.escalations.pending())

    def _event(self, stage: TerminalStage | StreamStage, event: LoopEvent) -> None:
        redactor = self._core.services.redactor
        payload = redactor.live(" ".join(event.payload.split()))
        self._core.audit.append("loop-event", topic=event.topic, payload=event.payload)
        self._core.emit(events.Progress(text=f"event {event.topic}: {payload}"))
        if self._terminal is None:  # in a terminal it is already on the screen
            stage.say(f"event {event.topic}: {payload}")

    async def _checkpoint(self, stage: TerminalStage | StreamStage, number: int) -> str:
        if self._checkpoints is None:
            return ""
        commit, problem = await self._checkpoints.commit(f"Loop iteration {number}")
        if problem:
            stage.say(f"no checkpoint: {problem}")
        return commit

    def _prompt(self) -> str:
        chosen = self._settings.event_loop
        workspace = self._core.workspace
        return read_prompt(chosen.prompt, workspace / Path(chosen.prompt_file), workspace)

    def _environ(self, number: int) -> dict[str, str]:
        return {
            "IRONCURTAIN_LOOP_ITERATION": str(number),
            "IRONCURTAIN_LOOP_PROMPT_FILE": os.fspath(self._journal.prompt_file),
            "IRONCURTAIN_LOOP_EVENTS": os.fspath(self._journal.events_file),
        }


def _limits(settings: LoopSettings, core: Core) -> LoopLimits:
    chosen, budget = settings.event_loop, core.services.settings.budget
    seconds = budget.seconds if chosen.max_runtime_seconds is None else chosen.max_runtime_seconds
    cost = budget.cost if chosen.max_cost_usd is None else chosen.max_cost_usd
    return LoopLimits(chosen.max_iterations, seconds, cost, chosen.max_consecutive_failures)
