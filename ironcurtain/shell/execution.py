"""Run one command in the user's shell: typed at an empty prompt as one paste, its output read between two marks."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Protocol

import msgspec
from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.errors import SessionError
from ironcurtain.shell.messages import Message, Notice, StepOutcome
from ironcurtain.terminal.sequences import PASTE_BEGIN, PASTE_END

BEGIN_SECONDS = 5.0
"""How long the shell has to start a command that was typed; one that it still waits for has an open quote or block."""

PROMPT_SECONDS = 10.0
"""How long the shell has to show its next prompt (prompts that ask Git can be slow)."""

MARK_SECONDS = 0.3
"""How often a shell without marks of its own is asked, after an interrupt, whether the command has ended."""

GRACE_SECONDS = 5.0
"""How long a command has after SIGINT, and again after SIGTERM, before it is ended by force."""

TYPED_SECONDS = 1.0
"""How long the shell has, after an interrupt, to begin a command that was typed; then the line is cancelled."""

LOOK_SECONDS = 0.05
"""
How often it is looked whether a command has the terminal, after an interrupt that came before it had; and how long it
has the handlers of the shell at most.
"""

LOOKS = 60
"""How often at most."""

ENTER, CANCEL = b"\r", b"\x03"

KILL_LINE = b"\x15"
"""Ctrl-U: what was typed ahead goes to the shell's kill ring."""

CLEARED = "what you typed and no command read is off the line, in the shell's kill ring: Ctrl-Y brings it back"

_LAST_WORD, _FIRST_WORD = re.compile(rb"\S*\Z"), re.compile(rb"\A\S*")


class ShellPty(Protocol):
    """The terminal of the shell."""

    @property
    def in_foreground(self) -> bool:
        """Whether the shell itself has the terminal, and not one of its jobs."""

    def write(self, data: bytes) -> None:
        """Type."""

    def signal_foreground(self, number: signal.Signals) -> None:
        """Signal the job in the foreground, but never the shell itself."""


class TypedShell(Protocol):
    """A shell into which commands are typed."""

    @property
    def pty(self) -> ShellPty:
        """Its terminal."""

    @property
    def pasting(self) -> bool:
        """Whether it takes pastes as such (bracketed paste mode)."""

    def line(self, command: str) -> str | None:
        """:returns: what is typed of a command; ``None``: this shell cannot be used."""

    def end_line(self) -> str | None:
        """
        :returns: what is typed after an interrupt so that the shell shows the mark of the end; empty while a command
            still runs; ``None``: it shows its marks by itself.
        """


class CommandResult(msgspec.Struct, frozen=True):
    """
    How a command ended.

    :param status: ``None``: it did not run, or nobody knows.
    :param output: the beginning and the end of what it wrote, with escape sequences.
    :param left_out: how many bytes are missing between them.
    """

    outcome: StepOutcome
    status: int | None
    output: bytes
    left_out: int = 0
    reason: str = ""


class Capture:
    """
    Keeps the beginning and the end of a command's output.

    :param limit: most bytes that are kept.
    """

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head, self._tail = bytearray(), bytearray()
        self._seen = 0

    def add(self, data: bytes) -> None:
        """:param data: more output."""
        self._seen += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._half:
            del self._tail[: len(self._tail) - self._half]

    def result(self) -> tuple[bytes, int]:
        """
        :returns: what was kept, and how many bytes are missing in its middle. Words are not cut: half of a secret
            would not be recognised as one.
        """
        head, tail = bytes(self._head), bytes(self._tail[max(0, len(self._tail) - self._half) :])
        if self._seen == len(head) + len(tail):
            return head + tail, 0
        head, tail = _LAST_WORD.sub(b"", head), _FIRST_WORD.sub(b"", tail)
        left_out = self._seen - len(head) - len(tail)
        return head + b"\n[... %d bytes left out ...]\n" % left_out + tail, left_out


class _Stage(Enum):
    """How far a command has come."""

    NONE = "none"
    TYPED = "typed"
    RUNNING = "running"
    ENDED = "ended"
    """It is over, and the shell has not shown its prompt yet."""
    PROMPTED = "prompted"


