"""The user's shell in its terminal: what is typed goes to it, until an instruction is given to the agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ironcurtain.errors import IronCurtainError, SessionError
from ironcurtain.session import events
from ironcurtain.session.model import Reply, Usage
from ironcurtain.session.parts import Core
from ironcurtain.shell.assistant import Assistant
from ironcurtain.shell.execution import KILL_LINE, CommandRunner
from ironcurtain.shell.first_prompt import FirstPrompt
from ironcurtain.shell.journal import TurnJournal
from ironcurtain.shell.messages import Action, InstructionDone, Message
from ironcurtain.shell.relay import Relayed
from ironcurtain.shell.replacement import ReplacementWatch
from ironcurtain.shell.terminal_mode import AgentMode, ShellMode
from ironcurtain.shell.waiting import Taken, WaitingInstructions
from ironcurtain.shell.wrapped import WrappedShell
from ironcurtain.shell_integration.marks import (
    CommandBegan,
    CommandEnded,
    InstructionTyped,
    Mark,
    PromptBegan,
    PromptEnded,
)
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import ProgramExit
from ironcurtain.terminal.pty import LocalPty

LINE_SECONDS = 2.0
"""How long the shell has for a line that was typed ahead, before the agent begins all the same."""

JOIN_SECONDS = 0.05
"""How long after a prompt further instructions that were typed ahead are waited for; they are one with the first."""


class ShellAgent:
    """
    :param wrapped: the shell and its marks.
    :param runner: types commands into it.
    :ivar assistant: works on instructions; set before the start.
    :ivar journal: records instructions.
    :ivar trace_id: of the trace that it belongs to.
    :ivar ending: called when the shell has ended.
    :ivar terminal: ``None``: the session takes messages.
    :ivar agent_mode: draws what the agent does in that terminal.
    """

    log = Logger()

    assistant: Assistant

    def __init__(self, core: Core, wrapped: WrappedShell, runner: CommandRunner) -> None:
        self._core, self._wrapped, self._runner = core, wrapped, runner
        self._clock = core.services.clock
        self._mode = ShellMode.SHELL
        self._instructions: list[str] = []
        self._waiting = WaitingInstructions()
        self._timer: IDelayedCall | None = None
        self._replacement = ReplacementWatch(self._clock, lambda: wrapped.replaced, self._no_marks)
        self._first: FirstPrompt | None = None
        self._resumed: list[Deferred[None]] = []
        self._returning = self._users_command = False
        self._working: Deferred[None] | None = None
        self.journal = TurnJournal(core)
        self._stopping = False
        self._watchers: list[Callable[[Message], None]] = []
        self.trace_id = ""
        self.ending: Callable[[], None] = lambda: None
        self.terminal: Hub | None = None
        self.agent_mode: AgentMode | None = None

    async def start(self) -> None:
        """
        Start the shell; one in a terminal runs already, and :meth:`take_over` follows.

        :raises SessionError: it did not start.
        """
        if self.terminal is not None:
            return
        if not self._wrapped.integrated:
            raise SessionError("SESSION_INIT_FAILED", f"{self._wrapped.why_not}: this needs a terminal")
        self._first = FirstPrompt(self._clock, self._wrapped.stop)
        self._wrapped.spawn(self)
        await self._first.wait()

    def take_over(self, pid: int, master: int, relayed: Relayed) -> None:
        """
        Go on with a shell that runs in a terminal. What it had shown is known to the hub afterwards.

        :param master: descriptor of the master side of its terminal.
        :param relayed: of it; what waits there is passed to :meth:`take` once somebody is attached.
        """
        self._wrapped.take_over(self, pid, master, relayed)
        self._timer = self._clock.callLater(self._wrapped.marks_seconds, self._no_marks)
        if relayed.entered:
            self._replacement.entered()
        self.take(relayed.shown)

    async def respond(self, message: str) -> Reply:
        """Work on an instruction."""
        if self.terminal is not None:
            raise SessionError("MESSAGE_FAILED", "instructions are typed in the terminal")
        done = await self.assistant.respond(message)
        if done.error:
            raise SessionError("MESSAGE_FAILED", done.error)
        return Reply(done.text, self.usage())

    async def stop(self) -> None:
        """End the shell, as when its terminal is closed."""
        self._stopping = True
        await self._wrapped.stop()

    def usage(self) -> Usage:
        """:returns: what the last instruction used so far."""
        return self.assistant.usage()

    @property
    def directory(self) -> Path:
        """Of the session's own files."""
        return self._core.paths.directory

    def new_pty(self) -> LocalPty:
        """:returns: another terminal, for an editor."""
        return self._wrapped.another()

    def later(self, function: Callable[[], None]) -> None:
        """Call a function when what is being done now is done."""
        self._clock.callLater(0, function)

    def watch(self, watcher: Callable[[Message], None]) -> None:
        """:param watcher: gets all messages for front ends from now on."""
        self._watchers.append(watcher)

    def tell(self, message: Message) -> None:
        """For the assistant: a message for front ends."""
        if self.agent_mode is not None:
            self.agent_mode.tell(message)
        for watcher in self._watchers:
            watcher(message)

    def act(self, action: Action) -> None:
        """
        A front end says something.

        :raises UsageError: it does not fit now.
        :raises StaleDecision: it is about something that is over.
        """
        self.assistant.receive(action)

    def resumed(self) -> Deferred[None]:
        """:returns: fires when the agent has the terminal, so that a command can be typed."""
        if self._mode is not ShellMode.SUSPENDED and not self._returning:
            return succeed(None)
        done: Deferred[None] = Deferred()
        self._resumed.append(done)
        return done

    def write(self, data: bytes) -> None:
        """For the hub: keys."""
        if self._mode is ShellMode.AGENT and self.agent_mode is not None:
            self.agent_mode.typed(data)
        else:
            self.type(data)

    def type(self, data: bytes) -> None:
        """Give keys to the shell, or to what runs in it."""
        self._runner.typed()
        if b"\r" in data:
            self._replacement.entered()
        for instruction in self._wrapped.type(data):
            self._instructed(instruction)

    def pause(self) -> None:
        """For the hub."""
        self._wrapped.pty.pause()

    def resume(self) -> None:
        """For the hub."""
        self._wrapped.pty.resume()

    def resize(self, columns: int, rows: int) -> None:
        """For the hub."""
        self._wrapped.resize(columns, rows)
        if self.agent_mode is not None:
            self.agent_mode.resized(columns, rows)

    def close(self) -> None:
        """For the hub: nobody looks any more."""
        self._wrapped.pty.close()

    def received(self, data: bytes) -> None:
        """For the terminal: the shell wrote something."""
        self.take(self._wrapped.read(data))

    def take(self, pieces: Iterable[bytes | Mark]) -> None:
        """:param pieces: output of the shell, and its marks, in order."""
        for piece in pieces:
            if isinstance(piece, bytes):
                self._output(piece)
            else:
                self._mark(piece)

    def input_full(self, full: bool) -> None:
        """For the terminal."""
        if self.terminal is not None:
            self.terminal.input_full(full)

    def ended(self, ended: ProgramExit) -> None:
        """For the terminal: the shell ended."""
        self._cancel_timer()
        self._replacement.stop()
        self._runner.lost()
        if self._working is not None:
            self._working.cancel()
        self._leave()
        self.ending()
        if self._first is not None:
            self._first.lost(ended.reason)
        why = "the session was ended" if self._stopping else "the shell ended"
        if self.terminal is not None:
            self.terminal.ended(ProgramExit(ended.status, why))
        if not self._stopping:
            self._core.end(why)

    def _output(self, data: bytes) -> None:
        running = self._runner.output(data)
        if self._mode in (ShellMode.SHELL, ShellMode.SUSPENDED) or self._users_command:
            self._show(data)
        elif running and self.agent_mode is not None:
            self._wrapped.shown(data)
            self.agent_mode.output(data)
        else:
            self._wrapped.hold(data)

    def _show(self, data: bytes) -> None:
        self._wrapped.shown(data)
        if self.terminal is not None:
            self.terminal.received(data)

    def _mark(self, mark: Mark) -> None:
        self._wrapped.marked(mark)
        self._runner.pasting = self._wrapped.pasting
        match mark:
            case PromptBegan():
                self._users_command = False
                self._wrapped.held.clear()
                self._runner.prompt_began()
            case PromptEnded():
                self._runner.prompt_ended()
                self._prompt()
            case CommandBegan():
                if self._mode is ShellMode.AGENT:
                    self._wrapped.held.clear()
                self._runner.command_began()
                self._users_command = not self._runner.running
                self._held_up()
            case CommandEnded(status):
                self._runner.command_ended(status)
                if not self._wrapped.integrated:
                    self._wrapped.held.clear()
                    self._timer = self._clock.callLater(JOIN_SECONDS, self._empty_line)
            case InstructionTyped(text):
                self._instructed(text)

    def _prompt(self) -> None:
        self._cancel_timer()
        if self._first is not None:
            self._first.shown()
        if self._mode is ShellMode.AGENT:
            self._released()
        if self._mode is ShellMode.INSTRUCTED:
            self._timer = self._clock.callLater(JOIN_SECONDS, self._begin)

    def _empty_line(self) -> None:
        """A shell without marks is at its prompt, as far as can be known."""
        self._timer = None
        self._runner.pasting = self._wrapped.pasting
        self._runner.prompt_began()
        self._runner.prompt_ended()

    def _held_up(self) -> None:
        """A command that was typed ahead of the agent runs first."""
        if self._mode is ShellMode.INSTRUCTED:
            self._cancel_timer()
            self._flush()

    def _instructed(self, text: str) -> None:
        self._cancel_timer()
        if self._mode is ShellMode.SUSPENDED:
            self._resume(text)
        elif self._returning:
            self.assistant.steer(text)
        elif self._mode in (ShellMode.SHELL, ShellMode.INSTRUCTED):
            self._mode = ShellMode.INSTRUCTED
            self._instructions.append(text)
            if not self._wrapped.integrated:
                self._timer = self._clock.callLater(JOIN_SECONDS, self._begin)

    def _begin(self, late: bool = False) -> None:
        self._timer = None
        if self._wrapped.integrated and not self._runner.at_prompt and not self._wrapped.typed_ahead and not late:
            self._timer = self._clock.callLater(LINE_SECONDS, self._begin, True)  # a whole line was typed ahead
            return
        taken = self._waiting.take("\n".join(self._instructions).strip())
        self._instructions.clear()
        if not taken.instruction:
            self._leave()
            self._say(*taken.said)
            return
        self._mode = ShellMode.AGENT
        if not self._wrapped.integrated:
            self._empty_line()
        if self._wrapped.typed_ahead:
            self._wrapped.pty.write(KILL_LINE)
            self._runner.prompt_ended()
        if self.agent_mode is not None:
            self.agent_mode.begin()
        self._working = Deferred.fromCoroutine(self._work(taken)).addErrback(
            lambda failure: self.log.failure("an instruction failed", failure)
        )

    async def _work(self, taken: Taken) -> None:
        done, said = InstructionDone(error="the shell ended"), tuple[str, ...]()
        self.journal.begin(taken.instruction)
        try:
            done = await self.assistant.respond(taken.instruction)
            said = self._waiting.ended(taken, self.assistant.unreached)
        except IronCurtainError as e:
            done = InstructionDone(error=str(e))
            self.tell(done)
        except CancelledError:  # by the end of the shell
            self.tell(done)
        finally:
            self.journal.end(done, self.usage())
            self._leave()
            self._say(*said)

    def _leave(self) -> None:
        if self.agent_mode is not None and self._mode in (ShellMode.AGENT, ShellMode.SUSPENDED):
            self.agent_mode.end()
        self._mode, self._returning = ShellMode.SHELL, False
        self._flush()

    def suspend(self) -> None:
        """Give the terminal back to the shell, until the user types an instruction; an empty one goes on."""
        if self._mode is ShellMode.AGENT and not self._runner.busy:
            if self.agent_mode is not None:
                self.agent_mode.suspend()
            self._mode = ShellMode.SUSPENDED
            self._flush()

    def _resume(self, text: str) -> None:
        self._mode = ShellMode.AGENT
        if not self._wrapped.integrated:
            self._empty_line()
        if self.agent_mode is not None:
            self.agent_mode.begin()
        if text:
            self.assistant.steer(text)
        self._returning = True  # until the shell shows its next prompt
        if not self._wrapped.integrated:
            self._released()

    def _released(self) -> None:
        """Commands can be typed again."""
        self._returning = False
        waiting, self._resumed = self._resumed, []
        for done in waiting:
            done.callback(None)

    def _flush(self) -> None:
        if held := self._wrapped.release():
            self._show(held)

    def _no_marks(self) -> None:
        self._timer = None
        self._wrapped.give_up_marks()
        why = self._wrapped.why_not or "this shell shows no marks"
        self._say(f"{why}: begin an instruction with ## instead of #")

    def _say(self, *sentences: str) -> None:
        for sentence in sentences:
            self._core.emit(events.Notice(text=self.journal.clean(sentence)))
        if self.terminal is not None and sentences:
            notice = "".join(f"\x1b[2m[ironcurtain] {sentence}\x1b[0m\r\n" for sentence in sentences)
            self.terminal.received(f"\r\x1b[K{notice}".encode("utf-8", "replace") + self._wrapped.row)

    def _cancel_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()
