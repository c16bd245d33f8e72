"""Instructions that were typed, until the agent begins with them."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.shell.waiting import Taken, WaitingInstructions


class TypedInstructions:
    """
    Lines that follow each other are one instruction.

    :ivar waiting: for a model that can be reached.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self.waiting = WaitingInstructions()
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

    def not_yet(self) -> None:
        """Call nothing."""
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()
