"""Composes the live area for a terminal of any size. Drawing it is for the screen."""

from __future__ import annotations

from msgspec.structs import replace

from ironcurtain.escalation.decision_keys import Page
from ironcurtain.shell.messages import ApprovalRequested, BudgetReached, ProposedStep
from ironcurtain.shell.reversal import needs_own_decision
from ironcurtain.shell_screen.panel import Panel
from ironcurtain.shell_screen.question import Frame, Question
from ironcurtain.text.columns import Line, Span, cells, clip, rows, shortened, unstyled
from ironcurtain.text.display import elapsed
from ironcurtain.text.quantities import counted
from ironcurtain.view.commands import key_lines
from ironcurtain.view.steps import SCOPE, about_asked, inspected, listed, part_of

LEAST_COLUMNS, LEAST_ROWS = 20, 7
"""Of a terminal in which anything can be decided."""

NUMBERS = 6
"""Most steps that are named by their numbers."""

_KEYS = {
    "a": "allow",
    "A": "allow for session",
    "C": "allow category",
    "s": "step through",
    "x": "skip",
    "d": "deny",
    "e": "edit",
    "n": "note",
    "Enter": "inspect",
    "q": "quit",
}
"""What keys do at a plan or a step, of which each offers some."""

_BUDGET_KEYS = (("a", "go on"), ("d", "stop here"), ("q", "quit"))
_RUNNING = ("Ctrl-C interrupts",)
_WAITING = ("Ctrl-C cancels", "# note", "Esc to the shell")
_READING_KEYS = (("Space", "next page"), ("b", "page before"), ("Enter", "back"))


