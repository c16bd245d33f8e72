from __future__ import annotations

from hypothesis import given
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.terminal.reports import history_lines
from ironcurtain.session.model import Turn, Usage
from ironcurtain.text.columns import cells, unstyled
from ironcurtain.view.look import ASCII
from tests.cli.terminal.frontends import FrontEndCase
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


class StatusTests(FrontEndCase):
    def test_it_tells_what_the_session_is_and_used(self) -> None:
        self.begin(self.front.interactive())
        self.type("/status", "/budget")
        for text in ("state     ready", "agent     builtin", "model     the agent's default", "messages  0"):
            self.assertIn(text, self.surface.text)

    def test_it_names_the_model(self) -> None:
        self.session.model = "\x1bopus"
        self.begin(self.front.interactive())
        self.type("/status")
        self.assertIn("model     \\x1bopus", self.surface.text)
