"""The banner that shows an escalation to a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ironcurtain.cli.terminal.glyphs import Glyphs
from ironcurtain.session.events import EscalationRaised
from ironcurtain.text.columns import Line, Span, cells, cut, wrap
from ironcurtain.text.display import left, one_line
from ironcurtain.view.arguments import argument_lines, is_complete

LINES = 14
"""Maximum number of lines for a call's arguments. With the rest of the banner it is about 20, which fits 80x24."""

REASON_LINES = 2
"""Maximum number of lines of the policy's reason."""

SCOPE_LINES = 4
"""Maximum number of lines on the calls that a kept approval would cover."""


@dataclass(frozen=True, slots=True)
class Pending:
    """
    A pending escalation.

    :param digest: digest of the arguments; a decision is for exactly these.
    :param expires_at: seconds since the epoch.
    :param scope: the calls that a kept approval would cover; empty if it cannot be kept.
    :param omitted: size of the arguments in bytes if they are too long for an event.
    :param calls: number of equal calls that wait for the decision.
    """

    number: int
    server: str
    tool: str
    arguments: Mapping[str, Any]
    digest: str
    rule: str
    reason: str
    expires_at: float
    scope: str = ""
    omitted: int = 0
    calls: int = 1

    @classmethod
    def of(cls, raised: EscalationRaised) -> Pending:
        """:returns: the escalation of an event."""
        return cls(
            raised.number,
            raised.server,
            raised.tool,
            raised.arguments,
            raised.digest,
            raised.rule,
            raised.reason,
            raised.expires_at,
            raised.scope,
            raised.omitted,
            raised.calls,
        )

    @property
    def name(self) -> str:
        """Server and tool, escaped."""
        return f"{one_line(self.server, 64)}.{one_line(self.tool, 64)}"


def banner(pending: Pending, now: float, width: int, glyphs: Glyphs) -> list[Line]:
    """
    :param now: seconds since the epoch.
    :param width: columns of the terminal.
    :returns: at most about 20 lines.
    """
    room = max(width - 3, 20)
    side = Span(glyphs.side, "warn")
    heading = cut(f" asks: {pending.name}", max(room - len(f"Escalation {pending.number}"), 10), glyphs.rest)
    lines: list[Line] = [(Span(f"{glyphs.top}Escalation {pending.number}", "warn"), Span(heading, "bold"))]
    if pending.omitted:
        lines.append((side, Span(f"arguments of {pending.omitted:,} bytes, too long to show here", "warn")))
    else:
        shown = argument_lines(pending.arguments, room)
        more = len(shown) - LINES + 1 if len(shown) > LINES else 0
        lines += [(side, *line) for line in shown[: len(shown) - more]]
        if more:
            lines.append((side, Span(f"and {more:,} more lines", "warn")))
    if pending.calls > 1:
        lines.append((side, Span(f"{pending.calls} equal calls", "warn")))
    lines.append((side,))
    lines += [(side, Span(text, "dim")) for text in _reason(pending, room, glyphs)]
    if pending.scope:
        lines += [(side, Span(text, "dim")) for text in _keeping(pending, room)]
    look = () if is_shown(pending, width) else (Span(f"/show {pending.number}", "key"), Span(", then ", "warn"))
    lines.append(
        (
            Span(f"{glyphs.bottom}Type ", "warn"),
            *look,
            Span(f"/approve {pending.number}", "key"),
            Span(" or ", "warn"),
            Span(f"/deny {pending.number}", "key"),
            Span(f" within {left(pending.expires_at - now)}", "warn"),
        )
    )
    return lines


def is_shown(pending: Pending, width: int, keep: bool = False) -> bool:
    """
    Whether :func:`banner` shows everything that is decided.

    :param keep: include the calls that a kept approval would cover.
    """
    room = max(width - 3, 20)
    return (
        pending.name == f"{one_line(pending.server)}.{one_line(pending.tool)}"
        and cells(f"Escalation {pending.number} asks: {pending.name}") <= room
        and not pending.omitted
        and is_complete(pending.arguments)
        and len(argument_lines(pending.arguments, room)) <= LINES
        and len(list(wrap(_why(pending), room))) <= REASON_LINES
        and (not keep or len(_kept_for(pending, room)) <= SCOPE_LINES)
    )


def _why(pending: Pending) -> str:
    return f"why: {one_line(pending.reason)} (rule {one_line(pending.rule)})"


def _kept_for(pending: Pending, room: int) -> list[str]:
    return list(wrap(f"/approve {pending.number} keep: stop asking about {one_line(pending.scope)}", room))


def _reason(pending: Pending, room: int, glyphs: Glyphs) -> list[str]:
    lines = list(wrap(_why(pending), room))
    if len(lines) > REASON_LINES:
        last = cut(" ".join(lines[REASON_LINES - 1 :]), room, glyphs.rest)
        lines = [*lines[: REASON_LINES - 1], last]
    return lines


def _keeping(pending: Pending, room: int) -> list[str]:
    """:returns: the calls that a kept approval would cover, or the command that shows them."""
    lines = _kept_for(pending, room)
    if len(lines) <= SCOPE_LINES:
        return lines
    return list(wrap(f"/approve {pending.number} keep: /show {pending.number} says for what", room))


def took(milliseconds: float) -> str:
    """:returns: a duration as ``3 ms``, ``2.5 s`` or ``3 min 12 s``."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def elapsed(seconds: float) -> str:
    """:returns: an elapsed time as ``12 s`` or ``3 min 12 s``."""
    whole = max(int(seconds), 0)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def ending(number: int, outcome: str, by: str) -> str:
    """:returns: the outcome of an escalation in words."""
    words = {
        "expired": "nobody decided in time, so the call was refused",
        "withdrawn": "withdrawn, the call no longer waits",
    }
    who = f" by {one_line(by, 64)}" if by else ""
    return f"escalation {number}: {words.get(outcome) or one_line(outcome, 20) + who}"
