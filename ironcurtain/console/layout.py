"""The layout of the screen: turns a state and a size into lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ironcurtain.console.details import LEAST_WIDTH, Details, Text
from ironcurtain.console.rows import empty, row
from ironcurtain.console.state import ConsoleState, Question, Section, Shown, ShownEscalation, key_of
from ironcurtain.escalation.decision_keys import Page
from ironcurtain.escalation.model import Outcome
from ironcurtain.operations.model import EscalationView
from ironcurtain.text.columns import Line, Span, brief_rows, cells, clip, cut, cut_left, pad, unstyled, wrap
from ironcurtain.text.display import one_line, time_of_day
from ironcurtain.text.quantities import counted
from ironcurtain.view.commands import key_lines
from ironcurtain.view.escalations import tool_name
from ironcurtain.view.forms import sending_words
from ironcurtain.view.sessions import session_lines

WIDE = 132
"""Minimum number of columns for showing the lists beside the text, each with half of them."""

LOW = 20
"""Minimum number of rows for showing all lists; below it, only the focused one is shown."""

LEAST = 4
"""Minimum number of rows of the text for a call to count as shown: with fewer, its arguments are not visible."""

REMARK_LINES = 2
"""Maximum number of lines of the message at the foot: with more, calls of many arguments would not fit on 24 rows."""

VALUE_LINES = 6
"""Maximum number of lines of what was entered into a form, before it is sent."""

_SPARE = (Section.WAITING, Section.SESSIONS, Section.HISTORY)
"""Order in which lists get spare rows."""

_SHARES = {Section.SESSIONS: 2, Section.WAITING: 3, Section.HISTORY: 1}
"""
Rows of each list on a screen of 24 rows if the text needs all others. On a larger screen a list has more, and it can
use rows that the text does not need.
"""


class ClickTarget(msgspec.Struct, frozen=True):
    """A row that can be clicked."""

    top: int
    width: int
    section: Section
    number: int


class Frame(msgspec.Struct, frozen=True):
    """
    One frame of the screen.

    :param lines: as many as the screen has rows; none is too wide.
    :param cursor: column and row while the input line is open.
    """

    lines: tuple[Line, ...]
    shown: Shown
    targets: tuple[ClickTarget, ...] = ()
    cursor: tuple[int, int] | None = None

    def at(self, column: int, row: int) -> ClickTarget | None:
        """:returns: the target at a position, if any."""
        return next((target for target in self.targets if target.top == row and column < target.width), None)


class _Lists(msgspec.Struct):
    lines: list[Line] = msgspec.field(default_factory=list)
    targets: list[ClickTarget] = msgspec.field(default_factory=list)
    rows: list[ShownEscalation] = msgspec.field(default_factory=list)


def frame(
    state: ConsoleState, details: Details, columns: int, rows: int, now: float, who: str = "", early: bool = False
) -> Frame:
    """
    :param details: returns the text beside the lists.
    :param now: seconds since the epoch.
    :param who: the viewer's name.
    :param early: whether a key would not decide yet; a sign after the keys says so.
    """
    foot = _foot(state, columns, rows, early, True)
    room = max(rows - 1 - len(foot), 0)
    if columns >= WIDE and not (state.aside or (state.opened and state.session is not None)):
        body, lists, shown = _beside(state, details, columns, room, now)
    else:
        body, lists, shown = _stacked(state, details, columns, room, now)
    if not shown.end:
        foot = _foot(state, columns, rows, early, False)
        room = max(rows - 1 - len(foot), 0)
    lines = [_head(state, columns, now, who), *body[:room], *[()] * (room - len(body)), *foot][:rows]
    lines += [()] * (rows - len(lines))
    cursor = None
    if state.prompt is not None and rows > 1:
        at = rows - len(foot) + next(n for n, line in enumerate(foot) if line and line[0].style == "key")
        cursor = (min(cells(unstyled(_prompt(state.prompt, columns))), columns - 1), at)
    return Frame(tuple(clip(line, columns) for line in lines), shown, tuple(lists.targets), cursor)


def _head(state: ConsoleState, columns: int, now: float, who: str) -> Line:
    left = f" IronCurtain  {counted(len(state.sessions), 'session')}  {len(state.pending)} waiting"
    hidden = len(state.pending) - len(state.listed(Section.WAITING))
    if state.filter:
        left += f"  filter: {state.filter}" + (f" ({hidden} waiting hidden)" if hidden else "")
    right = f" {one_line(who, 30)}  {time_of_day(now)} "
    if columns < cells(left) + cells(right):
        right = f" {time_of_day(now)} "
    return (Span(pad(left, max(columns - cells(right), 0)) + right, "title"),)


def _foot(state: ConsoleState, columns: int, rows: int, early: bool, scrolls: bool) -> list[Line]:
    """:param scrolls: whether there is more text than fits."""
    text, style = state.message
    more = [("PgUp" if state.followed and not state.aside else "PgDn", "more")] if scrolls else []

    def said(parts: Iterable[str]) -> list[Line]:
        return [(Span(f" {part}", style),) for part in parts]

    if state.prompt is not None:
        # Of a form, the end says which field is asked for.
        asked = said([*wrap(text, max(columns - 1, 1))][-REMARK_LINES if state.dialogue else 0 :] if text else [])
        form = [("Enter", "next"), ("/back", ""), ("/decline", ""), ("/cancel", "")]
        keys = [("Enter", "run")] if state.dialogue is None else form
        return [*asked, _prompt(state.prompt, columns), *_keys([*keys, ("Esc", "leave it")], columns)]
    most = VALUE_LINES if state.dialogue is not None else REMARK_LINES if state.question is None else 1
    most = most if rows >= LOW else 1
    remark = said(brief_rows(text, max(columns - 1, 1), most))
    if state.question is not None:
        offered = [("y", "yes"), ("Esc", "no"), *more, ("/", "command"), *([("…", "")] if early else [])]
        return [*_asked(state, state.question, columns), *(remark if text else []), *_keys(offered, columns)]
    names = [*_offered(state), *more, ("/", "command"), ("?", "help"), ("q", "quit")]
    lines = _keys(names, columns)
    if state.lacking and rows >= LOW:
        lacking = brief_rows(" ".join(state.lacking), max(columns - 1, 1), REMARK_LINES)
        remark = [*((Span(f" {part}", "warn"),) for part in lacking), *(remark if text else [])]
    if len(state.listed(state.section)) > 1 and not (state.opened or state.aside):
        lines = roomy if len(roomy := _keys([("j k", "choose"), *names], columns)) == 1 else lines
    return [*remark, *(lines if rows >= LOW else lines[:2])]


def _offered(state: ConsoleState) -> list[tuple[str, str]]:
    """:returns: the keys that do something now, besides those that always do."""
    if state.help or state.permitted:
        return [("Esc", "close")]
    if state.opened:
        return [("m", "message"), *([("t", "attach")] if state.attaches else []), ("Esc", "back")]
    keys: list[tuple[str, str]] = []
    listed, chosen = state.listed(state.section), state.escalation
    if state.section is Section.WAITING and chosen in listed and chosen is not None:
        keys.append(("a", "approve" if chosen.form is None else "fill in"))
        keys += [*([("A", "keep")] if chosen.scope else []), ("d", "deny")]
    if state.section is Section.SESSIONS and state.session is not None:
        keys.append(("Enter", "open"))
    return [*keys, ("Tab", "lists")]


def _asked(state: ConsoleState, question: Question, columns: int) -> list[Line]:
    """:returns: all that would be decided, at any length: a question that does not fit cannot be answered."""
    chosen, scope = state.escalation, list[str]()
    verb = "Approve" if question.outcome is Outcome.APPROVED else "Deny"
    if question.outcome is Outcome.ANSWERED and chosen is not None and chosen.form is not None:
        verb = sending_words(chosen.form)
    what = ", ".join(str(key.number) for key in question.keys)
    if question.every:
        which = "that you read" if verb == "Approve" else "that wait"
        what = f"all {len(question.keys)} {which}: {what}"
    elif chosen is not None:
        what += f", {tool_name(chosen.server, chosen.tool)}"
        if question.keep:
            what += f", and stop asking in session {chosen.session} about"
            scope = [f"  {part}" for part in wrap(one_line(chosen.scope), max(columns - 4, 1))]
    asked = [*wrap(f"{verb} {what}", max(columns - 2, 1)), *scope]
    if len(asked) > 1 or cells(asked[0]) + len(" ? y/Esc") > columns:
        return [(Span(f" {line}", "warn"),) for line in (*asked, "y/Esc?")]
    return [(Span(f" {asked[0]}? y/Esc", "warn"),)]


def _prompt(text: str, columns: int) -> Line:
    return (Span(f" {cut_left(text, columns - 2, '')}", "key"),)


def _keys(keys: Sequence[tuple[str, str]], columns: int) -> list[Line]:
    return [(Span(" "), *line) for line in key_lines(keys, columns - 1)]


Body = tuple[list[Line], _Lists, Shown]


def _stacked(state: ConsoleState, details: Details, columns: int, room: int, now: float) -> Body:
    text, lists = details.text(state, columns - 1, now), _Lists()
    shares = dict[Section, int]()
    if state.opened and state.session is not None and not state.aside:
        facts = session_lines(state.session, state.turns, columns - 2, now)[: max(room // 2, 1)]
        heading = _rule(f"SESSION {state.session.number}", columns, True)
        lists = _Lists([heading, *((Span(" "), *line) for line in facts)])
    elif not state.aside and room < LOW - 4:
        shares = {state.section: min(max(room // 4, 1), 4)}
    elif not state.aside:
        shares = {section: _SHARES[section] + max(room - 21, 0) // 6 for section in Section}
        # What is chosen there is read whole before it is decided on; a session's activity is only followed.
        shares[Section.SESSIONS] += 3 if state.section is Section.SESSIONS else 0
    lists = _lists(state, shares, columns, room - len(text.lines) - 1, now) if shares else lists
    panel, shown = _panel(state, text, columns, room - len(lists.lines), lists)
    return [*lists.lines, *panel], lists, shown


def _beside(state: ConsoleState, details: Details, columns: int, room: int, now: float) -> Body:
    width = columns // 2
    shares = {section: max(room // (2 if section is Section.WAITING else 4) - 1, 1) for section in Section}
    lists = _lists(state, shares, width, room, now)
    text = details.text(state, columns - width - 2, now)
    panel, shown = _panel(state, text, columns - width - 1, room, lists)
    body: list[Line] = []
    for at in range(room):
        left = clip(lists.lines[at], width) if at < len(lists.lines) else ()
        gap = Span(" " * (width - sum(cells(span.text) for span in left)))
        body.append((*left, gap, Span("│", "dim"), *(panel[at] if at < len(panel) else ())))
    return body, lists, shown


def _lists(state: ConsoleState, shares: Mapping[Section, int], width: int, room: int, now: float) -> _Lists:
    """
    :param shares: guaranteed rows of each list; unused ones go to another list.
    :param room: rows of all lists together, including headings.
    """
    needed = {section: max(len(state.listed(section)), 1) for section in shares}
    rows = {section: min(share, needed[section]) for section, share in shares.items()}
    spare = max(room - len(rows) - sum(rows.values()), 0)
    for section in _SPARE:
        if section in rows:
            more = min(needed[section] - rows[section], spare)
            rows[section], spare = rows[section] + more, spare - more
    lists = _Lists()
    for section, most in rows.items():
        _list(lists, state, section, width, most, now)
    return lists


def _list(lists: _Lists, state: ConsoleState, section: Section, width: int, most: int, now: float) -> None:
    """Add a list of at most ``most`` rows below its heading. The first one begins on the screen's second row."""
    rows = state.listed(section)
    hidden = len(rows) - most
    heading = f"{section.value.upper()} {len(rows) or ''}".strip() + (f", {hidden} not shown" if hidden > 0 else "")
    lists.lines.append(_rule(heading, width, state.section is section))
    if not rows:
        lists.lines.append((Span(f"  {empty(state, section)}", "dim"),))
        return
    numbers = [each.number for each in rows]
    chosen = state.number(section)
    at = numbers.index(chosen) if chosen in numbers else 0
    first = min(max(at - most // 2, 0), max(len(rows) - most, 0))
    for each in rows[first : first + most]:
        lists.targets.append(ClickTarget(1 + len(lists.lines), width, section, each.number))
        lists.lines.append(row(each, rows, width, now, each.number == chosen, state.section is section))
        if section is Section.WAITING and isinstance(each, EscalationView):
            lists.rows.append(key_of(each))


def _rule(heading: str, width: int, active: bool) -> Line:
    text = cut(f"── {heading} ", width) if heading else ""
    return (Span(text + "─" * (width - cells(text)), "key" if active else "dim"),)


def _panel(state: ConsoleState, text: Text, width: int, height: int, lists: _Lists) -> tuple[list[Line], Shown]:
    """The panel with the text: help, an escalation, a past decision or a session's activity."""
    page = max(height - 1, 0)
    end = max(len(text.lines) - page, 0)
    scroll = min(state.scroll, end)
    first = end - scroll if text.from_end else scroll
    part = text.lines[first : first + page]
    below = len(text.lines) - first - len(part)
    heading = text.heading + (f", {below} below" if below else "") + (f", {first} above" if first else "")
    body = [_rule(heading, width, False), *((Span(" "), *line) for line in part)][:height]
    fits = page >= LEAST and width > LEAST_WIDTH  # else each line of the text is cut
    whole = state.escalation if state.section is Section.WAITING and not state.aside and fits else None
    key, calls = (None, 1) if whole is None else (key_of(whole), whole.calls)
    part_shown = Page(first, len(part), len(text.lines), width)
    return body, Shown(tuple(lists.rows), key, calls, part_shown, text.complete, state.question, page, end)
