"""A step in words: what its command can do, what the policy says, why the model wants it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from ironcurtain.command_rules import Risk
from ironcurtain.policy.reversal import undo_words
from ironcurtain.policy.verdict import Reversal
from ironcurtain.shell.messages import ApprovalRequested, ProposedStep
from ironcurtain.text.columns import Line, Span, Style, fitting, indented, rows, shortened
from ironcurtain.text.display import has_hidden_text, json_line, one_line
from ironcurtain.view.arguments import diff_lines
from ironcurtain.view.events import TEXT_LIMIT
from ironcurtain.view.look import Look

LISTED_ROWS = 6
"""Most rows of a command in a list."""

PURPOSE_ROWS = 3
"""Most rows of what is said about a step in a list."""

RISKS: dict[Risk, tuple[str, Style]] = {
    Risk.READ: ("only reads", "good"),
    Risk.WRITE_INSIDE: ("writes in this directory", ""),
    Risk.WRITE_OUTSIDE: ("writes outside this directory", "warn"),
    Risk.NETWORK: ("uses the network", "warn"),
    Risk.PRIVILEGE: ("runs as another user", "bad"),
    Risk.DESTRUCTIVE: ("destroys data", "bad"),
    Risk.UNKNOWN: ("effect unknown", "warn"),
}

NAMED, NAME = 3, 60
"""Most places that are named, and most characters of each."""

SCOPE = "A allows until this session ends"
"""Stands before what an approval for the session covers."""

_VERDICTS: dict[str, tuple[str, Style]] = {
    "allow": ("allowed", "good"),
    "escalate": ("needs your approval", "warn"),
    "deny": ("denied by policy", "bad"),
}


@lru_cache(128)  # a plan is drawn again with each key and each second
def command_rows(command: str, width: int, look: Look) -> tuple[Line, ...]:
    """
    A command exactly as it is: each row that ends without a line end has a sign at its end.

    :param width: columns of a row.
    """
    return tuple(
        (Span(part, "bold"), *((Span(sign, "dim"),) if sign else ()))
        for line in look.text(command).split("\n")
        for part, sign in _cut(line, width, look)
    )


def _cut(line: str, width: int, look: Look) -> Iterator[tuple[str, str]]:
    width, start = max(width, 4), 0
    while fitting(line, start, width) < len(line):
        end = max(fitting(line, start, width - 1), start + 1)
        space = line.rfind(" ", start, end) + 1
        end = space if space - start > (end - start) // 4 else end
        yield line[start:end], look.signs.continued
        start = end
    yield line[start:], ""


def about_asked(step: ProposedStep, look: Look) -> tuple[Line, Line]:
    """:returns: what a step that is asked about does, and whether that can be undone; why, and what it is for."""
    undo = "" if step.undo == Reversal.READS else undo_words(step.undo)
    reason = f"asked because {look.brief(step.reason, TEXT_LIMIT)}" if step.reason else ""
    why = (Span(reason, "dim"), Span(look.brief(step.purpose, TEXT_LIMIT), "dim"))
    return _dotted((_risk(step, look), _hidden(step), Span(undo, "dim")), look), _dotted(why, look)


def risk_line(step: ProposedStep, look: Look, *, brief: bool) -> Line:
    """
    :param brief: leave out a verdict that is no denial.
    :returns: risk and verdict, and what cannot be seen in the command.
    """
    verdict = () if brief and step.decision != "deny" else (_verdict(step, look),)
    return _dotted((_risk(step, look), *verdict, _hidden(step)), look)


def _dotted(parts: Iterable[Span], look: Look) -> Line:
    """:returns: the parts that are not empty, with dots between them."""
    line: Line = ()
    for part in parts:
        if part.text:
            line = (*line, Span(look.signs.dot, "dim"), part) if line else (part,)
    return line


def _risk(step: ProposedStep, look: Look) -> Span:
    """:returns: the risk of a step, with the places where it changes something."""
    risk, style = RISKS[step.risk]
    shown, more = step.where[:NAMED], len(step.where) - NAMED
    names = ", ".join(look.brief(one_line(name), NAME) for name in shown) + (f" and {more} more" if more > 0 else "")
    return Span(f"{risk}: {names}" if names else risk, style)


def _verdict(step: ProposedStep, look: Look) -> Span:
    return Span(*_VERDICTS.get(step.decision, (look.brief(step.decision, 20), "warn")))


def _hidden(step: ProposedStep) -> Span:
    text = step.command + step.diff
    is_hidden = has_hidden_text(text) or "\r" in text
    return Span("hidden characters, shown as \\x..", "bad") if is_hidden else Span("")


def listed(step: ProposedStep, first: Line, width: int, most: int, look: Look) -> tuple[list[Line], bool]:
    """
    A step in a list.

    :param first: stands before the first row; the others are indented as much.
    :param most: rows that there are for it.
    :returns: its rows, and whether the command is whole in them.
    """
    room = width - sum(len(span.text) for span in first)
    # Whether it can be undone if an approval of the plan approves it; Enter shows why not.
    asked = step.decision == "escalate" and step.undo != Reversal.READS
    undo = undo_words(step.undo).partition(":")[0] if asked else ""
    why = look.brief(step.reason if step.decision == "deny" and step.reason else step.purpose, TEXT_LIMIT)
    risk, decisive = _risk(step, look), (_verdict(step, look), _hidden(step))
    rest = (Span(undo, "dim"), Span(why, "dim"))
    about = rows(_dotted((risk, *decisive, *rest), look), room)
    if len(about) > PURPOSE_ROWS:  # the places and the purpose may be cut, and nothing else
        about = rows(_dotted((*decisive, risk, *rest), look), room)
        about = shortened(about, PURPOSE_ROWS, (Span(look.signs.rest, "dim"),))
    shown, whole = part_of(step, room, max(min(LISTED_ROWS, most - len(about)), 1), look)
    return indented([*shown, *about][:most], first), whole and len(shown) <= most


def all_of(step: ProposedStep, width: int, look: Look) -> list[Line]:
    """:returns: the rows of all that a step does: its command, or how it changes a file."""
    changes = [row for line in diff_lines(step.diff) for row in rows(line, width)]
    return [*command_rows(step.command, width, look), *changes]


def part_of(step: ProposedStep, width: int, most: int, look: Look) -> tuple[list[Line], bool]:
    """:returns: the first rows of what a step does, and whether that is all."""
    whole = all_of(step, width, look)
    left = len(whole) - most + 1
    shown = shortened(whole, most, (Span(f"{look.signs.rest} {left} more rows: Enter shows all", "warn"),))
    return shown, len(whole) <= most


def inspected(step: ProposedStep, request: ApprovalRequested | None, width: int, look: Look) -> list[Line]:
    """:returns: everything about a step, its command first."""
    lines = [*all_of(step, width, look), (), *rows(risk_line(step, look, brief=False), width)]
    said = [("purpose", step.purpose), ("rule", step.rule), ("reason", step.reason), ("undo", undo_words(step.undo))]
    said[0:0] = [
        ("where", ", ".join(step.where)),
        ("only", json_line(step.arguments["only"]) if "only" in step.arguments else ""),
    ]
    if request is not None:
        said += [(SCOPE, request.scope), ("C allows", request.category)]
    for label, text in said:
        for part in look.text(text).split("\n") if text.strip() else ():
            lines += rows((Span(f"{label}: ", "dim"), Span(part)), width, 2)
    return lines
