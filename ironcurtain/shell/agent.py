"""The user's shell in its terminal: what is typed goes to it, until an instruction is given to the agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred, TimeoutError, succeed
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ironcurtain.errors import IronCurtainError, SessionError
from ironcurtain.session import events
from ironcurtain.session.model import Reply, Usage
from ironcurtain.session.parts import Core
from ironcurtain.shell.assistant import Assistant
from ironcurtain.shell.execution import KILL_LINE, CommandRunner
from ironcurtain.shell.journal import TurnJournal
from ironcurtain.shell.marks import (
    CommandBegan,
    CommandEnded,
    DirectoryChanged,
    InstructionTyped,
    Mark,
    PromptBegan,
    PromptEnded,
)
from ironcurtain.shell.messages import Action, InstructionDone, Message
from ironcurtain.shell.terminal_mode import AgentMode, ShellMode
from ironcurtain.shell.wrapped import EXEC_SECONDS, FIRST_PROMPT_SECONDS, MARKS_SECONDS, NOTICE_SECONDS, WrappedShell
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import ProgramExit
from ironcurtain.terminal.pty import LocalPty

LINE_SECONDS = 2.0
"""How long the shell has for a line that was typed ahead, before the agent begins all the same."""

JOIN_SECONDS = 0.05
"""How long after a prompt further instructions that were typed ahead are waited for; they are one with the first."""

HELD_LIMIT = 256 * 1024
"""Most bytes that jobs in the background write while the agent has the terminal; of more, the last are shown."""


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
        self._mode, self._held = ShellMode.SHELL, bytearray()
        self._instructions: list[str] = []
        self._timer: IDelayedCall | None = None
        self._checking: IDelayedCall | None = None
        self._prompted: Deferred[None] | None = None
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
        Start the shell.

        :raises SessionError: it did not start.
        """
        if self.terminal is None and not self._wrapped.integrated:
            raise SessionError("SESSION_INIT_FAILED", f"{self._wrapped.why_not}: this needs a terminal")
        self._wrapped.spawn(self)
        if self.terminal is None:
            self._prompted = Deferred()
            self._prompted.addTimeout(FIRST_PROMPT_SECONDS, self._clock)
            try:
                await self._prompted
            except TimeoutError:
                await self._wrapped.stop()
                why = f"the shell showed no prompt with marks within {FIRST_PROMPT_SECONDS:.0f} s"
                raise SessionError("SESSION_INIT_FAILED", why) from None
        else:
            seconds = MARKS_SECONDS if self._wrapped.integrated else NOTICE_SECONDS
            self._timer = self._clock.callLater(seconds, self._no_marks)

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
        if b"\r" in data and (self._checking is None or not self._checking.active()):
            self._checking = self._clock.callLater(EXEC_SECONDS, self._check)
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
        for piece in self._wrapped.read(data):
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
        if self._checking is not None and self._checking.active():
            self._checking.cancel()
        self._runner.lost()
        if self._working is not None:
            self._working.cancel()
        self._leave()
        self.ending()
        if self._prompted is not None and not self._prompted.called:
            self._prompted.errback(SessionError("SESSION_INIT_FAILED", f"the shell ended: {ended.reason}"))
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
            self._held += data
            del self._held[:-HELD_LIMIT]

    def _show(self, data: bytes) -> None:
        self._wrapped.shown(data)
        if self.terminal is not None:
            self.terminal.received(data)

    def _mark(self, mark: Mark) -> None:
        self._runner.pasting = self._wrapped.pasting
        match mark:
            case PromptBegan():
                self._users_command = False
                self._held.clear()
                self._runner.prompt_began()
            case PromptEnded():
                self._wrapped.prompted()
                self._runner.prompt_ended()
                self._prompt()
            case CommandBegan():
                if self._mode is ShellMode.AGENT:
                    self._held.clear()
                self._runner.command_began()
                self._users_command = not self._runner.running
                self._held_up()
            case CommandEnded(status):
                self._wrapped.status = status
                self._runner.command_ended(status)
                if not self._wrapped.integrated:
                    self._held.clear()
                    self._timer = self._clock.callLater(JOIN_SECONDS, self._empty_line)
            case DirectoryChanged(path):
                self._wrapped.directory = path
            case InstructionTyped(text):
                self._instructed(text)

    def _prompt(self) -> None:
        if self._mode is not ShellMode.INSTRUCTED:
            self._cancel_timer()
        if self._prompted is not None and not self._prompted.called:
            self._prompted.callback(None)
        if self._mode is ShellMode.AGENT:
            self._released()
        if self._mode is ShellMode.INSTRUCTED:
            self._cancel_timer()
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
        instruction = "\n".join(self._instructions).strip()
        self._instructions.clear()
        if not instruction:
            self._leave()
            return
        self._mode = ShellMode.AGENT
        if not self._wrapped.integrated:
            self._empty_line()
        if self._wrapped.typed_ahead:
            self._wrapped.pty.write(KILL_LINE)
            self._runner.prompt_ended()
        if self.agent_mode is not None:
            self.agent_mode.begin()
        self._working = Deferred.fromCoroutine(self._work(instruction)).addErrback(
            lambda failure: self.log.failure("an instruction failed", failure)
        )

    async def _work(self, instruction: str) -> None:
        done = InstructionDone(error="the shell ended")
        self.journal.begin(instruction)
        try:
            done = await self.assistant.respond(instruction)
        except IronCurtainError as e:
            done = InstructionDone(error=str(e))
            self.tell(done)
        except CancelledError:  # by the end of the shell
            self.tell(done)
        finally:
            self.journal.end(done, self.usage())
            self._leave()

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
        held, self._held = bytes(self._held), bytearray()
        if not self._wrapped.integrated:
            held = held.removeprefix(b"\r\n")  # of the Enter that was shown already
        if held:
            self._show(held)

    def _no_marks(self) -> None:
        self._timer = None
        self._wrapped.give_up_marks()
        why = self._wrapped.why_not or "this shell shows no marks"
        self._say(f"{why}: begin an instruction with ## instead of #")

    def _check(self) -> None:
        if self._wrapped.replaced:
            self._no_marks()

    def _say(self, sentence: str) -> None:
        self._core.emit(events.Notice(text=sentence))
        if self.terminal is not None:
            notice = b"\r\x1b[K\x1b[2m[ironcurtain] %b\x1b[0m\r\n" % sentence.encode()
            self.terminal.received(notice + self._wrapped.row)

    def _cancel_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()
