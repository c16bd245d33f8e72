"""What the agent mode prints once, so that it stays in the terminal's history."""

from __future__ import annotations

from enum import Enum

import msgspec

from ironcurtain.shell.messages import InstructionDone, StepCompleted, StepDecided, StepOutcome
from ironcurtain.shell.reported_plan import Plan
from ironcurtain.text.columns import Line, Span, Style, cut
from ironcurtain.text.display import took
from ironcurtain.view.events import TEXT_LIMIT
from ironcurtain.view.look import Look
from ironcurtain.view.markdown import Markdown
from ironcurtain.view.steps import risk_line

COMMAND_LINES, COMMAND_CHARACTERS = 20, 2000
"""How much of a command is printed; it was shown whole where it was decided on."""

RESULT_LINES, RESULT_CHARACTERS = 12, 400
"""How much is printed of what a step has to say that is no command: lines, and characters of each."""

LISTED = 60
"""Most characters of a command in the list of a plan."""

TITLE = 200
"""Most characters of an instruction that are printed."""

WRITING_LIMIT = 4000
"""Most characters of a line that the model has not ended, before it is printed all the same."""

SAID_LIMIT = 100_000
"""Most characters of the model's words that are kept, to tell whether its last words were shown already."""


class Edge(Enum):
    """What stands left of a line."""

    TOP = "top"
    SIDE = "side"
    JOINT = "joint"
    BOTTOM = "bottom"
    NONE = "none"
    """Nothing: the line can be copied, and the terminal breaks it."""


class Printed(msgspec.Struct, frozen=True):
    """
    A line that is printed once.

    :param indent: columns that are left free before its second row and those that follow.
    """

    line: Line
    edge: Edge = Edge.SIDE
    indent: int = 0


