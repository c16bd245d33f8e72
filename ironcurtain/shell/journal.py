"""The instructions of a shell's session as turns: in its history, and as events."""

from __future__ import annotations

from collections.abc import Callable

from twisted.logger import Logger

from ironcurtain.audit.chain import timestamp
from ironcurtain.session import events
from ironcurtain.session.history import History
from ironcurtain.session.model import Turn, Usage
from ironcurtain.session.parts import Core
from ironcurtain.shell.assistant import CANCELLED
from ironcurtain.shell.messages import InstructionDone, Message, StepCompleted, StepKind, StepStarted


class TurnJournal:
    """:param clean: keeps secrets out of the records."""

    log = Logger()

    def __init__(self, core: Core, clean: Callable[[str], str]) -> None:
        self._core, self._history = core, History(core.paths.history)
        self._instruction, self._began, self._speaks = "", "", False
        self._clean = clean

    def begin(self, instruction: str) -> None:
        """An instruction is worked on."""
        self._instruction, self._began = instruction, timestamp(self._core.services.now())
        self._core.emit(events.TurnStarted(turn=len(self._history.turns) + 1, message=self._clean(instruction)))

    def note(self, message: Message) -> None:
        """Log what steps have to say that are no commands: of these, the terminal has it."""
        match message:
            case StepStarted(kind=kind):
                self._speaks = kind is not StepKind.COMMAND
            case StepCompleted(step=step, output=output) if self._speaks:
                self._speaks = False
                for line in output.splitlines():
                    self._core.log_line(f"step {step}", self._clean(line))

    def end(self, done: InstructionDone, usage: Usage) -> None:
        """It is done. A history that cannot be written is logged."""
        number = len(self._history.turns) + 1
        asked, answer, error = map(self._clean, (self._instruction, done.text, done.error))
        turn = Turn(number=number, message=asked, answer=answer, usage=usage, timestamp=self._began, error=error)
        try:
            self._history.append(turn)
        except OSError as e:
            self.log.critical("a turn is not in {path}: {error}", path=self._core.paths.history, error=e)
        code = "CANCELLED" if done.error == CANCELLED else "MESSAGE_FAILED" if done.error else ""
        self._core.emit(events.TurnFinished(turn=number, answer=answer, error=error, code=code))
