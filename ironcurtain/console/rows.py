"""The rows of the lists: in columns, as many of them as the width has room for."""

from __future__ import annotations

from collections.abc import Sequence

from ironcurtain.console.state import ConsoleState, Row, Section
from ironcurtain.operations.model import EscalationView
from ironcurtain.session.model import SessionInfo
from ironcurtain.text.columns import Line, Span, Style, cells, cut, cut_left, pad
from ironcurtain.text.display import left, one_line, time_of_day
from ironcurtain.view.arguments import BRIEF, distinguishing
from ironcurtain.view.escalations import NAME_LIMIT, outcome_words, tool_name
from ironcurtain.view.sessions import age

URGENT = 30.0
"""Remaining seconds at which the time is shown as a warning."""

PEERS = 50
"""Maximum number of rows that are compared, to align them and to tell them apart."""

NARROW = 50
"""Minimum width of an escalation's row for the name of the server."""

WORKSPACE_WIDTH = 90
"""Minimum width of a session's row for its workspace."""


def empty(state: ConsoleState, section: Section) -> str:
    """:returns: the text of an empty list."""
    if not state.loaded:
        return "looking ..."
    if state.filter:
        return "nothing matches the filter"
    return {
        Section.WAITING: "no call waits for a decision",
        Section.SESSIONS: "no sessions: start one with 'ironcurtain start', or here with /start TASK",
        Section.HISTORY: "no decisions yet",
    }[section]


def row(each: Row, peers: Sequence[Row], width: int, now: float, chosen: bool, active: bool) -> Line:
    """
    :param peers: the rows of the list, for the width of columns.
    :param now: seconds since the epoch.
    :param active: whether the list has the focus.
    """
    mark = ("> " if active else "· ") if chosen else "  "
    style: Style = "warn"
    if isinstance(each, SessionInfo):
        infos = [peer for peer in peers if isinstance(peer, SessionInfo)]
        longest = max((len(_waiting(peer)) for peer in infos[:PEERS]), default=0)
        tail = f"{_waiting(each):>{longest}}"
        text = _session(each, infos, width - 2 - longest, now)
    else:
        until = each.expires_at - now
        tail = "" if each.outcome else f" {left(until)}"
        style = "bad" if until < URGENT else "warn"
        same = [peer for peer in peers[:PEERS] if isinstance(peer, EscalationView)]
        text = _escalation(each, same, width - 2 - len(tail))
    body = mark + pad(text, max(width - cells(mark) - cells(tail), 0))
    if chosen and active:
        return (Span(cut(body + tail, width), "chosen"),)
    return (Span(body), Span(tail, style))


def _waiting(info: SessionInfo) -> str:
    return f" {info.pending} waiting" if info.pending else ""


def _session(info: SessionInfo, peers: Sequence[SessionInfo], width: int, now: float) -> str:
    number = max((len(str(peer.number)) for peer in peers), default=1)
    known = f"{info.number:>{number}}  {one_line(info.state, 20):<10}  {age(info, now):>6}  "
    room, label = width - len(known), one_line(info.label, 100)
    if width < WORKSPACE_WIDTH:
        return known + label
    longest = max((cells(one_line(peer.label, 100)) for peer in peers[:PEERS]), default=0)
    share = min(longest, room * 2 // 3)
    return f"{known}{pad(label, share)}  {cut_left(one_line(info.workspace), room - share - 2)}"


def _escalation(each: EscalationView, peers: Sequence[EscalationView], width: int) -> str:
    def name_of(peer: EscalationView) -> str:
        return tool_name(peer.server, peer.tool) if width >= NARROW else one_line(peer.tool, NAME_LIMIT)

    number, session = (max(len(str(getattr(peer, name))) for peer in peers) for name in ("number", "session"))
    begin = f"{each.number:>{number}}  {f's{each.session}':<{session + 1}}  "
    if each.outcome:
        begin += f"{time_of_day(each.closed_at)}  "
    begin += f"{pad(name_of(each), min(max(cells(name_of(peer)) for peer in peers), width * 2 // 5))}  "
    if each.outcome:
        begin += f"{outcome_words(each)}  "
    elif each.approvals > 1:
        begin += f"{len(each.approved_by)}/{each.approvals} approvals  "
    if each.calls > 1 and not each.outcome:
        begin += f"{each.calls} times  "
    if each.form is not None:
        said = " ".join((each.form.host + " " + each.form.message).split())
        return cut(begin + one_line(said, BRIEF), width)
    others = [
        peer.arguments
        for peer in peers
        if peer.number != each.number and (peer.server, peer.tool) == (each.server, each.tool)
    ]
    return begin + distinguishing(each.arguments, others, width - cells(begin))