def live(panel: Panel, columns: int, height: int, now: float) -> Frame:
    """
    :param columns: of the terminal; ``height`` are its rows.
    :param now: in seconds of the panel's clock.
    """
    if not panel.activity.working and panel.input is None:
        return Frame()
    width = columns - 1 - len(panel.look.signs.side)
    foot, cursor = _foot(panel, width, now)
    if columns < LEAST_COLUMNS or height < LEAST_ROWS:
        small = (Span("enlarge the terminal to decide" if panel.question else unstyled(foot[-1])),)
        return _framed(panel, [small], None, columns, Frame(question=panel.question))
    foot = foot[-max(height // 2, 1) :]
    hint = rows((Span(panel.hint, "warn"),), width)[: 2 if height > 11 else 1] if panel.hint else []
    body = _body(panel, width, height - 1 - len(foot) - len(hint))
    lines = [*body.lines, *hint, *foot]
    if (panel.question is not None or panel.activity.forming) and len(lines) + 2 < height:
        lines = [*body.lines, *hint, (), *foot]
    return _framed(panel, lines, cursor, columns, body)


def _framed(panel: Panel, lines: list[Line], cursor: int | None, columns: int, shown: Frame) -> Frame:
    signs = panel.look.signs
    sides = [signs.side] * (len(lines) - 1) + [signs.bottom]
    framed = [clip((Span(side, "dim"), *line), max(columns - 1, 0)) for side, line in zip(sides, lines, strict=True)]
    last = framed[-1]
    column = cells(unstyled(last)) if cursor is None else len(signs.bottom) + cursor
    return replace(shown, lines=tuple(framed), cursor=min(column, max(columns - 1, 0)))


def _foot(panel: Panel, width: int, now: float) -> tuple[list[Line], int | None]:
    """:returns: the last rows, and where in the last one the cursor is, if not at its end."""
    if panel.input is not None:
        label = panel.input.label
        text, column = panel.input.visible(width - len(label))
        about = "Enter sends it to the agent, Esc drops it"
        return [*rows((Span(about, "dim"),), width), (Span(label, "key"), Span(text))], len(label) + column
    if panel.inspection is not None:
        return key_lines(_READING_KEYS, width), None
    if panel.question is None:
        return [_status(panel, width, now)], None
    counts = panel.look.dumb or (panel.due is not None and panel.due <= now)
    rest = [] if counts else [(Span(panel.look.signs.rest, "warn"),)]
    if panel.question.budget is not None:
        return key_lines(_BUDGET_KEYS, width, rest), None
    offered = {*panel.offer.decisions, "n", "Enter"}
    words = _KEYS if panel.question.request is not None else {**_KEYS, "a": _allowing(panel.plan.waiting)}
    return key_lines([pair for pair in words.items() if pair[0] in offered], width, rest), None


def _allowing(waiting: list[ProposedStep]) -> str:
    """:returns: what the key that allows a plan does."""
    if len(waiting) < 2:
        return "allow"
    lasting = [str(step.number) for step in waiting if needs_own_decision(step)]
    if len(lasting) > NUMBERS or len(lasting) == len(waiting):
        return "allow all, asking again before what cannot be undone"
    return f"allow all, asking again before {', '.join(lasting)}" if lasting else "allow all"


def _status(panel: Panel, width: int, now: float) -> Line:
    signs = panel.look.signs
    time = "" if panel.look.dumb else f" {elapsed(now - panel.activity.since)}"
    line: Line = (Span(f"{signs.working} ", "key"), Span(panel.activity.word + time))
    for key in _RUNNING if panel.running else _WAITING:
        longer = (*line, Span(signs.dot + key, "dim"))
        line = longer if cells(unstyled(longer)) <= width else line
    return line


def _body(panel: Panel, width: int, room: int) -> Frame:
    if panel.inspection is not None:
        return _inspection(panel, width, room)
    if panel.question is not None:
        if panel.question.budget is not None:
            return _budget(panel.question, panel.question.budget, width, room)
        if panel.question.request is not None:
            return _step(panel, panel.question, panel.question.request, width, room)
        return _plan(panel, panel.question, width, room)
    if panel.activity.forming:
        return Frame(tuple(_forming(panel, width, room)))
    text = panel.look.text(panel.record.writing)
    return Frame(tuple(rows((Span(text),), width)[-room:]) if text.strip() and room > 0 else ())


def _budget(question: Question, reached: BudgetReached, width: int, room: int) -> Frame:
    asked = f"{reached.used:,} tokens used: go on for {reached.more:,} more?"
    lines = [*rows((Span(asked, "bold"),), width), *rows((Span(f"{reached.setting} sets the limit", "dim"),), width)]
    return Frame(tuple(lines[:room]), question=question)


def _forming(panel: Panel, width: int, room: int) -> list[Line]:
    lines: list[Line] = []
    for step in panel.plan.waiting:
        lines += listed(step, (Span(f"  {step.number}  "),), width, room, panel.look)[0]
    return [(Span("Plan", "bold"),), *lines[max(len(lines) - room + 1, 0) :]][:room]


def _plan(panel: Panel, question: Question, width: int, room: int) -> Frame:
    steps = panel.plan.waiting
    selected = next((index for index, step in enumerate(steps) if step.number == panel.selected), 0)
    first = min(panel.frame.first, selected)
    lines, whole, last = _list(panel, steps, first, width, room - 1)
    while last < selected:
        first += 1
        lines, whole, last = _list(panel, steps, first, width, room - 1)
    count = f"Plan of {counted(len(steps), 'step')}"
    part = "" if (first, last) == (0, len(steps) - 1) else f"{panel.look.signs.dot}{first + 1} to {last + 1} shown, "
    more = f"{part}{panel.look.signs.arrows} and Space for others" if part else ""
    heading = rows((Span(count, "bold"), Span(more, "dim")), width)[:1]
    return Frame((*heading, *lines), 0, question, tuple(whole), first, last)


def _list(
    panel: Panel, steps: list[ProposedStep], first: int, width: int, room: int
) -> tuple[list[Line], list[ProposedStep], int]:
    """:returns: rows, the steps that are whole in them, and the index of the last step of which any is."""
    lines: list[Line] = []
    whole: list[ProposedStep] = []
    digits = max(len(str(step.number)) for step in steps)
    for index in range(first, len(steps)):
        step = steps[index]
        chosen = step.number == panel.selected
        mark = Span(panel.look.signs.chosen if chosen else "  ", "key" if chosen else "")
        begin = (mark, Span(f"{step.number:>{digits}}  "))
        entry, is_whole = listed(step, begin, width, room, panel.look)
        if len(lines) + len(entry) > room and lines:
            return lines, whole, index - 1
        lines += entry
        whole += [step] if is_whole else []
    return lines, whole, len(steps) - 1


def _step(panel: Panel, question: Question, request: ApprovalRequested, width: int, room: int) -> Frame:
    step, look = request.step, panel.look
    about = [row for line in about_asked(step, look) if line for row in rows(line, width, 2)]
    kept = [(f"{SCOPE}: ", request.scope), ("C allows: ", request.category)]
    said = [(Span(label, "dim"), Span(look.text(text).replace("\n", " "))) for label, text in kept if text]
    scope = [row for line in said for row in rows(line, width, 2)]
    rest = (Span(f"{look.signs.rest} more: Enter shows all", "warn"),)
    below = shortened([*about, *scope], max((room - 1) // 2, 1), rest)
    command, whole = part_of(step, width, max(room - 1 - len(below), 1), look)
    heading = (Span(f"Step {step.number} of {panel.plan.total}", "bold"),)
    return Frame(
        (heading, *command, *below)[:room],
        question=question,
        whole=(step,) if whole else (),
        scope_shown=len(below) == len(about) + len(scope),
    )


def _inspection(panel: Panel, width: int, room: int) -> Frame:
    assert panel.inspection is not None
    step, request = panel.inspection.step, panel.question.request if panel.question else None
    lines = inspected(step, request, width, panel.look)
    room = max(room - 1, 1)
    top = max(min(panel.inspection.top, len(lines) - room), 0)
    shown = lines[top : top + room]
    where = f"{panel.look.signs.dot}rows {top + 1} to {top + len(shown)} of {len(lines)}"
    heading = (Span(f"Step {step.number} in full", "bold"), Span(where, "dim"))
    return Frame((heading, *shown), page=Page(top, room, len(lines), width))
