"""A question that is open, and what of it the person has been shown. Nothing is approved unseen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ironcurtain.shell.messages import ApprovalRequested, ProposedStep

SETTLE_SECONDS = 0.15
"""How soon after a question is drawn a key is no answer to it: nobody reads and presses as fast."""


@dataclass(slots=True)
class Question:
    """
    A decision on a plan, or on one of its steps.

    :param request: of the step; ``None`` for the plan as a whole.
    :ivar drawn_at: since when it has been on the screen; ``None`` while it is not. Keys that came before do not count.
    :ivar scope_shown: whether what an approval for the session covers has been shown whole.
    """

    plan_id: str
    request: ApprovalRequested | None = None
    drawn_at: float | None = None
    scope_shown: bool = False

    def counts(self, now: float) -> bool:
        """Whether a key that comes now can be an answer."""
        return self.drawn_at is not None and now - self.drawn_at >= SETTLE_SECONDS


@dataclass(slots=True)
class Inspection:
    """
    A step that is read in full, a page at a time.

    :ivar top: first row on the screen.
    :ivar room: how many rows fit.
    :ivar read: how many rows from the first one on have been on the screen, at this ``width``.
    """

    step: ProposedStep
    top: int = 0
    room: int = 1
    total: int = 1
    read: int = 0
    width: int = 0

    @property
    def is_read(self) -> bool:
        """Whether all rows have been on the screen."""
        return self.read >= self.total

    def scroll(self, rows: int) -> None:
        """Move by so many rows, as far as there are any."""
        self.top = max(min(self.top + rows, self.total - self.room), 0)

    def drawn(self, top: int, room: int, total: int, width: int) -> None:
        """These rows are on the screen now."""
        if width != self.width:
            self.read, self.width = 0, width
        self.top, self.room, self.total = top, room, total
        if top <= self.read:
            self.read = max(self.read, min(top + room, total))


@dataclass(slots=True)
class Seen:
    """Which commands were shown whole."""

    _commands: dict[int, str] = field(default_factory=dict)

    def add(self, step: ProposedStep) -> None:
        """Its command has been on the screen, whole."""
        self._commands[step.number] = step.command

    def missing(self, steps: Iterable[ProposedStep]) -> list[ProposedStep]:
        """:returns: those whose command, as it is now, has not been shown whole."""
        return [step for step in steps if self._commands.get(step.number) != step.command]
