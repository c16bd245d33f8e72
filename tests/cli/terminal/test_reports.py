from __future__ import annotations

from hypothesis import given
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.terminal.reports import budget_lines, history_lines, log_lines
from ironcurtain.session.model import Turn, Usage
from ironcurtain.text.columns import cells, unstyled
from ironcurtain.view.signs import ASCII
from tests.view.strategies import harmful, nasty


def turn(message: str = "hi", answer: str = "hello", cost: float | None = None, error: str = "") -> Turn:
    """:returns: a turn of 1000 tokens in and 20 out."""
    usage = Usage(input_tokens=1000, output_tokens=20, cost=cost)
    return Turn(number=1, message=message, answer=answer, usage=usage, timestamp="", error=error)


class ReportTests(SynchronousTestCase):
    def test_history_is_short(self) -> None:
        turns = [turn(answer="one\n two"), turn(answer="", error="overloaded"), turn(answer="one", error="cut")]
        lines = [unstyled(line) for line in history_lines(turns, 79, ASCII)]
        self.assertEqual(lines[:4], ["   1  hi", "      one two", "   1  hi", "      no answer: overloaded"])
        self.assertEqual(lines[4:], ["   1  hi", "      incomplete: one"])
        self.assertEqual([unstyled(line) for line in history_lines([], 79, ASCII)], ["no messages yet"])

    @given(nasty, nasty)
    def test_history_is_escaped_and_fits(self, message: str, answer: str) -> None:
        for line in history_lines([turn(message, answer * 50)], 79, ASCII):
            self.assertEqual(harmful(unstyled(line)), [])
            self.assertLess(cells(unstyled(line)), 80)

    def test_budget_sums(self) -> None:
        lines = [unstyled(line) for line in budget_lines([turn(cost=0.25), turn(cost=0.5)])]
        self.assertEqual(lines, ["  messages   2", "  tokens     2,000 in, 40 out", "  cost       $0.7500"])

    def test_a_cost_that_is_not_known_is_not_made_up(self) -> None:
        self.assertIn("not known", unstyled(budget_lines([turn()])[2]))
        self.assertIn("$0.2500 for 1 of the messages", unstyled(budget_lines([turn(cost=0.25), turn()])[2]))

    def test_logs_are_escaped(self) -> None:
        lines = [unstyled(line) for line in log_lines("/h/session.log", "/h/audit.jsonl", ["a\x1b[2J"])]
        self.assertEqual(lines, ["  log        /h/session.log", "  audit log  /h/audit.jsonl", "  a\\x1b[2J"])
