"""The agent of a loop: it accepts no messages, and runs the same prompt repeatedly."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from twisted.internet.defer import CancelledError, Deferred, succeed

from ironcurtain.audit.chain import timestamp
from ironcurtain.errors import SessionError
from ironcurtain.loop.config import LoopSettings
from ironcurtain.loop.interrupts import Action, Interrupts
from ironcurtain.loop.limit_wait import LimitWait
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
from ironcurtain.loop.program_runs import LoopWork, ProgramRuns, Stage
from ironcurtain.loop.stage import LogFrontEnd, LoopFrontEnd, StreamStage, TerminalStage
from ironcurtain.loop.state import Journal, prompt_of, with_events
from ironcurtain.session import events
from ironcurtain.session.model import Reply, Usage
from ironcurtain.session.parts import Core
from ironcurtain.terminal.hub import Hub
from ironcurtain.text.display import elapsed, one_line

T = TypeVar("T")


class LoopAgent:
    """
    :param work: what the loop does.
    """

    model = ""

    def __init__(self, core: Core, reactor: Any, work: LoopWork) -> None:
        self._core, self._reactor, self._work = core, reactor, work
        self._snapshot = succeed(None)
        self._limits = _limits(work.settings, core)
        self._journal = Journal(core.paths)
        self._first = len(self._journal.state.iterations) + 1
        self._runs = ProgramRuns(core, reactor, work, self._limits, self._journal)
        self._terminal: TerminalStage | None = None
        self._interrupts = Interrupts()
        self._wait = LimitWait(core.services.clock)
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
        return f"{self._work.backend.name}, {self._work.backend.where}"

    async def start(self) -> None:
        """
        Open the terminal; no iteration starts yet.

        :raises UsageError: there is no prompt: only now is the workspace there that is fetched.
        """
        self._prompt()
        self._journal.open()
        await self._work.backend.start()
        if self._work.mode is not IterationMode.HEADLESS:
            try:
                await self._open_terminal()
            except BaseException:
                await self.stop()
                raise

    def begin(self) -> None:
        """The session is ready: begin, and end it afterwards, unless a command does so."""
        if not self._work.alone:
            return
        going = self.run(LogFrontEnd(self._core))
        going.addCallbacks(lambda over: over[1], lambda failure: one_line(failure.getErrorMessage(), 500))
        going.addCallback(lambda reason: self._core.end(f"the loop ended: {reason}"))

    async def _open_terminal(self) -> None:
        """
        Open the terminal, and wait until its screen model answers; meanwhile the first reader of output starts.

        Both use much processor time while starting, so the first program starts afterwards.
        """
        size = self._core.request.terminal or (80, 24)
        self._terminal = TerminalStage(self._core, self._reactor, size, f"loop: {self._work.backend.name}")
        self._runs.prepare(self._terminal)
        await self._terminal.hub.text()

    def run(self, front: LoopFrontEnd) -> Deferred[tuple[LoopEnding, str]]:
        """
        Run iterations until the loop ends.

        :returns: why it ended, as a value and in words; fails if the loop cannot continue.
        """
        self._loop = Deferred.fromCoroutine(self._run(self._terminal or StreamStage(front)))
        return self._loop

    def interrupt(self, reason: str, *, at_once: bool = False) -> None:
        """
        End the program, and with it the loop.

        :param at_once: without a grace period.
        """
        self._runs.interrupt(reason, at_once)
        self._snapshot.cancel()
        self._wait.end()

    def pressed(self, key: str) -> Action:
        """
        A reserved key was pressed at the loop's own terminal.

        :param key: ``interrupt`` or ``quit``.
        :returns: the action taken; the caller forwards the key.
        """
        keys = self._interrupts
        action = keys.ctrl_backslash() if key == "quit" else keys.ctrl_c(self._core.services.clock.seconds())
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
            self._terminal.close(EXIT_STATUS[LoopEnding.INTERRUPTED], self._runs.interrupted)
        self._runs.release()
        await self._work.backend.stop()

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

    async def _run(self, stage: Stage) -> tuple[LoopEnding, str]:
        ending, reason = LoopEnding.FAILURES, "it could not continue"
        try:
            while (found := self._over()) is None:
                number = len(self.state.iterations) + 1
                if await self._is_prepared(number):
                    await self._iterate(stage, number)
                    await self._wait_for_limit(stage)
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
        if self._runs.interrupted:
            return LoopEnding.INTERRUPTED, self._runs.interrupted
        return loop_end(self.state, self._limits, self._first)

    async def _is_prepared(self, number: int) -> bool:
        """:returns: whether the iteration may begin: it was not interrupted during its snapshot."""
        self._snapshot = self._work.take_snapshot(number)
        try:
            await self._snapshot
        except CancelledError:
            if not self._runs.interrupted:
                raise
        return not self._runs.interrupted

    async def _iterate(self, stage: Stage, number: int) -> None:
        prompt = with_events(self._prompt(), self.state.events)
        iteration = Iteration(
            number=number, outcome=RunOutcome.RUNNING, started_at=timestamp(self._core.services.now())
        )
        self._journal.begin(iteration, prompt)
        self._begin(stage, number)
        watch, scan, ended = await self._runs.run(stage, prompt, number)
        outcome, reason = await watch.ended(ended)
        if outcome is RunOutcome.FAILED and self._work.backend.limit_ends() is not None:
            outcome = RunOutcome.ACCOUNT_LIMIT
        self._runs.over(stage)
        iteration = msgspec.structs.replace(
            iteration,
            outcome=outcome,
            status=ended.status,
            reason=reason,
            seconds=round(self._core.services.clock.seconds() - watch.began, 3),
            cost=self._work.backend.cost(),
            events=len(scan.events),
            commit=await self._checkpoint(stage, number),
        )
        self._journal.end(iteration, scan.events, self._core.services.redactor.text(watch.text))
        self._end(stage, iteration)

    async def _wait_for_limit(self, stage: Stage) -> None:
        ends, limited = self._work.backend.limit_ends(), self.state.iterations[-1].outcome is RunOutcome.ACCOUNT_LIMIT
        if ends is None or not limited or self._over() is not None:
            return
        seconds = max(0.0, ends - self._core.services.clock.seconds())
        self._core.audit.append("loop-wait", seconds=round(seconds, 1))
        left = elapsed(round(seconds))
        stage.say(f"waiting {left} until the limit of the account ends; interrupt the loop to end it")
        await self._wait.until(ends)

    def _begin(self, stage: Stage, number: int) -> None:
        command = list(self._work.backend.shown(self._work.mode))
        self._core.audit.append("iteration", number=number, mode=str(self._work.mode), command=command)
        self._core.emit(events.TurnStarted(turn=number, message=f"iteration {number}"))
        stage.mark(f"iteration {number}")
        stage.say(f"iteration {number} of at most {self._limits.iterations}: {self._work.backend.name}")

    def _end(self, stage: Stage, iteration: Iteration) -> None:
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

    async def _checkpoint(self, stage: Stage, number: int) -> str:
        if self._work.checkpoints is None:
            return ""
        commit, problem = await self._work.checkpoints.commit(f"Loop iteration {number}")
        if problem:
            stage.say(f"no checkpoint: {problem}")
        return commit

    def _prompt(self) -> str:
        return prompt_of(self._work.settings.event_loop, self._core.workspace)


def _limits(settings: LoopSettings, core: Core) -> LoopLimits:
    chosen, budget = settings.event_loop, core.services.settings.budget
    seconds = budget.seconds if chosen.max_runtime_seconds is None else chosen.max_runtime_seconds
    cost = budget.cost if chosen.max_cost_usd is None else chosen.max_cost_usd
    return LoopLimits(chosen.max_iterations, seconds, cost, chosen.max_consecutive_failures)
