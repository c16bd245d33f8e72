"""
What a person was shown, and whether what they pressed is a decision: one rule for every surface that asks.

A letter alone is no decision. It is one if it answers a question that has been on the screen for a second, no other key
came within a second before it, one read from the terminal gave nothing else, the question offers it, and everything
that it would approve has been shown whole.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from enum import Enum
from math import inf
from typing import NamedTuple, TypeVar

import msgspec

from ironcurtain.escalation.model import Outcome

QUIET_SECONDS = 1.0
"""How long a question must be on the screen, and no key pressed, before a key decides: who types a text is faster."""

T = TypeVar("T", bound=Hashable)


class Part(Enum):
    """What of an escalation can be on a screen."""

    ROW = "row"
    """That it waits, in a list or as a question. Enough to deny it."""
    CALL = "call"
    """The whole call."""
    SCOPE = "scope"
    """All calls that a kept approval would cover."""


class ShownPart(NamedTuple):
    """A part of an escalation with the digest of its arguments, so that exactly what was shown is decided."""

    number: int
    digest: str
    part: Part


def needed(number: int, digest: str, outcome: Outcome, keep: bool = False) -> tuple[ShownPart, ...]:
    """:returns: what must have been shown before an escalation is decided so."""
    if outcome not in (Outcome.APPROVED, Outcome.ANSWERED):
        return (ShownPart(number, digest, Part.ROW),)
    return tuple(ShownPart(number, digest, part) for part in ((Part.CALL, Part.SCOPE) if keep else (Part.CALL,)))


class Page(NamedTuple):
    """
    A page of a text: some of its rows are on the screen.

    :param first: index of the first of them.
    :param rows: how many there are, as ``total`` in the whole text.
    :param width: columns for which it was broken into rows.
    """

    first: int
    rows: int
    total: int
    width: int


class Verdict(Enum):
    """What a key is."""

    DECIDES = "decides"
    ACTS = "acts"
    """It is offered, and decides nothing: it scrolls, or begins a line of text."""
    EARLY = "early"
    """It came too soon after the question or another key. It has to be pressed again."""
    CROWDED = "crowded"
    """It came together with other keys, as in a paste that the terminal does not mark."""
    UNSEEN = "unseen"
    """Something that it would approve has not been shown whole."""
    MEANINGLESS = "meaningless"
    """It is not offered."""


class Offer(msgspec.Struct, frozen=True):
    """
    What a question offers.

    :param question: what it is about; another value is another question.
    :param decisions: the keys that decide, each with what must have been shown whole before.
    :param notes: keys that begin a line of text.
    :param views: keys that only change what is shown, or take the question back.
    """

    question: Hashable
    decisions: Mapping[str, Collection[Hashable]] = msgspec.field(default_factory=dict)
    notes: Collection[str] = ()
    views: Collection[str] = ()


class _Shown(msgspec.Struct):
    at: float
    calls: int


class DecisionKeys:
    """
    What one person was shown and pressed. All times are seconds of one clock that does not go back.

    Something is *shown* when it has been on the screen whole. The caller chooses the values that stand for it.
    """

    def __init__(self) -> None:
        self._shown: dict[Hashable, _Shown] = {}
        self._read: dict[Hashable, Page] = {}
        """Of what is read a page at a time, the rows from the first one on that were on the screen."""
        self._question: Hashable = None
        self._appeared: float | None = None
        self._last_key = -inf
        self._is_text = False

    def show(self, thing: Hashable, now: float, calls: int = 1) -> None:
        """
        Something is on the screen, whole.

        :param calls: the number of equal calls that the screen says it stands for.
        """
        known = self._shown.get(thing)
        self._shown[thing] = _Shown(now if known is None else known.at, calls)

    def read(self, thing: Hashable, page: Page, now: float, calls: int = 1) -> None:
        """A page is on the screen. All of it was shown once all rows were, without a gap and at one width."""
        known = self._read.get(thing)
        reached = known.rows if known is not None and known.width == page.width else 0
        if page.first <= reached:
            reached = max(reached, page.first + page.rows)
        self._read[thing] = Page(0, reached, page.total, page.width)
        if reached >= page.total or not self.missing([thing]):
            self.show(thing, now, calls)

    def keep(self, things: Iterable[Hashable]) -> None:
        """Forget what was shown, except these."""
        kept = set(things)
        self._shown = {thing: shown for thing, shown in self._shown.items() if thing in kept}
        self._read = {thing: page for thing, page in self._read.items() if thing in kept}

    def calls(self, thing: Hashable) -> int | None:
        """:returns: the number of equal calls that were shown with it; ``None`` if it was not shown."""
        shown = self._shown.get(thing)
        return None if shown is None else shown.calls

    def missing(self, things: Iterable[T]) -> list[T]:
        """:returns: those that were not shown."""
        return [thing for thing in things if thing not in self._shown]

    def appear(self, question: Hashable, now: float) -> None:
        """A question is on the screen. ``None``: there is none, so that keys answer nothing until it is there again."""
        if question is None:
            self._question = self._appeared = None
        elif self._appeared is None or question != self._question:
            self._question, self._appeared = question, now

    def due(self, question: Hashable) -> float | None:
        """:returns: from when on a key decides; ``None`` if the question is not on the screen."""
        if self._appeared is None or question != self._question:
            return None
        return max(self._appeared, self._last_key) + QUIET_SECONDS

    def strike(self, now: float, text: bool = True) -> None:
        """
        A key or a paste is for something else.

        :param text: whether it belongs to a text, or to nothing: then the keys that follow at once do not begin a line.
        """
        self._last_key, self._is_text = now, text or self._in_text(now)

    def press(self, key: str, offer: Offer, now: float, alone: bool = True) -> Verdict:
        """
        A key is pressed at a question.

        :param alone: whether one read from the terminal gave nothing else.
        """
        verdict = self._judged(key, offer, now, alone)
        self.strike(now, text=verdict is Verdict.MEANINGLESS)
        return verdict

    def word(self, things: Iterable[Hashable], began: float, now: float) -> Verdict:
        """
        A command is typed out that approves or denies these things. Being typed out, it needs no pause before Enter.

        :param began: when its first character was typed; minus infinity if a part of it was pasted, infinity if a
            program wrote it, which needs no second to read.
        """
        found = [self._shown.get(thing) for thing in things]
        if None in found:
            return Verdict.UNSEEN
        at = max((each.at for each in found if each is not None), default=-inf)
        early = began <= at or (began < inf and now < at + QUIET_SECONDS)
        return Verdict.EARLY if early else Verdict.DECIDES

    def _judged(self, key: str, offer: Offer, now: float, alone: bool) -> Verdict:
        due = self.due(offer.question)
        if key in offer.views:
            return Verdict.ACTS
        if key not in offer.notes and key not in offer.decisions:
            return Verdict.MEANINGLESS
        if not alone:
            return Verdict.CROWDED
        if due is None or (self._in_text(now) if key in offer.notes else now < due):
            return Verdict.EARLY
        if key in offer.notes:
            return Verdict.ACTS
        return Verdict.UNSEEN if self.missing(offer.decisions[key]) else Verdict.DECIDES

    def _in_text(self, now: float) -> bool:
        return self._is_text and now < self._last_key + QUIET_SECONDS


def untimely(verdict: Verdict, key: str) -> str:
    """:returns: what a person is told whose key came too soon, or together with others."""
    crowded = "several keys came at once, which decide nothing: press one"
    return crowded if verdict is Verdict.CROWDED else f"too early: press {key} again"
