"""
The state of the console, and how keys, commands and refreshes change it. Every transition returns a new state, and the
actions to perform.

A decision requires that the person could read the call in a frame that reached the terminal. An approval requires that
all of its text was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ironcurtain.escalation.decision_keys import DecisionKeys, Page, Part, ShownPart, needed
from ironcurtain.escalation.model import Outcome
from ironcurtain.operations.model import EscalationView, PermissionView
from ironcurtain.session.model import SessionInfo, Turn
from ironcurtain.text.columns import Style
from ironcurtain.text.display import one_line
from ironcurtain.view.commands import Command, Message
from ironcurtain.view.escalations import GONE, outcome_words
from ironcurtain.view.forms import FormDialogue
from ironcurtain.view.sessions import head_words

Row = SessionInfo | EscalationView

REMEMBERED = 300
"""Number of decided escalations kept."""


class Section(StrEnum):
    """The lists on the screen, from top to bottom."""

    SESSIONS = "sessions"
    WAITING = "waiting"
    HISTORY = "history"


class ShownEscalation(NamedTuple):
    """An escalation with the digest of the arguments shown."""

    number: int
    digest: str


class Question(msgspec.Struct, frozen=True):
    """
    A decision that waits for its confirmation.

    :param every: whether it is about all escalations that were listed when it was asked.
    :param keep: whether the approval will cover all calls of the scope in the question.
    """

    outcome: Outcome
    keys: tuple[ShownEscalation, ...]
    every: bool = False
    keep: bool = False


class Shown(msgspec.Struct, frozen=True):
    """
    The contents of the last frame that reached the terminal.

    :param rows: the listed escalations.
    :param whole: the escalation whose text was shown, as far as it fits.
    :param calls: number of equal calls in its heading.
    :param part: the page of that text.
    :param complete: whether the text contains all arguments.
    :param question: the question that was asked.
    :param page: rows of the text below the lists.
    :param end: how far that text can be scrolled.
    """

    rows: tuple[ShownEscalation, ...] = ()
    whole: ShownEscalation | None = None
    calls: int = 1
    part: Page = Page(0, 0, 0, 0)
    complete: bool = True
    question: Question | None = None
    page: int = 10
    end: int = 0


@dataclass(frozen=True, slots=True)
class Send:
    """
    Send a decision.

    :param calls: the number of equal calls shown.
    :param content: the values of a form that was filled in.
    """

    outcome: Outcome
    key: ShownEscalation
    keep: bool = False
    calls: int | None = None
    content: Mapping[str, Any] | None = field(default=None, repr=False)


Effect = Send | Message | Command
"""
What is to be done; commands are those for others than the screen, and two that are keys only: ``refresh``, and
``attach`` for leaving the console for a session.
"""

REFRESH = Command("refresh")


def key_of(escalation: EscalationView) -> ShownEscalation:
    """:returns: what a decision about an escalation is bound to."""
    return ShownEscalation(escalation.number, escalation.digest)


class ConsoleState(msgspec.Struct, frozen=True):
    """
    Everything that determines the screen, besides its size and the time.

    :param loaded: whether data has arrived.
    :param lacking: sentences that say which sessions the lists lack.
    :param history: newest first.
    :param section: the focused list.
    :param chosen: number of the chosen row of each list; 0 if there is none, or in the history while the newest is
        chosen.
    :param scroll: rows by which the text is scrolled: down, or in a session's activity up.
    :param prompt: the input line; ``None`` while it is closed.
    :param began: when the input line was opened, in seconds of the clock of the keys; minus infinity if it has pasted
        text.
    :param addressed: number of the session that was chosen when it was opened; 0 if there was none.
    :param withdrawn: the question that comes back when the input line is closed.
    :param permissions: the kept approvals, if they are shown.
    :param permitted: whether these are shown.
    :param dialogue: the form that is being filled in; all states share it, as they share ``keys``.
    :param opened: whether the chosen session has the screen for itself.
    :param attaches: whether the viewer can be attached to a session.
    :param turns: its messages so far.
    :param message: the newest message and its style.
    :param keys: what was shown and pressed; all states of a console share it. An escalation counts as shown when all
        of its text was on the screen.
    """

    loaded: bool = False
    lacking: tuple[str, ...] = ()
    sessions: tuple[SessionInfo, ...] = ()
    pending: tuple[EscalationView, ...] = ()
    history: tuple[EscalationView, ...] = ()
    section: Section = Section.WAITING
    chosen: Mapping[Section, int] = msgspec.field(default_factory=dict)
    scroll: int = 0
    filter: str = ""
    prompt: str | None = None
    began: float = 0.0
    addressed: int = 0
    withdrawn: Question | None = None
    question: Question | None = None
    dialogue: FormDialogue | None = None
    help: bool = False
    permissions: tuple[PermissionView, ...] = ()
    permitted: bool = False
    opened: bool = False
    attaches: bool = False
    turns: tuple[Turn, ...] = ()
    message: tuple[str, Style] = ("", "")
    shown: Shown = Shown()
    keys: DecisionKeys = msgspec.field(default_factory=DecisionKeys)

    def listed(self, section: Section) -> tuple[Row, ...]:
        """:returns: the rows of a list that match the filter."""
        lists: Mapping[Section, tuple[Row, ...]] = {Section.SESSIONS: self.sessions, Section.WAITING: self.pending}
        rows, wanted = lists.get(section, self.history), self.filter.casefold()
        return tuple(row for row in rows if wanted in _words(row).casefold()) if wanted else rows

    def number(self, section: Section) -> int:
        """:returns: number of the chosen row of a list, initially the newest in the history; 0 if there is none."""
        return self.chosen.get(section, 0) or (self._newest() if section is Section.HISTORY else 0)

    @property
    def escalation(self) -> EscalationView | None:
        """The chosen pending escalation."""
        return next((e for e in self.pending if e.number == self.number(Section.WAITING)), None)

    @property
    def record(self) -> EscalationView | None:
        """The chosen decided escalation."""
        return next((e for e in self.history if e.number == self.number(Section.HISTORY)), None)

    @property
    def aside(self) -> bool:
        """Whether the text does not belong to a row of a list."""
        return self.help or self.permitted

    @property
    def followed(self) -> int:
        """The session whose activity is shown; 0 if there is none."""
        return self.number(Section.SESSIONS) if self.section is Section.SESSIONS else 0

    @property
    def session(self) -> SessionInfo | None:
        """The session whose activity is shown."""
        return next((info for info in self.sessions if info.number == self.followed), None)

    def with_message(self, text: str, style: Style = "dim") -> ConsoleState:
        """:returns: the state with a message; ``text`` may be untrusted."""
        return replace(self, message=(one_line(text, 400), style))

    def drawn(self, shown: Shown, now: float) -> ConsoleState:
        """
        :param now: seconds of the clock of the keys.
        :returns: the state after a frame reached the terminal.
        """
        if shown.whole is not None and shown.complete:
            for thing in needed(*shown.whole, Outcome.APPROVED):
                self.keys.read(thing, shown.part, now, shown.calls)
        for row in shown.rows:
            self.keys.show(ShownPart(*row, Part.ROW), now)
        self.keys.appear(shown.question, now)
        return replace(self, shown=shown, scroll=min(self.scroll, shown.end))

    def was_read(self, key: ShownEscalation) -> bool:
        """:returns: whether all of its text was on the screen."""
        return not self.keys.missing(needed(*key, Outcome.APPROVED))

    def news(self, sessions: Iterable[SessionInfo], escalations: Iterable[EscalationView], now: float) -> ConsoleState:
        """
        Take refreshed data.

        :param escalations: pending and decided ones.
        :param now: seconds since the epoch.
        """
        known = {e.number: e for e in escalations}
        pending = tuple(e for e in known.values() if not e.outcome)
        gone = [replace(e, outcome=GONE, closed_at=now) for e in self.pending if e.number not in known]
        before = [e for e in (*self.history, *gone) if e.number not in known]  # one that seemed gone may be back
        decided = [*before, *(e for e in known.values() if e.outcome)]
        newest = sorted(decided, key=lambda e: (e.closed_at, e.number), reverse=True)[:REMEMBERED]
        found = {info.number: info for info in sessions}
        open_ = tuple(sorted((info for info in found.values() if not info.over), key=lambda s: s.number))
        left = {info.number for info in open_}
        ended = [found.get(info.number, info) for info in self.sessions if info.number not in left]
        self.keys.keep(ShownPart(*key_of(e), part) for e in pending for part in Part)
        new = replace(self, loaded=True, sessions=open_, pending=pending, history=tuple(newest))
        if ended:
            said = [f"session {e.number} has ended" + (f", {head_words(e.head)}" if e.head else "") for e in ended]
            new = new.with_message("; ".join(said))
        new = new._choose(self)
        return replace(new, opened=new.opened and new.followed == self.followed).ask_on()

    def arrived(self, before: ConsoleState) -> bool:
        """:returns: whether there is a new pending escalation, unless this is the first data."""
        return before.loaded and bool({e.number for e in self.pending} - {e.number for e in before.pending})

    def choose(self, section: Section, number: int) -> ConsoleState:
        """:returns: the state with a row chosen."""
        same = section is self.section and self.number(section) == number
        follows = section is Section.HISTORY and number == self._newest()
        chosen = {**self.chosen, section: 0 if follows else number}
        scroll = self.scroll if same and not self.aside else 0
        opened = self.opened and same
        new = replace(self, section=section, chosen=chosen, scroll=scroll, help=False, permitted=False)
        return replace(new, opened=opened, turns=self.turns if opened else ())

    def go(self, section: Section) -> ConsoleState:
        """:returns: the state with another focused list."""
        return self.choose(section, self.number(section))

    def move(self, step: int) -> ConsoleState:
        """:returns: the state with another row chosen, ``step`` further down."""
        numbers = [row.number for row in self.listed(self.section)]
        if not numbers:
            return self
        at = numbers.index(self.number(self.section)) if self.number(self.section) in numbers else 0
        return self.choose(self.section, numbers[min(max(at + step, 0), len(numbers) - 1)])

    def roll(self, rows: int) -> ConsoleState:
        """:returns: the state with the text scrolled down."""
        rows = -rows if self.followed and not self.aside else rows
        return replace(self, scroll=min(max(self.scroll + rows, 0), self.shown.end))

    def narrow(self, text: str) -> ConsoleState:
        """:returns: the state with another filter."""
        return replace(self, filter=one_line(text, 60))._choose(self)

    def _choose(self, before: ConsoleState) -> ConsoleState:
        new = replace(self, chosen={section: self._keep(section, before) for section in Section})
        same = new.number(self.section) == before.number(self.section)
        return replace(new, scroll=self.scroll if same else 0)

    def _keep(self, section: Section, before: ConsoleState) -> int:
        """:returns: the row that was chosen, else the one in its place, so that new rows do not move the choice."""
        numbers = [row.number for row in self.listed(section)]
        number = before.number(section)
        if section is Section.HISTORY and not before.chosen.get(section):
            return 0
        if number in numbers or not numbers:
            return number if numbers else 0
        was = [row.number for row in before.listed(section)]
        return numbers[min(was.index(number) if number in was else 0, len(numbers) - 1)]

    def _newest(self) -> int:
        return next((record.number for record in self.listed(Section.HISTORY)), 0)

    def ask_on(self) -> ConsoleState:
        """:returns: the state without the escalations that need no decision in its question."""
        if (form := self.dialogue) is not None and form.number not in {each.number for each in self.pending}:
            closed = replace(self, dialogue=None, prompt=None, question=None)
            return closed.with_message(f"nothing was sent: {self.too_late(form.number)}", "warn")
        if self.question is None:
            return self
        waiting = {key_of(e) for e in self.pending}
        keys = tuple(key for key in self.question.keys if key in waiting)
        if keys == self.question.keys:
            return self
        if keys:
            return replace(self, question=replace(self.question, keys=keys))
        return replace(self, question=None).with_message(self.too_late(self.question.keys[0].number), "warn")

    def too_late(self, number: int) -> str:
        """:returns: why an escalation cannot be decided."""
        for record in self.history:
            if record.number == number:
                return f"too late: escalation {number} {outcome_words(record)}"
        return f"there is no escalation {number}"


def _words(row: Row) -> str:
    if isinstance(row, SessionInfo):
        return f"{row.number} {row.label} {row.kind} {row.state} {row.workspace}"
    texts = " ".join(text[:200] for text in row.arguments.values() if isinstance(text, str))
    return f"{row.number} {row.server}.{row.tool} {row.label} {row.rule} {row.outcome} {texts}"
