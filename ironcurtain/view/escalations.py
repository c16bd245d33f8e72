"""Escalations and kept approvals in lines for people, safe for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ironcurtain.operations.model import EscalationView, PermissionView
from ironcurtain.session.events import EscalationRaised
from ironcurtain.text.columns import unstyled
from ironcurtain.text.display import ago, json_line, one_line
from ironcurtain.view.arguments import argument_lines

WHOLE_LIMIT = 4000
"""Most characters of an escalation that a list shows whole (some two screens)."""

LIST_LIMIT = 64_000
"""Most characters of escalations that one list shows whole."""

LIST_ROWS = 200
"""Most escalations that a list names, and most arguments of one that it does not show whole."""

WIDE = 1_000_000
"""Columns of a list: its lines are broken by the terminal, so that they can be copied."""

NAME_LIMIT, VALUE_LIMIT, REASON_LIMIT = 64, 200, 1000
"""Most characters of a name, of a value, and of the reason, where an escalation is not shown whole."""


def tool_name(server: str, tool: str, limit: int | None = NAME_LIMIT) -> str:
    """
    :param limit: most characters of each part.
    :returns: both, escaped.
    """
    return f"{one_line(server, limit)}.{one_line(tool, limit)}"


def why(asked: EscalationView | EscalationRaised, reason: int | None = None, rule: int | None = None) -> str:
    """
    :param reason: most characters of the reason, as ``rule`` is of the rule's name.
    :returns: why people are asked.
    """
    return f"why: {one_line(asked.reason, reason)} (rule {one_line(asked.rule, rule)})"


class Listing(NamedTuple):
    """
    A list of escalations.

    :param lines: for people.
    :param whole: those that wait and of which the lines show everything.
    """

    lines: list[str]
    whole: list[EscalationView]


def listing(views: Iterable[EscalationView], now: float) -> Listing:
    """
    Escalations with all that they would do, as far as that can be read in a list; of the others what is missing, and
    how to see it.

    :param now: seconds since the epoch.
    """
    lines, whole, room, more = list[str](), list[EscalationView](), LIST_LIMIT, 0
    for index, view in enumerate(views):
        part = whole_lines(view, now) if _size(view) <= min(WHOLE_LIMIT, room) else []
        length = sum(map(len, part))
        if part and length <= min(WHOLE_LIMIT, room):
            whole += [] if view.outcome else [view]
        elif index < LIST_ROWS:
            part = _part_lines(view, now) if room > 0 else [_heading(view, now), _missing(view)]
            length = sum(map(len, part))
        else:
            more += 1
            continue
        lines += ["", *part] if lines else part
        room -= length
    return Listing([*lines, "", f"and {more} more: --json shows them all"] if more else lines, whole)


def whole_lines(view: EscalationView, now: float) -> list[str]:
    """
    :param now: seconds since the epoch.
    :returns: all that an escalation would do, and until when it waits or what became of it.
    """
    lines = [_heading(view, now, None)]
    lines += [f"   {unstyled(line)}" for line in argument_lines(view.arguments, WIDE, None)]
    return lines + _why(view, why(view))


def how_to_approve(view: EscalationView, program: str = "ironcurtain ") -> str:
    """:returns: the line below an escalation that was shown whole: who has read down to it knows the digest."""
    return f"to approve exactly this: {program}approve {view.number} --digest {view.digest}"


def _part_lines(view: EscalationView, now: float) -> list[str]:
    lines, names = [_heading(view, now)], list(view.arguments)
    for name in names[: LIST_ROWS // 10]:
        value = view.arguments[name]
        text = one_line(value, VALUE_LIMIT) if isinstance(value, str) else json_line(value, VALUE_LIMIT)
        lines.append(f"   {one_line(name, NAME_LIMIT)} = {text}")
    if (more := len(names) - LIST_ROWS // 10) > 0:
        lines.append(f"   and {more} more arguments")
    lines += _why(view, why(view, REASON_LIMIT, NAME_LIMIT), REASON_LIMIT)
    return [*lines, _missing(view)]


def _missing(view: EscalationView) -> str:
    return f"   not shown whole, {_size(view):,} characters: 'ironcurtain escalations show {view.number}' shows it all"


def _heading(view: EscalationView, now: float, limit: int | None = NAME_LIMIT) -> str:
    state = f"{ago(view.expires_at - now)} left"
    if view.outcome:
        state = f"{view.outcome}{f' by {one_line(view.by, NAME_LIMIT)}' if view.by else ''}"
    calls = f", {view.calls} equal calls" if view.calls > 1 else ""
    return f"{view.number}  {tool_name(view.server, view.tool, limit)}  ({state}{calls})"


def _why(view: EscalationView, words: str, most: int | None = None) -> list[str]:
    lines = [f"   {words}"]
    if view.scope and not view.outcome:
        lines.append(f"   an approval can be kept for: {one_line(view.scope, most)}")
    return [*lines, f"   session {view.session}, {one_line(view.label, 80)}; digest {view.digest[:16]}"]


def _size(view: EscalationView) -> int:
    """:returns: about how many characters the escalation has; escaped, it may have more."""
    arguments = msgspec.json.encode(view.arguments).decode()
    return len(arguments) + len(view.reason) + len(view.scope) + len(view.tool)


def denied_all(numbers: Sequence[int]) -> str:
    """:returns: what denying all that waits did."""
    return f"Denied: {', '.join(map(str, numbers))}." if numbers else "Nothing waits for a decision."


def decided(view: EscalationView) -> str:
    """:returns: what a decision did."""
    kept = f" From now on nobody is asked about: {scope_words(view.scope)}." if view.kept else ""
    calls = f", {view.calls} equal calls" if view.calls > 1 else ""
    return f"{view.outcome.capitalize()}: {tool_name(view.server, view.tool)} in session {view.session}{calls}.{kept}"


def permission_lines(view: PermissionView, now: float) -> Iterator[str]:
    """
    :param now: seconds since the epoch.
    :returns: what nobody is asked about, since when, and who said so.
    """
    times = "once" if view.used == 1 else f"{view.used} times"
    yield f"{view.number}  {scope_words(view.scope)}"
    yield f"   kept by {one_line(view.by, NAME_LIMIT)} {ago(now - view.since)} ago, used {times}"
    yield f"   session {view.session}, {one_line(view.label, 80)}"


def revoked(view: PermissionView) -> str:
    """:returns: what revoking a permission did."""
    return f"Revoked: people are asked again about {scope_words(view.scope)} in session {view.session}."


def scope_words(scope: str) -> str:
    """:returns: for which calls an approval stands, escaped; all of it, since a part would say something else."""
    return one_line(scope)
