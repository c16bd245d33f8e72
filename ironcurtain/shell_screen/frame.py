"""One picture of the live area, with what a person who looks at it has been shown."""

from __future__ import annotations

from dataclasses import dataclass

from ironcurtain.escalation.decision_keys import Page
from ironcurtain.shell.messages import ProposedStep
from ironcurtain.shell_screen.question import Question
from ironcurtain.text.columns import Line


@dataclass(frozen=True, slots=True)
class Frame:
    """
    The live area.

    :param lines: each fits its terminal; all of them leave one row free.
    :param cursor: its column; it is in the last line.
    :param question: the one that is on the screen.
    :param whole: steps whose command is on the screen whole; ``cut`` those of which a part is missing.
    :param scope_shown: whether what an approval for the session covers is on the screen whole.
    :param first: index of the first step of the list, as ``last`` is of the last one.
    :param page: of what is inspected.
    """

    lines: tuple[Line, ...] = ()
    cursor: int = 0
    question: Question | None = None
    whole: tuple[ProposedStep, ...] = ()
    cut: frozenset[int] = frozenset()
    scope_shown: bool = False
    first: int = 0
    last: int = 0
    page: Page | None = None
