"""What the agent mode prints once, so that it stays in the terminal's history."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ironcurtain.shell.messages import InstructionDone, StepCompleted, StepOutcome
from ironcurtain.text.columns import Line, Span, cut
from ironcurtain.text.display import took
from ironcurtain.view.events import TEXT_LIMIT
from ironcurtain.view.look import Look
from ironcurtain.view.markdown import Markdown
from ironcurtain.view.plan import Plan
from ironcurtain.view.steps import risk_line

COMMAND_LINES, COMMAND_CHARACTERS = 20, 2000
"""How much of a command is printed; it was shown whole where it was decided on."""

RESULT_LINES, RESULT_CHARACTERS = 12, 400
"""How much is printed of what a step has to say that is no command: lines, and characters of each."""

LISTED = 60
"""Most characters of a command in the list of a plan."""

TITLE = 200
"""Most characters of an instruction that are printed."""


class Edge(Enum):
    """What stands left of a line."""

    TOP = "top"
    SIDE = "side"
    JOINT = "joint"
    BOTTOM = "bottom"
    NONE = "none"
    """Nothing: the line can be copied, and the terminal breaks it."""


@dataclass(frozen=True, slots=True)
class Printed:
    """
    A line that is printed once.

    :param indent: columns that are left free before its second row and those that follow.
    """

    line: Line
    edge: Edge = Edge.SIDE
    indent: int = 0


def title(text: str, look: Look) -> Printed:
    """:returns: the instruction that the agent works on."""
    return Printed((Span(look.brief(text, TITLE), "title"),), Edge.TOP)


def said(text: str, markdown: Markdown, look: Look) -> Printed:
    """:returns: one line of the model's."""
    line, indent = markdown.line(text, look)
    return Printed(line, indent=indent)


def notice(text: str, look: Look) -> Printed:
    """:returns: something the user should know."""
    return Printed((Span(f"! {look.brief(text, 2000)}", "warn"),), Edge.JOINT, 2)


def plan_lines(plan: Plan, heading: str, look: Look) -> list[Printed]:
    """:returns: the steps that have not begun, in a line each; none for a single one, which is printed as it begins."""
    if plan.total < 2:
        return []
    lines = [Printed((Span(heading, "bold"),))]
    for step in plan.waiting:
        number = f"  {step.number}  "
        command = look.brief(step.command, LISTED)
        line = (Span(number), Span(command), Span(look.signs.dot, "dim"), *risk_line(step, look))
        lines.append(Printed(line, indent=len(number)))
    return lines


def started(plan: Plan, number: int, look: Look) -> list[Printed]:
    """:returns: which step begins, and its command as a shell would show it."""
    step = plan.steps[number]
    purpose = look.brief(step.purpose, TEXT_LIMIT)
    lines = [Printed((Span(f"step {number} of {plan.total}", "bold"), *_after(purpose, look)), Edge.JOINT)]
    for index, line in enumerate(_commands(step.command, look)):
        lines.append(Printed((Span("> " if index else "$ ", "dim"), Span(line, "bold")), Edge.NONE))
    return lines


def words(text: str, look: Look) -> Printed:
    """:returns: what the person told the agent."""
    return Printed((Span("# ", "key"), Span(look.text(text))), Edge.JOINT, 2)


def answer(text: str, look: Look) -> Printed:
    """:returns: what the person decided."""
    return Printed((Span(look.text(text), "dim"),), Edge.JOINT)


def decided(number: int, allowed: bool, by: str, reason: str, look: Look) -> Printed:
    """:returns: a decision that was not made here."""
    words = f"step {number} {'allowed' if allowed else 'denied'} by {look.brief(by, 60)}"
    why = f": {look.brief(reason, TEXT_LIMIT)}" if reason else ""
    return Printed((Span(words + why, "good" if allowed else "bad"),), Edge.JOINT)


def result(done: StepCompleted, look: Look) -> list[Printed]:
    """:returns: what a file, a tool or an agent below has to say, which nothing else shows; of much, begin and end."""
    lines = look.text(done.output.strip("\r\n")).split("\n") if done.output.strip() else []
    more = len(lines) - RESULT_LINES
    shown = [cut(line, RESULT_CHARACTERS, look.signs.rest) for line in lines]
    if more > 0:
        half = RESULT_LINES // 2
        left_out = f"{look.signs.rest} {more:,} more lines: ironcurtain logs has all"
        shown = [*shown[:half], left_out, *shown[-half:]]
    elif shown != lines:
        shown.append(f"{look.signs.rest} ironcurtain logs has all")
    return [Printed((Span("  "), Span(line, "dim")), indent=2) for line in shown]


def completed(done: StepCompleted, look: Look) -> Printed:
    """:returns: how a step ended."""
    signs, words = look.signs, done.outcome.replace("-", " ")
    time = _after(took(done.duration_ms), look)
    reason = f": {look.brief(done.reason, TEXT_LIMIT)}" if done.reason else ""
    match done.outcome:
        case StepOutcome.DONE:
            return Printed((Span(f"{signs.done} {words}", "good"), *time), Edge.JOINT)
        case StepOutcome.FAILED | StepOutcome.INTERRUPTED | StepOutcome.TIMED_OUT:
            status = f" with status {done.exit_code}" if done.exit_code is not None else ""
            return Printed((Span(f"{signs.failed} {words}{status}{reason}", "bad"), *time), Edge.JOINT)
        case StepOutcome.DENIED:
            return Printed((Span(f"{signs.failed} step {done.step} {words}{reason}", "bad"),), Edge.JOINT)
        case _:
            return Printed((Span(f"{signs.left_out} step {done.step} {words}{reason}", "dim"),), Edge.JOINT)


def ended(done: InstructionDone, look: Look) -> list[Printed]:
    """:returns: what went wrong, if anything did, and what it took, in one line."""
    used = [f"{done.tokens_in:,} tokens in, {done.tokens_out:,} out"] if done.tokens_in or done.tokens_out else []
    if done.below_in or done.below_out:
        used.append(f"of these {done.below_in:,} and {done.below_out:,} by agents below")
    if not done.usage_known:
        used = [*used, "and more that is not known"] if used else ["the model does not say how many tokens it used"]
    if done.cost is not None:
        used.append(f"${done.cost:.2f}" if done.cost >= 1 else f"${done.cost:.4f}")
    if done.model:
        used.append(look.brief(done.model, 60))
    words = look.signs.dot.join(("stopped" if done.error else "done", *used))
    error = [Printed((Span(f"{look.signs.failed} {look.brief(done.error, 2000)}", "bad"),))] if done.error else []
    return [*error, Printed((Span(words, "dim"),), Edge.BOTTOM)]


def _after(text: str, look: Look) -> Line:
    return (Span(look.signs.dot + text, "dim"),) if text else ()


def _commands(command: str, look: Look) -> list[str]:
    shown = look.text(command[:COMMAND_CHARACTERS]).split("\n")
    lines = shown[:COMMAND_LINES]
    if len(command) > COMMAND_CHARACTERS or len(shown) > COMMAND_LINES:
        lines.append(f"{look.signs.rest} ({len(command):,} characters in all)")
    return lines
