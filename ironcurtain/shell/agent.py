"""The user's shell in its terminal: what is typed goes to it, until an instruction is given to the agent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ironcurtain.errors import IronCurtainError, SessionError
from ironcurtain.session.model import Reply, Usage
from ironcurtain.session.parts import Core
from ironcurtain.shell.assistant import Assistant
from ironcurtain.shell.execution import KILL_LINE, CommandRunner
from ironcurtain.shell.first_prompt import FirstPrompt
from ironcurtain.shell.front_ends import FrontEnds
from ironcurtain.shell.journal import TurnJournal
from ironcurtain.shell.marks_watch import MarksWatch
from ironcurtain.shell.messages import Action, InstructionDone
from ironcurtain.shell.relay import Relayed
from ironcurtain.shell.terminal_mode import AgentMode, Left, ShellMode
from ironcurtain.shell.typed_instructions import JOIN_SECONDS, LINE_SECONDS, TypedInstructions, for_line
from ironcurtain.shell.waiting import Taken
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
from ironcurtain.terminal.model import ProgramExit, ScreenModel
from ironcurtain.terminal.pty import LocalPty

MakeScreen = Callable[[int, int], ScreenModel]
"""Makes the screen model of a size, in columns and rows."""

MakeAgentMode = Callable[["ShellAgent", Hub, IReactorTime], AgentMode]
"""Makes what draws the agent's part in a terminal."""


