"""Instructions that were typed, until the agent begins with them."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.shell.waiting import Taken, WaitingInstructions

LINE_SECONDS = 2.0
"""How long the shell has for a line that was typed ahead, before the agent begins all the same."""

JOIN_SECONDS = 0.05
"""How long after a prompt further instructions that were typed ahead are waited for; they are one with the first."""


class TypedInstructions:
    """
    Lines that follow each other are one instruction.

    :ivar waiting: for a model that can be reached, or for the user to begin what a watcher proposes.
    :ivar ahead: what was typed on the next line before the agent had the terminal; the line was cleared.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self.waiting = WaitingInstructions()
        self.ahead = b""
        self._clock = clock
        self._lines: list[str] = []
        self._timer: IDelayedCall | None = None

    def add(self, text: str) -> None:
        """:param text: what one of them says."""
        self._lines.append(text)

    def take(self) -> Taken:
        """:returns: what they say together."""
        taken = self.waiting.take("\n".join(self._lines).strip())
        self._lines.clear()
        return taken

    def later(self, seconds: float, function: Callable[..., None], *arguments: object) -> None:
        """Call a function after so many seconds, and nothing that was to be called before."""
        self.not_yet()
        self._timer = self._clock.callLater(seconds, function, *arguments)

    def stop(self) -> None:
        """The shell ended."""
        self.not_yet()
        self.ahead = b""

    def not_yet(self) -> None:
        """Call nothing."""
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()
