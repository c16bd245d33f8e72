"""What the terminal shows of steps that are no commands."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell.messages import PlanProposed, ProposedStep, StepCompleted, StepKind, StepOutcome, StepStarted
from ironcurtain.view.look import Look
from tests.shell_screen.doubles import PLAN, AgentMode
from tests.shell_screen.frames import begun


class ResultTests(SynchronousTestCase):
    """What steps have to say that are no commands."""

    def shown(self, kind: StepKind, output: str, look: Look | None = None) -> list[str]:
        """:returns: what the terminal shows of a step that is over."""
        mode = AgentMode(rows=60, look=look)
        begun(mode)
        step = ProposedStep(number=1, command="ask x", kind=kind)
        mode.receive(PlanProposed(plan_id=PLAN, steps=(step,), confirm=False))
        mode.receive(StepStarted(plan_id=PLAN, step=1, command="ask x", kind=kind))
        mode.receive(StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE, output=output))
        lines = mode.terminal.lines
        return [line[2:].strip() for line in lines[lines.index("$ ask x") + 1 :] if line.startswith("│ ")]

    def test_a_result_is_shown_escaped(self) -> None:
        for kind in (StepKind.TOOL, StepKind.EDIT, StepKind.AGENT):
            self.assertEqual(self.shown(kind, "one\r\n\x1b[2Jtwo\n"), ["one", "\\x1b[2Jtwo"])

    def test_of_much_begin_and_end_are_shown_and_where_the_rest_is(self) -> None:
        shown = self.shown(StepKind.TOOL, "\n".join(f"line {n}" for n in range(100)))
        self.assertEqual((shown[0], shown[-1], len(shown)), ("line 0", "line 99", 13))
        self.assertIn("88 more lines: ironcurtain logs has all", shown[6])
        self.assertIn("ironcurtain logs has all", self.shown(StepKind.TOOL, "x" * 10_000)[-1])

    def test_a_commands_output_is_on_the_terminal_already(self) -> None:
        self.assertEqual(self.shown(StepKind.COMMAND, "one\n"), [])
        self.assertEqual(self.shown(StepKind.TOOL, ""), [])
