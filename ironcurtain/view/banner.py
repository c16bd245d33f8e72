"""The banner that shows an escalation to a person."""

from __future__ import annotations

from typing import NamedTuple

from ironcurtain.session.events import EscalationRaised
from ironcurtain.text.columns import Line, Span, brief_rows, cells, clip, cut, shortened, wrap
from ironcurtain.text.display import left, one_line
from ironcurtain.view.escalations import approvals_words, question, tool_name, why
from ironcurtain.view.look import Signs

LINES = 14
"""Maximum number of lines for a call's arguments, if they are whole in them."""

PART_LINES = 6
"""Number of lines for arguments that have to be opened; with all else, such a banner fits 80x24."""

CHANGE_LINES = 6
"""Maximum number of lines of a change of a file; the arguments have all of it."""

REASON_LINES = 2
"""Maximum number of lines of the policy's reason, so that the arguments stay on a screen of 24 rows."""

SCOPE_LINES = 4
"""Maximum number of lines on the calls that a kept approval would cover."""


class Banner(NamedTuple):
    """
    An escalation as it is shown.

    :param lines: at most about 20.
    :param whole: whether they show everything that is decided.
    :param scope: whether they show all calls that a kept approval would cover, too.
    """

    lines: list[Line]
    whole: bool
    scope: bool


def banner(asked: EscalationRaised, now: float, width: int, signs: Signs) -> Banner:
    """
    :param now: seconds since the epoch.
    :param width: columns of the terminal.
    """
    room = max(width - 3, 20)
    number, name = f"Escalation {asked.number}", tool_name(asked.server, asked.tool)
    shown = question(asked, room, change=CHANGE_LINES)
    # One more if the arguments leave it, so that fewer calls have to be opened.
    reason_lines = REASON_LINES + (len(shown.asked) < LINES)
    whole = (
        name == tool_name(asked.server, asked.tool, None)
        and cells(f"{number} asks: {name}") <= room
        and not asked.omitted
        and shown.complete
        and len(shown.asked) <= LINES
        and len(list(wrap(why(asked), room))) <= reason_lines
    )
    if asked.omitted:
        lines = [_warning(f"arguments of {asked.omitted:,} bytes, too long to show here")]
    else:
        most = LINES if len(shown.asked) <= LINES else PART_LINES
        lines = shortened(shown.asked, most, _warning(f"and {len(shown.asked) - most + 1:,} more lines"))
    lines += [clip(line, room) for line in shown.change]
    if asked.calls > 1:
        lines.append(_warning(f"{asked.calls} equal calls"))
    if needed := approvals_words(asked):
        lines.append(_warning(needed))
    said = brief_rows(why(asked), room, reason_lines, signs.rest)
    said += [cut(shown.undo, room, signs.rest)] if shown.undo else []
    kept = list(wrap(f"/approve {asked.number} keep: stop asking about {one_line(asked.scope)}", room))
    if asked.scope and whole:
        elsewhere = f"/approve {asked.number} keep: /show {asked.number} says for what"
        said += kept if len(kept) <= SCOPE_LINES else wrap(elsewhere, room)
    lines += [(), *((Span(text, "dim"),) for text in said)]
    look = () if whole or asked.form is not None else (Span(f"/show {asked.number}", "key"), Span(", then ", "warn"))
    answers = (
        Span(f"{signs.bottom}Type ", "warn"),
        *look,
        Span(f"/{'approve' if asked.form is None else 'answer'} {asked.number}", "key"),
        Span(" or ", "warn"),
        Span(f"/deny {asked.number}", "key"),
        Span(f" within {left(asked.expires_at - now)}", "warn"),
    )
    called = cut(f" asks: {name}", max(room - len(number), 10), signs.rest)
    heading = (Span(f"{signs.top}{number}", "warn"), Span(called, "bold"))
    framed = [heading, *((Span(signs.side, "warn"), *line) for line in lines), answers]
    return Banner(framed, whole, whole and len(kept) <= SCOPE_LINES)


def _warning(text: str) -> Line:
    return (Span(text, "warn"),)
