"""Sentences for the user of a shell: above the prompt, and never within what a program draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.shell.messages import ApprovalRequested, BudgetReached, InstructionDone, Message, PlanProposed
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted

LOOK_SECONDS = 0.5
"""How often it is looked whether the shell is back at its prompt."""

SHOWN = 200
"""Most characters of a command, or of why the agent stopped."""

BACK = "# shows it"


class Announcements:
    """
    :param at_prompt: returns whether the shell waits for a line, as far as is known.
    :param show: prints sentences above the prompt.
    """

    def __init__(
        self, clock: IReactorTime, at_prompt: Callable[[], bool], show: Callable[[Sequence[str]], None]
    ) -> None:
        self._clock, self._at_prompt, self._show = clock, at_prompt, show
        self._waiting: list[str] = []
        self._look: IDelayedCall | None = None

    def say(self, *sentences: str) -> None:
        """Show them as soon as that disturbs nothing."""
        self._waiting += sentences
        self.flush()

    def withdraw(self, sentence: str) -> bool:
        """:returns: whether a sentence was not shown yet; it will not be."""
        waits = sentence in self._waiting
        self._waiting = [each for each in self._waiting if each != sentence]
        return waits

    def flush(self) -> None:
        """The shell may be at its prompt."""
        self.stop()
        if not self._waiting:
            return
        if not self._at_prompt():
            self._look = self._clock.callLater(LOOK_SECONDS, self.flush)
            return
        waiting, self._waiting = self._waiting, []
        self._show(waiting)

    def stop(self) -> None:
        """Look no more."""
        look, self._look = self._look, None
        if look is not None and look.active():
            look.cancel()


def announced(message: Message) -> str:
    """:returns: what somebody is told who is back in the shell while the agent works; empty: nothing."""
    match message:
        case PlanProposed(steps=steps, confirm=confirm):
            plan = f"the agent has a plan of {counted(len(steps), 'step')}"
            return f"{plan}: {BACK}" if confirm else f"{plan}, and waits for the terminal: # lets it go on"
        case ApprovalRequested(step=step):
            return f"the agent asks whether to run {one_line(step.command, SHOWN)!r}: {BACK}"
        case BudgetReached():
            return f"the agent asks whether to use more tokens: {BACK}"
        case InstructionDone(error=error):
            return f"the agent has stopped: {one_line(error, SHOWN)}" if error else f"the agent has answered: {BACK}"
    return ""


def above_prompt(sentences: Sequence[str], row: bytes) -> bytes:
    """
    :param row: the last row of the terminal, with the prompt and what is typed.
    :returns: what prints sentences in its place, and the row below them.
    """
    notice = "".join(f"\x1b[2m[ironcurtain] {sentence}\x1b[0m\r\n" for sentence in sentences)
    return f"\r\x1b[K{notice}".encode("utf-8", "replace") + row
