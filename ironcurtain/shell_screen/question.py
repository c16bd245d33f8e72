"""A question that is open, with the keys that it offers; a step that is read in full; what a picture of them shows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import msgspec

from ironcurtain.escalation.decision_keys import Offer, Page
from ironcurtain.shell.messages import ApprovalRequested, BudgetReached, ProposedStep
from ironcurtain.text.columns import Line

NOTES = frozenset("nc#")
"""Keys that begin a line for the agent, wherever something is asked."""

MOVES = {"up": -1, "k": -1, "ctrl-p": -1, "down": 1, "j": 1, "ctrl-n": 1}
"""Keys that go to another step, or row."""

PAGES = {" ": 1, "page-down": 1, "f": 1, "page-up": -1, "b": -1}
"""Keys that go to another page."""

_PLAN_VIEWS = frozenset(("enter", *MOVES, *PAGES))


class Question(msgspec.Struct, eq=False):
    """
    A decision on a plan, or on one of its steps. Each is another one than all others, whatever it is about.

    :param request: of the step; ``None`` for the plan as a whole.
    :param budget: in place of both, that the tokens are used up.
    """

    plan_id: str
    request: ApprovalRequested | None = None
    budget: BudgetReached | None = None

    def offer(self, waiting: Iterable[ProposedStep]) -> Offer:
        """
        :param waiting: the steps of the plan that have not begun.
        :returns: the keys, and what must have been shown whole before they allow it.
        """
        if self.budget is not None:
            return Offer(self, dict.fromkeys("aydq", ()))
        if self.request is None:
            steps = [shown_step(step) for step in waiting]
            return Offer(self, {"a": steps, "y": steps, **dict.fromkeys("sdeq", ())}, NOTES, _PLAN_VIEWS)
        once = (shown_step(self.request.step),)
        lasting = "AS" * bool(self.request.scope) + "C" * bool(self.request.category)
        allowed = {**dict.fromkeys("ay", once), **dict.fromkeys(lasting, (*once, shown_scope(self.request)))}
        return Offer(self, {**allowed, **dict.fromkeys("xdeq", ())}, NOTES, ("enter",))


class Inspection(msgspec.Struct):
    """
    A step that is read in full, a page at a time.

    :ivar page: the one on the screen; at first, of what is not there yet.
    :ivar top: first row of the page that is to be drawn.
    """

    step: ProposedStep
    top: int = 0
    page: Page = msgspec.field(default_factory=lambda: Page(0, 1, 1, 0))

    def scroll(self, rows: int) -> None:
        """Move by so many rows, as far as there are any."""
        self.top = max(min(self.page.first + rows, self.page.total - self.page.rows), 0)


def shown_step(step: ProposedStep) -> Hashable:
    """:returns: what stands for a step whose command, as it is now, was shown whole."""
    return step.number, step.command, step.diff


def shown_scope(request: ApprovalRequested) -> Hashable:
    """:returns: what stands for the words about what an approval for the session covers."""
    return request.number, request.digest, request.scope, request.category


class Frame(msgspec.Struct, frozen=True):
    """
    The live area.

    :param lines: each fits its terminal; all of them leave one row free.
    :param cursor: its column; it is in the last line.
    :param question: the one that is on the screen.
    :param whole: steps whose command is on the screen whole.
    :param first: index of the first step of a plan that is on the screen, as ``last`` is of the last one; -1: none is.
    :param scope_shown: whether what an approval for the session covers is on the screen whole.
    :param page: of what is inspected.
    """

    lines: tuple[Line, ...] = ()
    cursor: int = 0
    question: Question | None = None
    whole: tuple[ProposedStep, ...] = ()
    first: int = 0
    last: int = -1
    scope_shown: bool = False
    page: Page | None = None