class StepRecord:
    """
    What is to be printed, in order.

    :ivar writing: the line that the model has not ended.
    """

    def __init__(self, look: Look) -> None:
        self.writing = ""
        self._look, self._markdown = look, Markdown()
        self._outbox: list[Printed] = []
        self._after_blank = True
        self._said = self._plan_id = ""

    def take(self) -> list[Printed]:
        """:returns: what is to be printed now, once."""
        outbox, self._outbox = self._outbox, []
        return outbox

    def begin(self, instruction: str) -> None:
        """The agent works on an instruction from now on."""
        self.end_text()
        self._markdown = Markdown()
        self._print((Span(self._look.brief(instruction, TITLE), "title"),), Edge.TOP)
        self._said, self._after_blank, self._plan_id = "", True, ""

    def say(self, text: str) -> None:
        """The model says something; its lines are printed as they end."""
        self._said = (self._said + text)[-SAID_LIMIT:]
        *lines, self.writing = (self.writing + text).split("\n")
        for line in lines:
            self._line(line)
        if len(self.writing) > WRITING_LIMIT:
            self.end_text()

    def end_text(self) -> None:
        """Print the line that the model has not ended."""
        if self.writing.strip():
            self._line(self.writing)
        self.writing = ""

    def end_part(self) -> None:
        """Something happens after which the model's words are others, even if they are the same."""
        self.end_text()
        self._said = ""

    def notice(self, text: str) -> None:
        """Something the user should know."""
        self._print((Span(f"! {self._look.brief(text, 2000)}", "warn"),), Edge.JOINT, 2)

    def plan(self, plan: Plan) -> None:
        """The steps that have not begun, in a line each; none for a single one, which is printed as it begins."""
        heading, self._plan_id = "Revised plan" if self._plan_id == plan.id else "Plan", plan.id
        self._markdown = Markdown()
        if plan.total < 2:
            return
        self._print((Span(heading, "bold"),))
        for step in plan.waiting:
            number, command = f"  {step.number}  ", self._look.brief(step.command, LISTED)
            risk = risk_line(step, self._look, brief=True)
            line = (Span(number), Span(command), Span(self._look.signs.dot, "dim"), *risk)
            self._print(line, indent=len(number))

    def started(self, plan: Plan, number: int) -> None:
        """Which step begins, and its command as a shell would show it."""
        step = plan.steps[number]
        purpose = self._after(self._look.brief(step.purpose, TEXT_LIMIT))
        self._print((Span(f"step {number} of {plan.total}", "bold"), *purpose), Edge.JOINT)
        shown = self._look.text(step.command[:COMMAND_CHARACTERS]).split("\n")
        lines = shown[:COMMAND_LINES]
        if len(step.command) > COMMAND_CHARACTERS or len(shown) > COMMAND_LINES:
            lines.append(f"{self._look.signs.rest} ({len(step.command):,} characters in all)")
        for index, line in enumerate(lines):
            self._print((Span("> " if index else "$ ", "dim"), Span(line, "bold")), Edge.NONE)

    def words(self, text: str) -> None:
        """What the person told the agent."""
        self.end_text()
        self._print((Span("# ", "key"), Span(self._look.text(text))), Edge.JOINT, 2)

    def answer(self, text: str) -> None:
        """What the person decided, where nothing else tells it."""
        self._joint(self._look.text(text), "dim")

    def decided(self, decided: StepDecided) -> None:
        """A decision that was not made here."""
        words = (
            f"step {decided.step} {'allowed' if decided.allowed else 'denied'} by {self._look.brief(decided.by, 60)}"
        )
        self._joint(words + self._why(decided), "good" if decided.allowed else "bad")

    def result(self, done: StepCompleted) -> None:
        """What a file, a tool or an agent below has to say, which nothing else shows; of much, begin and end."""
        rest = self._look.signs.rest
        lines = self._look.text(done.output.strip("\r\n")).split("\n") if done.output.strip() else []
        more = len(lines) - RESULT_LINES
        shown = [cut(line, RESULT_CHARACTERS, rest) for line in lines]
        if more > 0:
            half = RESULT_LINES // 2
            shown = [*shown[:half], f"{rest} {more:,} more lines: ironcurtain logs has all", *shown[-half:]]
        elif shown != lines:
            shown.append(f"{rest} ironcurtain logs has all")
        for line in shown:
            self._print((Span("  "), Span(line, "dim")), indent=2)

    def completed(self, done: StepCompleted) -> None:
        """How a step ended."""
        signs, words, why = self._look.signs, done.outcome.replace("-", " "), self._why(done)
        time = self._after(took(done.duration_ms))
        match done.outcome:
            case StepOutcome.DONE:
                self._joint(f"{signs.done} {words}", "good", time)
            case StepOutcome.FAILED | StepOutcome.INTERRUPTED | StepOutcome.TIMED_OUT:
                status = f" with status {done.exit_code}" if done.exit_code is not None else ""
                self._joint(f"{signs.failed} {words}{status}{why}", "bad", time)
            case StepOutcome.DENIED:
                self._joint(f"{signs.failed} step {done.step} {words}{why}", "bad")
            case _:
                self._joint(f"{signs.left_out} step {done.step} {words}{why}", "dim")

    def ended(self, done: InstructionDone) -> None:
        """The model's last words, if they are new, what went wrong, if anything did, and what it took."""
        self.end_text()
        if done.text.strip() not in self._said:
            for line in done.text.strip().split("\n"):
                self._line(line)
        if done.error:
            self._print((Span(f"{self._look.signs.failed} {self._look.brief(done.error, 2000)}", "bad"),))
        words = self._look.signs.dot.join(("stopped" if done.error else "done", *_used(done, self._look)))
        self._print((Span(words, "dim"),), Edge.BOTTOM)
        self._said = ""

    def _print(self, line: Line, edge: Edge = Edge.SIDE, indent: int = 0) -> None:
        self._outbox.append(Printed(line, edge, indent))
        self._after_blank = False

    def _joint(self, text: str, style: Style, more: Line = ()) -> None:
        self._print((Span(text, style), *more), Edge.JOINT)

    def _line(self, text: str) -> None:
        text = text.rstrip()
        if text or not self._after_blank:
            line, indent = self._markdown.line(text, self._look)
            self._print(line, indent=indent)
        self._after_blank = not text

    def _why(self, message: StepDecided | StepCompleted) -> str:
        return f": {self._look.brief(message.reason, TEXT_LIMIT)}" if message.reason else ""

    def _after(self, text: str) -> Line:
        return (Span(self._look.signs.dot + text, "dim"),) if text else ()


def _used(done: InstructionDone, look: Look) -> list[str]:
    used = [f"{done.tokens_in:,} tokens in, {done.tokens_out:,} out"] if done.tokens_in or done.tokens_out else []
    if done.below_in or done.below_out:
        used.append(f"of these {done.below_in:,} and {done.below_out:,} by agents below")
    if not done.usage_known:
        used = [*used, "and more that is not known"] if used else ["the model does not say how many tokens it used"]
    if done.cost is not None:
        used.append(f"${done.cost:.2f}" if done.cost >= 1 else f"${done.cost:.4f}")
    if done.model:
        used.append(look.brief(done.model, 60))
    return used
