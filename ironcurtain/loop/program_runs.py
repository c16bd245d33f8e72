"""Run the program of one iteration after the other, read its output, and interrupt it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from twisted.internet.defer import CancelledError, Deferred

from ironcurtain.errors import NotFound, SessionError, Unavailable, UsageError
from ironcurtain.loop.backend import IterationTask, LoopBackend, OutputHandler, RunningProgram
from ironcurtain.loop.checkpoint import Checkpoints
from ironcurtain.loop.config import LoopSettings
from ironcurtain.loop.iteration import IterationMonitor
from ironcurtain.loop.model import IterationMode, LoopLimits, RunOutcome
from ironcurtain.loop.output_scan import OutputScan
from ironcurtain.loop.stage import StreamStage, TerminalStage
from ironcurtain.loop.state import Journal
from ironcurtain.session import events
from ironcurtain.session.parts import Core
from ironcurtain.terminal.echo import LoopEvent, Promise
from ironcurtain.terminal.forked import NoPty
from ironcurtain.terminal.model import ProgramExit

Stage = TerminalStage | StreamStage


class LoopWork(msgspec.Struct, frozen=True):
    """
    What a loop does.

    :param backend: what each iteration runs.
    :param mode: how to run it.
    :param idle_seconds: seconds without activity after which an iteration is ended; 0: never.
    :param checkpoints: ``None``: no checkpoints.
    :param take_snapshot: takes a snapshot of the workspace before the iteration with a number.
    :param alone: whether it begins by itself once its session has started, and ends that; else a command begins it.
    """

    settings: LoopSettings
    backend: LoopBackend
    mode: IterationMode
    idle_seconds: float
    checkpoints: Checkpoints | None
    take_snapshot: Callable[[int], Deferred[None]]
    alone: bool = False


class FinishedRun(NamedTuple):
    """A program that has ended."""

    watch: IterationMonitor
    scan: OutputScan
    ended: ProgramExit


class ProgramRuns:
    """
    :param journal: tells programs where their prompt and their events are.
    :ivar interrupted: why the loop is to end; empty: it goes on.
    """

    def __init__(self, core: Core, reactor: Any, work: LoopWork, limits: LoopLimits, journal: Journal) -> None:
        self._core, self._reactor, self._work = core, reactor, work
        self._limits, self._journal = limits, journal
        self._scan: OutputScan | None = None
        self._watch: IterationMonitor | None = None
        self._starting: Deferred[RunningProgram] | None = None
        self.interrupted = ""

    def prepare(self, stage: Stage) -> None:
        """Start what reads the output of the first program."""
        self._scan = self._make_scan(stage)

    def release(self) -> None:
        """No program follows."""
        if self._scan is not None:
            self._scan.lost("is not needed")

    def interrupt(self, reason: str, at_once: bool) -> None:
        """
        End the program, if there is one.

        :param at_once: without a grace period.
        """
        self.interrupted = self.interrupted or reason
        if self._starting is not None:
            self._starting.cancel()
        elif self._watch is not None:
            self._watch.end(RunOutcome.INTERRUPTED, reason, at_once=at_once)

    def over(self, stage: Stage) -> None:
        """The output of the program is read."""
        self._watch, stage.reader = None, None
        stage.iteration_ended()

    async def run(self, stage: Stage, prompt: str, number: int) -> FinishedRun:
        """
        Run the program of an iteration.

        :returns: once it has ended; its output may not be read yet.
        """
        try:
            return await self._try(stage, prompt, number, self._work.mode)
        except NoPty as e:
            self._core.log_line("loop", f"no terminal: {e}")
            stage.say(f"error: {e}; falling back to headless for this iteration")
            return await self._try(stage, prompt, number, IterationMode.HEADLESS)

    async def _try(self, stage: Stage, prompt: str, number: int, mode: IterationMode) -> FinishedRun:
        piped = mode is IterationMode.HEADLESS
        stream = stage.stream
        scan, self._scan = self._scan or self._make_scan(stage), None
        promise = Promise(self._work.settings.event_loop.completion_promise)
        scan.begin(promise.text, prompt, None if piped else stage.size)
        left = None if self._limits.seconds is None else max(0.0, self._limits.seconds - self._journal.state.seconds)
        show = stage.piped if piped else stage.output
        watch = IterationMonitor(
            self._core.services.clock, scan, show, self._work.idle_seconds, left, lambda: self._active(stage)
        )
        stream.listens = mode is IterationMode.INTERACTIVE

        owner = OutputHandler(watch.received, stage.complained, stage.input_full)
        task = IterationTask(prompt, mode, self._environ(number), stage.size, stream)
        self._starting = Deferred.fromCoroutine(self._work.backend.run(task, owner))
        try:
            running: RunningProgram = await self._starting
        except (CancelledError, NotFound, Unavailable, SessionError, UsageError) as e:
            if isinstance(e, NoPty) or (isinstance(e, CancelledError) and not self.interrupted):
                scan.lost("is not needed")
                raise
            if self.interrupted:
                watch.end(RunOutcome.INTERRUPTED, self.interrupted)
            return FinishedRun(watch, scan, ProgramExit(None if self.interrupted else 1, str(e)))
        except BaseException:
            scan.lost("is not needed")
            raise
        finally:
            self._starting = None
        stage.reader, self._watch = scan, watch
        watch.begin(running)
        ended = await running.done
        return FinishedRun(watch, scan, ended)

    def _make_scan(self, stage: Stage) -> OutputScan:
        return OutputScan(self._reactor, lambda event: self._event(stage, event), stage.stream.hold_back)

    def _active(self, stage: Stage) -> tuple[float, bool]:
        """Waiting for a person does not count as idle."""
        typed, held_up = stage.active()
        return typed, held_up or bool(self._core.escalations.pending())

    def _event(self, stage: Stage, event: LoopEvent) -> None:
        redactor = self._core.services.redactor
        payload = redactor.live(" ".join(event.payload.split()))
        self._core.audit.append("loop-event", topic=event.topic, payload=event.payload)
        self._core.emit(events.Progress(text=f"event {event.topic}: {payload}"))
        if stage.hub is None:  # in a terminal it is already on the screen
            stage.say(f"event {event.topic}: {payload}")

    def _environ(self, number: int) -> dict[str, str]:
        return {
            "IRONCURTAIN_LOOP_ITERATION": str(number),
            "IRONCURTAIN_LOOP_PROMPT_FILE": os.fspath(self._journal.prompt_file),
            "IRONCURTAIN_LOOP_EVENTS": os.fspath(self._journal.events_file),
        }