class ShellAgent:
    """
    :param wrapped: the shell and its marks.
    :param runner: types commands into it.
    :param assistant: works on instructions.
    :ivar front_ends: are told what happens.
    :ivar typed: has the instructions that are not begun.
    """

    log = Logger()

    def __init__(
        self, core: Core, wrapped: WrappedShell, runner: CommandRunner, front_ends: FrontEnds, assistant: Assistant
    ) -> None:
        self._core, self._wrapped, self._runner = core, wrapped, runner
        self.front_ends, self._holder, self._assistant = front_ends, front_ends.holder, assistant
        self.typed = TypedInstructions(core.services.clock)
        self._marks = MarksWatch(core.services.clock, lambda: wrapped.replaced, lambda: wrapped.edits, self._no_marks)
        self._first: FirstPrompt | None = None
        self._working: Deferred[None] | None = None
        self._stopping = False
        self._journal = TurnJournal(core, front_ends.clean)
        front_ends.watch(self._journal.note)

    def open(self, make_screen: MakeScreen, make_agent_mode: MakeAgentMode, size: tuple[int, int]) -> None:
        """Show it in a terminal of a size."""
        clock = self._core.services.clock
        hub = Hub(self, clock, make_screen(*size), size)
        self.front_ends.terminal, self.front_ends.agent_mode = hub, make_agent_mode(self, hub, clock)

    @property
    def terminal(self) -> Hub | None:
        """Where it works; ``None``: the session takes messages."""
        return self.front_ends.terminal

    @property
    def model(self) -> str:
        """The provider's name of the model that was asked last; empty before that."""
        return self._assistant.model

    async def start(self) -> None:
        """
        Start the shell; one in a terminal runs already, and :meth:`take_over` follows.

        :raises SessionError: it did not start.
        """
        if self.terminal is not None:
            return
        if not self._wrapped.integrated:
            raise SessionError("SESSION_INIT_FAILED", f"{self._wrapped.why_not}: this needs a terminal")
        self._first = FirstPrompt(self._core.services.clock, self._wrapped.stop)
        self._wrapped.spawn(self)
        await self._first.wait()

    def take_over(self, pid: int, master: int, relayed: Relayed) -> None:
        """
        Go on with a shell that runs in a terminal. What it had shown is known to the hub afterwards.

        :param master: descriptor of the master side of its terminal.
        :param relayed: of it; what waits there is passed to :meth:`take` once somebody is attached.
        """
        self._wrapped.take_over(self, pid, master, relayed)
        self._marks.begin(self._wrapped.marks_seconds, self._wrapped.integrated)
        if relayed.streams.entered:
            self._marks.entered()
        self.take(relayed.shown)

    async def respond(self, message: str) -> Reply:
        """Work on an instruction."""
        if self.terminal is not None:
            raise SessionError("MESSAGE_FAILED", "instructions are typed in the terminal")
        done = await self._assistant.respond(message)
        if done.error:
            raise SessionError("MESSAGE_FAILED", done.error)
        return Reply(done.text, self.usage())

    async def stop(self) -> None:
        """End the shell, as when its terminal is closed."""
        self._stopping = True
        await self._wrapped.stop()

    def usage(self) -> Usage:
        """:returns: what the last instruction used so far."""
        return self._assistant.usage()

    @property
    def directory(self) -> Path:
        """Of the session's own files."""
        return self._core.paths.directory

    def new_pty(self) -> LocalPty:
        """:returns: another terminal, for an editor."""
        return self._wrapped.another()

    def later(self, function: Callable[[], None]) -> None:
        """Call a function when what is being done now is done."""
        self._core.services.clock.callLater(0, function)

    def act(self, action: Action) -> None:
        """
        A front end says something.

        :raises UsageError: it does not fit now.
        :raises StaleDecision: it is about something that is over.
        """
        self._assistant.receive(action)

    def write(self, data: bytes) -> None:
        """For the hub: keys."""
        if self._holder.mode is ShellMode.AGENT and self.front_ends.agent_mode is not None:
            self.front_ends.agent_mode.typed(data)
        else:
            self.type(data)

    def type(self, data: bytes) -> None:
        """Give keys to the shell, or to what runs in it."""
        self._runner.typed()
        self.typed.follow(data)
        if b"\r" in data:
            self._marks.entered()
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
        if self.front_ends.agent_mode is not None:
            self.front_ends.agent_mode.resized(columns, rows)

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
        self.typed.stop()
        self._marks.stop()
        self._runner.lost()
        if self._working is not None:
            self._working.cancel()
        self._leave()
        self.front_ends.ended()
        if self._first is not None:
            self._first.lost(ended.reason)
        why = "the session was ended" if self._stopping else "the shell ended"
        if self.terminal is not None:
            self.terminal.ended(ProgramExit(ended.status, why))
        if not self._stopping:
            self._core.end(why)

    def _output(self, data: bytes) -> None:
        running = self._runner.output(data)
        if self._holder.shows_output:
            self._show(data)
        elif running and self.front_ends.agent_mode is not None:
            self._wrapped.output.shown(data, of_agent=True)
            self.front_ends.agent_mode.output(data)
        else:
            self._wrapped.output.hold(data)

    def _show(self, data: bytes) -> None:
        self._wrapped.output.shown(data)
        if self.terminal is not None:
            self.terminal.received(data)

    def _mark(self, mark: Mark) -> None:
        self._wrapped.marked(mark)
        match mark:
            case PromptBegan():
                self._holder.users_command = False
                self._wrapped.output.held.clear()
                self._runner.prompt_began()
            case PromptEnded():
                self._runner.prompt_ended()
                self._prompt()
            case CommandBegan():
                if self._holder.mode is ShellMode.AGENT:
                    self._wrapped.output.held.clear()
                self._runner.command_began()
                self._holder.users_command = not self._runner.running
                self._held_up()
            case CommandEnded(status):
                self._runner.command_ended(status)
                if not self._wrapped.integrated:
                    self._wrapped.output.held.clear()
                    self.typed.later(JOIN_SECONDS, self._empty_line)
            case InstructionTyped(text):
                self._instructed(text)

    def _prompt(self) -> None:
        if self._marks.prompted() and not self.front_ends.announcements.withdraw(self._wrapped.no_marks):
            self.front_ends.say("the shell shows marks now: an instruction begins with # as usual")
        self.typed.not_yet()
        if self._first is not None:
            self._first.shown()
        if self._holder.mode is ShellMode.AGENT:
            self._holder.release()
        if self._holder.mode is ShellMode.INSTRUCTED:
            self.typed.later(JOIN_SECONDS, self._begin)
        else:
            self.front_ends.announcements.flush()

    def _empty_line(self) -> None:
        """A shell without marks is at its prompt, as far as can be known."""
        self._runner.prompt_began()
        self._runner.prompt_ended()

    def _held_up(self) -> None:
        """A command that was typed ahead of the agent runs first."""
        if self._holder.mode is ShellMode.INSTRUCTED:
            self.typed.not_yet()
            self._flush()

    def _instructed(self, text: str) -> None:
        self.typed.not_yet()
        if self._holder.mode is ShellMode.SUSPENDED:
            self._resume(text)
        elif self._holder.returning:
            self._assistant.note(text)
        elif self._holder.mode in (ShellMode.SHELL, ShellMode.INSTRUCTED):
            self._holder.mode = ShellMode.INSTRUCTED
            self.typed.add(text)
            if not self._wrapped.integrated:
                self.typed.later(JOIN_SECONDS, self._begin)

    def _begin(self, late: bool = False) -> None:
        line = self._wrapped.integrated and not self._runner.at_prompt and not self._wrapped.ahead and not late
        if line or self.typed.in_paste:  # was typed ahead: the shell gets all of it
            self.typed.later(JOIN_SECONDS if self.typed.in_paste else LINE_SECONDS, self._begin, line or late)
            return
        taken = self.typed.take()
        if not taken.instruction:
            if not taken.said and self.front_ends.agent_mode is not None:
                self._holder.mode = ShellMode.AGENT  # what the agent said while the user was in the shell
                self.front_ends.begin()
            self._leave()
            self.front_ends.say(*taken.said)
            return
        self._holder.mode = ShellMode.AGENT
        if not self._wrapped.integrated:
            self._empty_line()
        if self._wrapped.ahead:
            self.typed.ahead = self._wrapped.ahead
            self._wrapped.pty.write(KILL_LINE)
            self._runner.prompt_ended()
        self.front_ends.begin()
        self._working = Deferred.fromCoroutine(self._work(taken)).addErrback(
            lambda failure: self.log.failure("an instruction failed", failure)
        )

    async def _work(self, taken: Taken) -> None:
        done = InstructionDone(error="the shell ended")
        self._journal.begin(taken.instruction)
        try:
            done = await self._assistant.respond(taken.instruction)
        except IronCurtainError as e:
            done = InstructionDone(error=str(e))
            self.front_ends.tell(done)
        except CancelledError:  # by the end of the shell
            self.front_ends.tell(done)
        finally:
            self._journal.end(done, self.usage())
            said = self.typed.waiting.ended(taken, self._assistant.unreached, done.error)
            self._leave()
            self.front_ends.say(*said)

    def _leave(self) -> None:
        left = Left()
        if self.front_ends.agent_mode is not None and self._holder.mode in (ShellMode.AGENT, ShellMode.SUSPENDED):
            left = self.front_ends.agent_mode.end()
        self._holder.give_back()
        self._flush()
        self._type_again(left)

    def _type_again(self, left: Left) -> None:
        """Put on the shell's line what was typed before it was its turn."""
        keys, said = self.typed.again(left, "#" if self._wrapped.integrated else "##")
        self.front_ends.say(*said)
        if keys and not self._stopping:
            self.type(keys)

    def suspend(self, rest: bytes = b"") -> None:
        """:param rest: keys that came in one read with the one that gives the shell the terminal back for now."""
        if self._holder.mode is ShellMode.AGENT and not self._runner.busy:
            self.front_ends.suspend()
            self._holder.mode = ShellMode.SUSPENDED
            self._flush()
            self._type_again(for_line(rest))

    def _resume(self, text: str) -> None:
        self._holder.mode = ShellMode.AGENT
        if not self._wrapped.integrated:
            self._empty_line()
        self.front_ends.begin()
        if text:
            self._assistant.note(text)
        self._holder.returning = True  # until the shell shows its next prompt
        if not self._wrapped.integrated:
            self._holder.release()

    def _flush(self) -> None:
        if held := self._wrapped.release():
            self._show(held)

    def _no_marks(self) -> None:
        self._wrapped.give_up_marks()
        self.front_ends.say(self._wrapped.no_marks)