class CommandRunner:
    """
    Types commands into a shell, one at a time.

    :param clock: the reactor, or a ``Clock``.
    :param limit: most bytes of output that are kept of a command.
    :param tell: gets messages for front ends.
    :ivar at_prompt: whether the shell waits at a primary prompt with an empty line.
    """

    def __init__(self, shell: TypedShell, clock: IReactorTime, limit: int, tell: Callable[[Message], None]) -> None:
        self._shell, self._clock, self._limit, self._tell = shell, clock, limit, tell
        self._stage = _Stage.NONE
        self._waiting: Deferred[None] | None = None
        self._capture = Capture(limit)
        self._show: Callable[[bytes], None] = lambda data: None
        self._status: int | None = None
        self._stopped: StepOutcome | None = None
        self._began = 0.0
        self._timers: list[IDelayedCall] = []
        self.at_prompt = self._left_over = False

    @property
    def running(self) -> bool:
        """Whether a command of ours runs, so that output is its and keys are for it."""
        return self._stage is _Stage.RUNNING

    @property
    def busy(self) -> bool:
        """Whether a command of ours was typed, and the shell has not shown its next prompt yet."""
        return self._stage is not _Stage.NONE

    async def run(self, command: str, seconds: float, show: Callable[[bytes], None]) -> CommandResult:
        """
        Run a command, and wait for the next prompt.

        :param seconds: how long it may take; then it is ended.
        :param show: gets its output as it comes.
        :raises SessionError: ``MESSAGE_FAILED``: the shell is not at an empty prompt, or ended.
        """
        if not self.at_prompt:
            raise SessionError("MESSAGE_FAILED", "the shell is not at an empty prompt: nothing was typed")
        if "\n" in command and not self._shell.pasting:
            return _not_run("this shell takes no pastes (bracketed paste is off), so several lines cannot be typed")
        if (line := self._shell.line(command)) is None:
            return _not_run("commands can only be typed into bash, zsh, fish and POSIX shells")
        self._stage, self._show, self._capture = _Stage.TYPED, show, Capture(self._limit)
        self._status = self._stopped = None
        self.at_prompt = False
        if self._left_over:
            self._shell.pty.write(KILL_LINE)
            self._tell(Notice(text=CLEARED))
        self._left_over = False
        typed = line.encode("utf-8", "replace")
        if self._shell.pasting:  # fish leaves out blanks at the beginning of a paste
            bare = typed.lstrip(b" ")
            typed = typed[: len(typed) - len(bare)] + PASTE_BEGIN + bare + PASTE_END
        else:
            typed = typed.replace(b"\n", ENTER)
        self._shell.pty.write(typed + ENTER)
        try:
            return await self._result(seconds)
        finally:
            self._cancel_timers()
            self._stage, self._waiting = _Stage.NONE, None

    async def _result(self, seconds: float) -> CommandResult:
        await self._past(_Stage.TYPED, BEGIN_SECONDS)
        if self._stage is not _Stage.RUNNING:
            if self._stage is _Stage.TYPED:
                self._cancel()
                await self._past(_Stage.TYPED, PROMPT_SECONDS)
            await self._past(_Stage.ENDED, PROMPT_SECONDS)
            if self._stopped is not None:
                return CommandResult(self._stopped, None, b"")
            return _not_run("the shell did not run it: is the command complete?")
        self._timers.append(self._clock.callLater(seconds, self._time_out))
        await self._past(_Stage.RUNNING, None)
        self._cancel_timers()
        await self._past(_Stage.ENDED, PROMPT_SECONDS)
        output, left_out = self._capture.result()
        outcome = self._stopped or (StepOutcome.DONE if self._status == 0 else StepOutcome.FAILED)
        return CommandResult(outcome, self._status, output, left_out)

    async def _past(self, stage: _Stage, seconds: float | None) -> None:
        """Wait as long as the command is in this stage, but at most so long."""
        if self._stage is not stage:
            return
        self._waiting = Deferred()
        if seconds is not None:
            self._waiting.addTimeout(seconds, self._clock)
        with suppress(TimeoutError):
            await self._waiting

    def interrupt(self) -> None:
        """
        As Ctrl-C in the shell. The terminal then drops what the shell has not read yet, and without the end of a paste
        fish takes all keys for more of it: hence a command that was typed gets the interrupt when it has begun. A job
        that takes the terminal has the shell's handlers for a moment: it gets the interrupt after that.
        """
        if self._stage not in (_Stage.TYPED, _Stage.RUNNING):
            return
        before, self._stopped = self._stopped, self._stopped or StepOutcome.INTERRUPTED
        if self.running:
            early = self._began + LOOK_SECONDS - self._clock.seconds()
            self._timers.append(self._clock.callLater(max(0.0, early), self._interrupt_running))
        elif before is None:
            self._timers.append(self._clock.callLater(TYPED_SECONDS, self._cancel_typed))

    def _interrupt_running(self) -> None:
        if self.running:
            self._look_later(signal.SIGINT)
            self._cancel()

    def _cancel_typed(self) -> None:
        if self._stage is _Stage.TYPED:
            self._cancel()

    def _look_later(self, number: signal.Signals) -> None:
        """
        A shell that starts a job has the terminal until the job takes it: what is sent meanwhile misses the job, and
        what is sent just then may still find the shell's handlers in it.
        """
        if self._shell.pty.in_foreground:
            self._look_again(number, LOOKS, taken=False)

    def _look_again(self, number: signal.Signals, looks: int, *, taken: bool) -> None:
        if looks:
            self._timers.append(self._clock.callLater(LOOK_SECONDS, self._look, number, looks - 1, taken))

    def _look(self, number: signal.Signals, looks: int, taken: bool) -> None:
        """:param taken: whether the job had the terminal already when it was looked before."""
        if not self.running:
            return
        has_it = not self._shell.pty.in_foreground
        if has_it and taken:
            self._shell.pty.signal_foreground(number)
        else:
            self._look_again(number, looks, taken=has_it)

    def _cancel(self) -> None:
        self._ask_later()
        self._shell.pty.write(CANCEL)

    def _ask_later(self) -> None:
        self._timers.append(self._clock.callLater(MARK_SECONDS, self._ask))

    def _ask(self) -> None:
        """An interrupt ends the whole line that was typed, with the mark of its end."""
        if self._stage in (_Stage.TYPED, _Stage.RUNNING):
            line = self._shell.end_line()
            if line:
                self._shell.pty.write(line.encode() + ENTER)
                self._enter(_Stage.ENDED)  # what is shown until then is this line
            elif line is not None:
                self._ask_later()

    def kill(self) -> None:
        """End the command at once."""
        if self.running:
            self._stopped = self._stopped or StepOutcome.INTERRUPTED
            self._look_later(signal.SIGKILL)
            self._shell.pty.signal_foreground(signal.SIGKILL)
        else:
            self.interrupt()

    def output(self, data: bytes) -> bool:
        """
        For the reader of the shell: bytes without marks.

        :returns: whether they were a command's output; else they are of the prompt, or of what was typed.
        """
        if not self.running:
            return False
        self._capture.add(data)
        self._show(data)
        return True

    def command_began(self) -> None:
        """For the reader of the shell."""
        self.at_prompt = False
        if self._stage is _Stage.TYPED:
            self._enter(_Stage.RUNNING)
            self._began = self._clock.seconds()
            if self._stopped is not None:
                self.interrupt()

    def command_ended(self, status: int) -> None:
        """For the reader of the shell."""
        if self._stage in (_Stage.RUNNING, _Stage.ENDED):
            self._status = status
        if self._stage is _Stage.RUNNING:
            self._enter(_Stage.ENDED)

    def prompt_began(self) -> None:
        """For the reader of the shell. A prompt ends whatever ran, with or without a mark of its own."""
        if self._stage in (_Stage.TYPED, _Stage.RUNNING):
            self._enter(_Stage.ENDED)

    def prompt_ended(self) -> None:
        """For the reader of the shell: now the line is empty."""
        self.at_prompt = True
        if self._stage is _Stage.ENDED:
            self._enter(_Stage.PROMPTED)

    def typed(self) -> None:
        """Somebody typed something, so that the line may not be empty any more, or not be when it comes."""
        self.at_prompt = False
        self._left_over = self._left_over or self.busy

    def lost(self) -> None:
        """The shell ended."""
        self.at_prompt = False
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.called:
            waiting.errback(SessionError("MESSAGE_FAILED", "the shell ended"))

    def _enter(self, stage: _Stage) -> None:
        self._stage = stage
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.called:
            waiting.callback(None)

    def _time_out(self) -> None:
        self._stopped = StepOutcome.TIMED_OUT
        self._shell.pty.signal_foreground(signal.SIGINT)
        self._ask_later()
        for delay, number in ((GRACE_SECONDS, signal.SIGTERM), (2 * GRACE_SECONDS, signal.SIGKILL)):
            self._timers.append(self._clock.callLater(delay, self._shell.pty.signal_foreground, number))

    def _cancel_timers(self) -> None:
        timers, self._timers = self._timers, []
        for timer in timers:
            if timer.active():
                timer.cancel()


def _not_run(reason: str) -> CommandResult:
    return CommandResult(StepOutcome.NOT_RUN, None, b"", reason=reason)
