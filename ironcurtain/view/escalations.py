"""Escalations, what became of them, and kept approvals as lines, safe for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ironcurtain.escalation.model import Outcome
from ironcurtain.operations.model import EscalationView, PermissionView
from ironcurtain.policy.reversal import undo_words
from ironcurtain.session.events import EscalationRaised
from ironcurtain.text.columns import Line, Span, Style, unstyled, wrap
from ironcurtain.text.display import ago, one_line
from ironcurtain.text.quantities import noun
from ironcurtain.view.arguments import SHOWN, diff_lines, full_lines, is_complete, key_lines, size, value_line
from ironcurtain.view.forms import form_rows

WHOLE_LIMIT = 4000
"""Maximum size in characters of an escalation that a list shows completely (some two screens)."""

LIST_LIMIT = 64_000
"""Maximum total size in characters of escalations that one list shows completely."""

LIST_ROWS = 200
"""Maximum number of escalations in a list, and of arguments of one that is not shown completely."""

WIDE = 1_000_000
"""Width of a list: the terminal wraps its lines, so that they can be copied."""

CHANGES: Line = (Span("changes what is there now:", "dim"),)
"""Stands before a diff."""

NAME_LIMIT, VALUE_LIMIT, REASON_LIMIT = 64, 200, 1000
"""Maximum number of characters of a name, a value and a reason of an escalation that is not shown completely."""


def tool_name(server: str, tool: str, limit: int | None = NAME_LIMIT) -> str:
    """
    :param limit: most characters of each part.
    :returns: both, escaped.
    """
    return f"{one_line(server, limit)}.{one_line(tool, limit)}"


class Question(NamedTuple):
    """
    What people are asked, for every front end.

    :param brief: one line for each argument, or all of a form.
    :param full: the arguments that do not fit there.
    :param change: how a file changes that is there now.
    :param complete: whether ``brief`` and ``full`` have everything.
    :param undo: whether the call can be undone; empty for a form.
    """

    brief: list[Line]
    full: list[Line]
    change: list[Line]
    complete: bool
    undo: str

    @property
    def asked(self) -> list[Line]:
        """The arguments, or the form, from begin to end."""
        return [*self.brief, *self.full]


def question(
    asked: EscalationView | EscalationRaised, width: int, limit: int | None = SHOWN, change: int | None = None
) -> Question:
    """
    :param width: columns.
    :param limit: most characters shown of one argument; ``None``: all.
    :param change: most lines shown of the change of a file; ``None``: all.
    """
    diff = [CHANGES, *diff_lines(asked.diff, change, indent="  ")] if asked.diff else []
    if asked.form is not None:
        return Question([(Span(row),) for row in form_rows(asked.form, width)], [], diff, True, "")
    brief = key_lines(asked.arguments, width)
    full = full_lines(asked.arguments, width, limit)
    return Question(brief, full, diff, is_complete(asked.arguments), undo_words(asked.undo))


def why(asked: EscalationView | EscalationRaised, reason: int | None = None, rule: int | None = None) -> str:
    """
    :param reason: most characters of the reason, as ``rule`` is of the rule's name.
    :returns: why people are asked.
    """
    return f"why: {one_line(asked.reason, reason)} (rule {one_line(asked.rule, rule)})"


def session_words(asked: EscalationView | PermissionView, limit: int = 80) -> str:
    """:returns: from which session it comes, with at most so many characters of that one's label; escaped."""
    return f"session {asked.session}, {one_line(asked.label, limit)}"


def approvals_words(asked: EscalationView | EscalationRaised) -> str:
    """:returns: whose approval it has and still needs, escaped; empty if one approval is enough."""
    if asked.approvals == 1:
        return ""
    if not asked.approved_by:
        return f"needs the approvals of {asked.approvals} people"
    names = " and ".join(one_line(name, NAME_LIMIT) for name in asked.approved_by)
    return f"approved by {names}; needs another person's approval, too"


class Listing(NamedTuple):
    """
    A list of escalations.

    :param lines: for people.
    :param whole: the pending ones that the lines show completely.
    """

    lines: list[str]
    whole: list[EscalationView]


