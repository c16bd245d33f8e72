"""The rows of the lists."""

from __future__ import annotations

from datetime import datetime

from ironcurtain.console.commands import Section
from ironcurtain.console.state import ConsoleState, outcome_words
from ironcurtain.operations.model import EscalationView
from ironcurtain.session.model import SessionInfo
from ironcurtain.text.columns import Line, Span, Style, cells, cut, pad
from ironcurtain.text.display import ago, left, one_line
from ironcurtain.view.arguments import brief
from ironcurtain.view.escalations import tool_name

URGENT = 30.0
"""Remaining seconds at which the time is shown as a warning."""


def clock(seconds: float) -> str:
    """
    :param seconds: since the epoch.
    :returns: the time of day here.
    """
    return f"{datetime.fromtimestamp(seconds):%H:%M:%S}"


def empty(state: ConsoleState, section: Section) -> str:
    """:returns: the text of an empty list."""
    if not state.loaded:
        return "looking ..."
    if state.filter:
        return "nothing matches the filter"
    return {
        Section.WAITING: "no call waits for a decision",
        Section.SESSIONS: "no sessions: start one with 'ironcurtain start'",
        Section.HISTORY: "no decisions yet",
    }[section]


def row(each: SessionInfo | EscalationView, width: int, now: float, chosen: bool, active: bool) -> Line:
    """
    :param now: seconds since the epoch.
    :param active: whether the list has the focus.
    """
    mark = "> " if chosen else "  "
    if isinstance(each, SessionInfo):
        text, tail, style = _session(each, now), f" {each.pending} waiting" if each.pending else "", "warn"
    elif each.outcome:
        text, tail, style = _record(each), "", "dim"
    else:
        until = each.expires_at - now
        text, tail, style = _waiting(each), f" {left(until)}", "bad" if until < URGENT else "warn"
    body = mark + pad(text, max(width - cells(mark) - cells(tail), 0))
    if chosen and active:
        return (Span(cut(body + tail, width), "chosen"),)
    return (Span(body), Span(tail, _style(style)))


def _style(name: str) -> Style:
    return "bad" if name == "bad" else "warn" if name == "warn" else "dim"


def _session(info: SessionInfo, now: float) -> str:
    try:
        since = ago(now - datetime.fromisoformat(info.started_at).timestamp())
    except ValueError:
        since = "?"
    return f"{info.number:<3} {since:>6}  {one_line(info.state, 20):<12} {one_line(info.label, 100)}"


def _waiting(escalation: EscalationView) -> str:
    calls = f"{escalation.calls} times " if escalation.calls > 1 else ""
    if escalation.approvals > 1:
        calls = f"{len(escalation.approved_by)}/{escalation.approvals} approvals {calls}"
    return (
        f"{escalation.number:<3} {calls}{tool_name(escalation.server, escalation.tool)} {brief(escalation.arguments)}"
    )


def _record(escalation: EscalationView) -> str:
    name = tool_name(escalation.server, escalation.tool)
    return f"{escalation.number:<3} {clock(escalation.closed_at)} {name} {outcome_words(escalation)}"
