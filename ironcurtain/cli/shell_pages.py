"""A question about a step at a terminal that shows lines: a page at a time, and answers that are lines."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from ironcurtain.escalation.decision_keys import DecisionKeys, Offer, Page, Verdict
from ironcurtain.shell.messages import Approval, ApprovalRequested
from ironcurtain.text.columns import Line, Span, rows
from ironcurtain.view.look import Look
from ironcurtain.view.steps import inspected

LEAST_WIDTH = 20
"""Columns of a row in terminals that have fewer."""

TOO_SMALL = "the terminal is too small to show the question: make it larger; "

_NEXT = ""
"""Enter alone."""

_WORDS = {"a": "allow", "y": "allow", "yes": "allow", "x": "skip", "d": "deny", "n": "deny", "no": "deny"}
_KEPT = {"A": "allow_session", "C": "allow_category"}


class PagedQuestion:
    """
    What cannot be shown at once is shown page by page; nothing is allowed before all of it was.

    :param request: what is asked.
    :param look: what the terminal can show.
    """

    def __init__(self, request: ApprovalRequested, look: Look) -> None:
        self._request, self._look = request, look
        self._thing: Hashable = (request.plan_id, request.step.number, request.digest)
        self._keys = DecisionKeys()
        self._lines: list[Line] = []
        self._width = self._next = 0

    def page(self, columns: int, height: int, now: float) -> str:
        """
        :param columns: of the terminal, as ``height`` are its rows.
        :param now: in seconds of a clock that does not go back.
        :returns: what is to be shown now: the next page, or the first one in a terminal of another width.
        """
        width = max(columns - 1, LEAST_WIDTH)
        if width != self._width:
            self._width, self._next = width, 0
            self._lines = self._all(width)
        first = self._next
        # The longer one of both prompts, so that all of the page stays on the screen.
        room = height - 1 - -(-max(len(self._prompt(0)), len(self._prompt(len(self._lines)))) // max(columns, 1))
        self._keys.appear(self._thing, now)
        if room < 1 or columns < width:
            return f"{TOO_SMALL}{self._prompt(self._next)}"
        self._next = min(first + room, len(self._lines))
        self._keys.read(self._thing, Page(first, self._next - first, len(self._lines), width), now)
        shown = [self._look.paint(line) for line in self._lines[first : self._next]]
        return "\n".join((*shown, self._prompt(self._next)))

    def answer(self, line: str, columns: int, height: int, now: float) -> Approval | str:
        """
        :param line: what was typed; the others as for :meth:`page`.
        :returns: the decision, on exactly what was shown; else what is to be shown.
        """
        word = line.strip()
        if word == _NEXT and (self._more or max(columns - 1, LEAST_WIDTH) != self._width):
            self._keys.strike(now)
            return self.page(columns, height, now)
        decision = decision_of(word, self._request)
        if decision is None:
            self._keys.strike(now)
            return self._prompt(self._next)
        match self._keys.press(decision, self._offer, now):
            case Verdict.DECIDES:
                return approval(decision, self._request)
            case Verdict.UNSEEN:
                return f"not all of it was shown: {self._prompt(self._next)}"
            case _:
                return "too early: read it, and answer again: "

    @property
    def _more(self) -> bool:
        return self._next < len(self._lines)

    @property
    def _offer(self) -> Offer:
        whole = (self._thing,)
        allowing: dict[str, Collection[Hashable]] = dict.fromkeys(("allow", *_KEPT.values()), whole)
        return Offer(self._thing, {**allowing, "skip": (), "deny": ()})

    def _all(self, width: int) -> list[Line]:
        step = self._request.step
        heading = rows((Span(f"Step {step.number} needs your approval", "bold"),), width)
        return [*heading, *inspected(step, self._request, width, self._look)]

    def _prompt(self, shown: int) -> str:
        if shown < len(self._lines):
            return f"{shown} of {len(self._lines)} rows: Enter shows more, x skip, d deny: "
        keep = (", A keep" if self._request.scope else "") + (", C category" if self._request.category else "")
        return f"a allow{keep}, x skip, d deny, and Enter: "


def decision_of(word: str, request: ApprovalRequested) -> str | None:
    """:returns: the decision that a word is; ``None`` if it is none here."""
    kept = {"A": request.scope, "C": request.category}
    return _KEPT[word] if kept.get(word) else _WORDS.get(word)


def approval(decision: str, request: ApprovalRequested) -> Approval:
    """:returns: a decision on exactly what was asked."""
    digest = request.digest if decision != "skip" else None
    return Approval(plan_id=request.plan_id, step=request.step.number, decision=decision, digest=digest)  # type: ignore[arg-type]