def listing(views: Iterable[EscalationView], now: float) -> Listing:
    """
    Render escalations with their arguments, as far as they are readable in a list; of the others, what is missing, and
    the command that shows it.

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


def whole_question(view: EscalationView, now: float) -> list[Line]:
    """
    :param now: seconds since the epoch.
    :returns: a complete escalation, with its remaining time or its outcome.
    """
    shown = question(view, WIDE, None, WHOLE_LIMIT)
    lines = [(Span("   "), *line) for line in (*shown.asked, *shown.change)]
    about = ((Span(text, "dim"),) for text in _why(view, why(view)))
    return [(Span(_heading(view, now, None), "bold"),), *lines, *about]


def whole_lines(view: EscalationView, now: float) -> list[str]:
    """:returns: the same without styles."""
    return [unstyled(line) for line in whole_question(view, now)]


def how_to_approve(view: EscalationView, program: str = "ironcurtain ") -> str:
    """:returns: the line below a complete escalation: how to approve it by its digest, or to fill in its form."""
    if view.form is not None:
        return f"to fill it in: {program}answer {view.number}; to decline: {program}deny {view.number}"
    return f"to approve exactly this: {program}approve {view.number} --digest {view.digest}"


def _part_lines(view: EscalationView, now: float) -> list[str]:
    lines, names = [_heading(view, now)], list(view.arguments)
    for name in names[: LIST_ROWS // 10]:
        lines.append(f"   {one_line(name, NAME_LIMIT)} = {value_line(view.arguments[name], VALUE_LIMIT)}")
    if (more := len(names) - LIST_ROWS // 10) > 0:
        lines.append(f"   and {more} more arguments")
    lines += _why(view, why(view, REASON_LIMIT, NAME_LIMIT), REASON_LIMIT)
    return [*lines, _missing(view)]


def _missing(view: EscalationView) -> str:
    return f"   not shown completely, {_size(view):,} characters: see 'ironcurtain escalations show {view.number}'"


def _heading(view: EscalationView, now: float, limit: int | None = NAME_LIMIT) -> str:
    over = one_line(ended_words(view.outcome, view.by), VALUE_LIMIT)
    state = over if view.outcome else f"{ago(view.expires_at - now)} left"
    calls = f", {view.calls} equal calls" if view.calls > 1 else ""
    return f"{view.number}  {tool_name(view.server, view.tool, limit)}  ({state}{calls})"


def _why(view: EscalationView, words: str, most: int | None = None) -> list[str]:
    lines = [f"   {words}", *([] if view.form is not None else [f"   {undo_words(view.undo)}"])]
    if (needed := approvals_words(view)) and not view.outcome:
        lines.append(f"   {needed}")
    if view.scope and not view.outcome:
        lines.append(f"   an approval can be kept for: {one_line(view.scope, most)}")
    return [*lines, f"   {session_words(view)}; digest {view.digest[:16]}"]


def _size(view: EscalationView) -> int:
    """:returns: about how many characters the escalation has; escaped, it may have more."""
    return size(view.arguments) + len(view.reason) + len(view.scope) + len(view.tool)


def denied_all(numbers: Sequence[int]) -> str:
    """:returns: the message after denying all."""
    return f"Denied: {', '.join(map(str, numbers))}." if numbers else "No call waits for a decision."


def decided(view: EscalationView) -> str:
    """:returns: the message after an answer."""
    if not view.outcome:
        return f"Escalation {view.number}: {approvals_words(view)}."
    kept = f" From now on nobody is asked about: {one_line(view.scope)}." if view.kept else ""
    calls = f", {view.calls} equal calls" if view.calls > 1 else ""
    return f"{view.outcome.capitalize()}: {tool_name(view.server, view.tool)} in session {view.session}{calls}.{kept}"


def permission_lines(view: PermissionView, now: float) -> Iterator[str]:
    """
    :param now: seconds since the epoch.
    :returns: the permitted calls, their age and approver.
    """
    times = "once" if view.used == 1 else f"{view.used} times"
    yield f"{view.number}  {one_line(view.scope)}"
    yield f"   kept by {one_line(view.by, NAME_LIMIT)} {ago(now - view.since)} ago, used {times}"
    yield f"   {session_words(view)}"


def permission_rows(views: Iterable[PermissionView], width: int, now: float) -> list[Line]:
    """:returns: all permitted calls, in rows of a screen."""
    texts = [text for view in views for text in permission_lines(view, now)]
    return [(Span(part),) for text in texts for part in wrap(text, width)] or [(Span("no kept approvals", "dim"),)]


def revoked(view: PermissionView) -> str:
    """:returns: the message after revoking a kept approval."""
    return f"Revoked: you are asked again about {one_line(view.scope)} in session {view.session}."


GONE = "gone"
"""The outcome of an escalation whose process is gone."""

_WORDS: Mapping[str, str] = {
    "expired": "expired, nobody decided in time",
    "withdrawn": "withdrawn, the call no longer waits",
    "unattended": "refused, nobody was there to ask",
    "too-many": "refused, too many questions wait already",
    GONE: "gone, with the process it came from",
}


def ended_words(outcome: str, by: str = "") -> str:
    """
    :param by: who decided, if anybody did.
    :returns: an outcome in words; not escaped.
    """
    return _WORDS.get(outcome, f"{outcome} by {by}" if by else outcome)


def outcome_words(record: EscalationView) -> str:
    """:returns: what became of an escalation, after its number or name; escaped."""
    verb = {"expired": "", GONE: "is "}.get(record.outcome, "was ")
    words = one_line(ended_words(record.outcome, record.by or "somebody"), VALUE_LIMIT)
    return f"{verb}{words}{', and kept' if record.kept else ''}"


def outcome_of_all(outcome: Outcome, results: Mapping[int, EscalationView | str]) -> tuple[str, Style]:
    """
    Summarise decisions that were made together.

    :param results: by number the decided escalations, or the reason of the failure.
    :returns: a summary, and its style.
    """
    failed = [f"{number} ({why})" for number, why in results.items() if isinstance(why, str)]
    style: Style = "good" if outcome in (Outcome.APPROVED, Outcome.ANSWERED) else "bad"
    match list(results.values()):
        case [str(why)]:
            return why, "warn"
        case [EscalationView(outcome="") as waiting]:
            return f"escalation {waiting.number} {approvals_words(waiting)}", "warn"
        case [EscalationView() as record]:
            return f"escalation {record.number} {outcome_words(record)}", style
    words = f"{len(results) - len(failed)} {outcome}"
    if half := [n for n, record in results.items() if isinstance(record, EscalationView) and not record.outcome]:
        need = noun(len(half), "needs", "need")
        words += f", of which {', '.join(map(str, half))} {need} another person's approval, too"
    if not failed:
        return words, style
    return f"{words}; {len(failed)} failed: {', '.join(failed)}", "warn"
