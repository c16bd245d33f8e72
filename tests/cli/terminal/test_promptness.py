"""How long what an agent reports takes to the person's terminal."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ironcurtain.agents.streams import reports
from ironcurtain.container_agent.reporting import Reporting
from ironcurtain.text.columns import unstyled
from tests.cli.terminal.frontends import FrontEndCase

SHOWN_SECONDS = 0.1
"""Within which everything that an agent reports is shown."""


class PromptnessTests(FrontEndCase):
    def setUp(self) -> None:
        super().setUp()
        self.begin(self.front.interactive())
        core: Any = SimpleNamespace(
            services=SimpleNamespace(clock=self.clock),
            emit=self.session.emit,
            audit=SimpleNamespace(append=lambda kind, **members: None),
        )
        self.reporting = Reporting(core)

    @property
    def shown(self) -> str:
        """All that the terminal shows."""
        live = self.surface.last
        return "\n".join((*self.surface.printed, *self.surface.answers, *live.tail, unstyled(live.status)))

    def assertPrompt(self, report: reports.Report, words: str) -> None:
        self.assertNotIn(words, self.shown)
        self.reporting.take(report)
        self.clock.pump([SHOWN_SECONDS / 20] * 20)
        self.assertIn(words, self.shown)

    def test_text_and_tools_are_shown_in_time(self) -> None:
        self.type("go")
        self.assertPrompt(reports.Text("The first line.\n\n"), "The first line.")
        self.assertPrompt(reports.ToolStarted("t", "Bash", "ls -l src"), "ls -l src")
        self.assertPrompt(reports.Waiting(3600.0, "the hour's limit"), "the hour's limit")

    def test_text_that_keeps_coming_is_not_held_back(self) -> None:
        self.type("go")
        for number in range(100):
            self.reporting.take(reports.Text(f"Line {number}.\n\n"))
            self.clock.advance(SHOWN_SECONDS / 10)
            if number >= 10:
                self.assertIn(f"Line {number - 10}.", self.shown)

    def test_text_after_a_pause_is_shown_at_once(self) -> None:
        self.type("go")
        for number in range(3):
            self.clock.advance(SHOWN_SECONDS)
            self.reporting.take(reports.Text(f"Line {number}.\n\n"))
            self.clock.pump([0.0] * 5)
            self.assertIn(f"Line {number}.", self.shown)
