"""Run a loop in this process, at this terminal or on the standard streams."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ironcurtain.assembly import Application
from ironcurtain.cli.loop_streams import ERRORS, OUTPUT, LoopStreams
from ironcurtain.cli.loop_terminal import LoopTerminal
from ironcurtain.cli.output import print_table
from ironcurtain.cli.progress import ProgressDisplay
from ironcurtain.cli.review import review_of
from ironcurtain.cli.run import run
from ironcurtain.files.locks import is_held
from ironcurtain.home.layout import Home
from ironcurtain.loop.agent import LoopAgent
from ironcurtain.loop.kind import NAME, LoopOptions
from ironcurtain.loop.model import EXIT_STATUS, Iteration, IterationMode, LoopState, RunOutcome
from ironcurtain.services.lifecycle import to_its_end
from ironcurtain.session.events import EscalationRaised
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.session import Session
from ironcurtain.terminal.raw import RawMode
from ironcurtain.text.display import one_line
from ironcurtain.view.events import describe


class Looping:
    """
    One loop at this terminal.

    :param place: its workspace.
    :param resume: id of the session to resume; empty: start a new one.
    """

    def __init__(self, home: Home, options: LoopOptions, place: Path, resume: str) -> None:
        self._home, self._options, self._place, self._resume = home, options, place, resume
        self._agent: LoopAgent | None = None
        self._signals: list[int] = []
        self._seen = 0
        self._streams = LoopStreams(os.environ, self._refused)

    def run(self) -> int:
        """:returns: the exit status."""
        return run(self._main, self._on_signal)

    def _on_signal(self, number: int) -> bool:
        if self._agent is None:
            return False
        self._signals.append(number)
        self._streams.interrupt()
        self._agent.interrupt(f"ended by {signal.Signals(number).name}", at_once=self._signals.count(number) > 1)
        return True

    async def _main(self, reactor: Any) -> int:
        self._fall_back()
        size = None
        if self._options.mode is not IterationMode.HEADLESS:
            size = RawMode(OUTPUT).size()
        request = SessionRequest(
            NAME,
            self._label(),
            None if self._resume else self._place,
            {"loop": msgspec.to_builtins(self._options)},
            resume=self._resume,
            terminal=size,
        )
        application = Application.alone(reactor, self._home, os.environ)
        await application.start()
        paths = None
        try:
            progress = ProgressDisplay(sys.stderr)
            try:
                session = await application.manager.create(request, self._attended, progress.follow)
            finally:
                progress.done()
            paths = session.paths
            return await self._go(reactor, session)
        finally:
            self._agent = None
            await to_its_end(application.stop("the command ends"))
            if paths is not None:
                review_of(paths)

    def _attended(self) -> bool:
        return sys.stdin.isatty() or sys.stderr.isatty() or is_held(self._home.listener_lock)

    def _fall_back(self) -> None:
        """Use no terminal if standard output is not one or none can be opened."""
        if self._options.mode is IterationMode.HEADLESS:
            return
        if not os.isatty(OUTPUT):
            self.say("warning: PTY mode requested but stdout is not a TTY, falling back to headless")
        else:
            try:
                for descriptor in os.openpty():
                    os.close(descriptor)
            except OSError as e:
                self.say(f"error: no terminal can be opened ({e.strerror}), falling back to headless")
            else:
                return
        self._options = msgspec.structs.replace(self._options, mode=IterationMode.HEADLESS)

    async def _go(self, reactor: Any, session: Session) -> int:
        agent = session.agent
        assert isinstance(agent, LoopAgent)  # that is what this kind makes
        self._agent = agent
        self.say(f"session {session.number}, {self._options.mode}: {agent.description}")
        session.events.watch(lambda: self._heard(session))
        hub, terminal = agent.terminal, None
        if hub is not None:
            terminal = LoopTerminal(reactor, agent, listens=self._options.mode is IterationMode.INTERACTIVE)
            terminal.begin(hub)
        self._streams.begin(reactor)
        try:
            ending, reason = await agent.run(self)
        finally:
            await self._streams.written(reactor, bool(self._signals))
            if terminal is not None:
                await terminal.left()
        with suppress(OSError):  # the terminal may have disconnected
            self._summary(session, agent, reason)
        return 128 + self._signals[0] if self._signals else EXIT_STATUS[ending]

    def _heard(self, session: Session) -> None:
        """
        Print a line for each escalation. At a terminal the bell is used, since the agent's screen would hide a line.
        """
        for stamped in session.events.after(self._seen):
            self._seen, event = stamped.sequence, stamped.event
            if isinstance(event, EscalationRaised) and session.terminal is None and (words := describe(event)):
                act = "approve" if event.form is None else "answer"
                answer = f"'ironcurtain {act} {event.number}' or 'ironcurtain deny {event.number}'"
                self.say(f"{words.text}: see 'ironcurtain escalations', then answer with {answer}")

    def _label(self) -> str:
        settings = self._options.settings
        command = settings["loop.command"]
        return str(settings["loop.agent"] or (" ".join(command) if command else settings["cli.backend"]))

    def _summary(self, session: Session, agent: LoopAgent, reason: str) -> None:
        print_table(HEADER, rows(agent.state), err=True)
        self.say(f"session {session.number}: {sentence(agent.state, reason)}")

    def begin(self, hold: Callable[[bool], None]) -> None:
        """Set the function that pauses (``True``) or resumes (``False``) the agent's output."""
        self._streams.hold = hold

    def output(self, data: bytes) -> None:
        """Write standard output of a program that has no terminal."""
        self._streams.write(OUTPUT, data)

    def complained(self, data: bytes) -> None:
        """Write its standard error."""
        self._streams.write(ERRORS, data)

    def say(self, text: str) -> None:
        """Write a message of IronCurtain's."""
        self._streams.say(text)

    def _refused(self, error: OSError) -> None:
        if self._agent is not None:
            self._agent.interrupt(f"its output cannot be written: {error.strerror}")


HEADER = ("N", "OUTCOME", "STATUS", "SECONDS", "COST", "EVENTS", "COMMIT", "WHY")

SHOWN = 20
"""Maximum number of iterations listed; of a longer loop, the last ones are listed."""


def rows(state: LoopState) -> list[tuple[str, ...]]:
    """:returns: the table below :data:`HEADER`."""
    return [_row(iteration) for iteration in state.iterations[-SHOWN:]]


def sentence(state: LoopState, reason: str) -> str:
    """:returns: a sentence on how the loop ended; ``reason`` must be escaped."""
    count = len(state.iterations)
    cost = f", ${state.cost:.2f}" if any(each.cost is not None for each in state.iterations) else ""
    return f"{count} iteration{'s' * (count != 1)} in {state.seconds:.1f} s{cost}: {reason}."


def _row(iteration: Iteration) -> tuple[str, ...]:
    cut_off = iteration.outcome is RunOutcome.RUNNING  # the loop has ended already
    return (
        str(iteration.number),
        "cut off" if cut_off else iteration.outcome,
        "-" if iteration.status is None else str(iteration.status),
        "-" if cut_off else f"{iteration.seconds:.1f}",
        "-" if iteration.cost is None else f"${iteration.cost:.4f}",
        str(iteration.events),
        iteration.commit[:9] or "-",
        one_line(iteration.reason, 60) or "-",
    )
