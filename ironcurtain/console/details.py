"""The text beside the lists: an escalation with its arguments, a session's activity, or help."""

from __future__ import annotations

from typing import NamedTuple

from ironcurtain.console.state import ConsoleState, Section
from ironcurtain.operations.model import EscalationView
from ironcurtain.text.columns import Line, Span, brief_rows, indented, rows, wrap
from ironcurtain.text.display import left, one_line, time_of_day
from ironcurtain.view.arguments import size
from ironcurtain.view.banner import REASON_LINES
from ironcurtain.view.chronicle import Chronicle
from ironcurtain.view.commands import CONSOLE, Usage, help_lines
from ironcurtain.view.escalations import (
    NAME_LIMIT,
    approvals_words,
    outcome_words,
    permission_rows,
    question,
    session_words,
    tool_name,
)
from ironcurtain.view.sessions import DIGEST, head_words, sandbox

LABEL = 7
"""Columns for what a line says it is about."""

LEAST_WIDTH = 10
"""Minimum number of columns of the text."""

KEYS = (
    Usage("a  d", "approve or deny the chosen escalation, whose text was read to its end; y confirms after a second"),
    Usage("A", "approve it and stop asking about such calls, after a confirmation"),
    Usage("up down", "choose; also j and k, or the mouse"),
    Usage("Tab", "go to the next list: sessions, waiting, history"),
    Usage("PgUp PgDn", "scroll down in the text, also with Space or the wheel"),
    Usage("g G", "go to the beginning or the end of the text"),
    Usage("f", "filter what is listed"),
    Usage("Enter", "open the chosen session: what it did and used; m writes it a message, t attaches, Esc goes back"),
    Usage("Ctrl-L", "redraw the screen"),
)
"""Keys with their explanation."""


class Text(NamedTuple):
    """
    The text beside the lists.

    :param from_end: whether to show its end first.
    :param complete: whether it contains everything that a decision is about.
    """

    heading: str
    lines: list[Line]
    from_end: bool = False
    complete: bool = True


class Details:
    """:ivar activity: activity of the followed session; ``None`` if there is none."""

    def __init__(self) -> None:
        self.activity: Chronicle | None = None
        self._wrapped: tuple[list[Line], bool] = ([], True)
        self._wrapped_for: tuple[int, str, str, int, int] | None = None

    def text(self, state: ConsoleState, width: int, now: float) -> Text:
        """
        :param width: columns.
        :param now: seconds since the epoch.
        """
        width = max(width, LEAST_WIDTH)
        if state.help:
            return Text("HELP, Esc to close", help_lines((*KEYS, *CONSOLE), width))
        if state.permitted:
            return Text("PERMISSIONS, Esc to close", permission_rows(state.permissions, width, now))
        if state.section is Section.SESSIONS:
            return self._activity(state, width, now)
        chosen = state.escalation if state.section is Section.WAITING else state.record
        if chosen is None:
            hint = (Span("Calls that need a decision appear here, in full.", "dim"),)
            return Text("", [] if state.history else rows(hint, width))
        lines, complete = self._lines(chosen, width)
        return Text(_heading(chosen, now), lines, complete=complete)

    def _lines(self, escalation: EscalationView, width: int) -> tuple[list[Line], bool]:
        """:returns: :func:`escalation_lines`, kept so that a long text is not wrapped for every frame."""
        # They depend on nothing else.
        key = (escalation.number, escalation.digest, escalation.outcome, len(escalation.approved_by), width)
        if key != self._wrapped_for:
            self._wrapped, self._wrapped_for = escalation_lines(escalation, width), key
        return self._wrapped

    def _activity(self, state: ConsoleState, width: int, now: float) -> Text:
        lines = self.activity.lines(width, now) if self.activity is not None else []
        info = state.session
        if info is not None and info.head is not None:
            lines.append((Span(one_line(head_words(info.head, width)), "dim"),))
        if state.opened:
            return Text("ACTIVITY", lines, from_end=True)
        held = f", {one_line(sandbox(info), 20)}" if info is not None and sandbox(info) else ""
        return Text(f"ACTIVITY of session {state.followed}{held}" if state.followed else "", lines, from_end=True)


def escalation_lines(escalation: EscalationView, width: int) -> tuple[list[Line], bool]:
    """:returns: the agent, the reason, and the arguments, the most important first; and whether that is everything."""
    shown = question(escalation, width)
    reason = f"{one_line(escalation.rule)}: {one_line(escalation.reason)}"
    name, whole_name = (tool_name(escalation.server, escalation.tool, limit) for limit in (NAME_LIMIT, None))
    lines: list[Line] = [(Span(name, "bold"),)]
    room = max(width - LABEL, LEAST_WIDTH)
    agent = session_words(escalation, 100)
    for label, text, most in (("agent", agent, 1), ("rule", reason, REASON_LINES), ("undo", shown.undo, 1)):
        parts: list[Line] = [(Span(part, "dim"),) for part in brief_rows(text, room, most)] if text else []
        lines += indented(parts, (Span(f"{label:<{LABEL}}", "dim"),))
    if (needed := approvals_words(escalation)) and not escalation.outcome:
        lines += rows((Span(needed, "warn"),), width)
    length = size(escalation.arguments)
    digest = f"digest {escalation.digest[:DIGEST]} over all {length:,} characters"
    lines += [*shown.brief, (Span(digest, "dim"),), *shown.change]
    rest = shown.full
    if len(list(wrap(reason, room))) > REASON_LINES:
        rest += rows((Span(reason, "dim"),), width)
    if whole_name != name:
        rest += rows((Span(whole_name, "bold"),), width)
    return [*lines, *rest], shown.complete


def _heading(escalation: EscalationView, now: float) -> str:
    if escalation.outcome:
        return f"ESCALATION {escalation.number} {outcome_words(escalation)} at {time_of_day(escalation.closed_at)}"
    calls = f", {escalation.calls} equal calls" if escalation.calls > 1 else ""
    return f"ESCALATION {escalation.number}{calls}, {left(escalation.expires_at - now)} left"
