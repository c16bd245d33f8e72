"""A conversation in a terminal that becomes narrower and wider, and breaks rows anew: tmux."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.product import Product
from tests.tmux import Tmux

MESSAGE = "a message that is typed meanwhile, and longer than a row of the narrow terminal"


class ReflowTests(SynchronousTestCase):
    def test_nothing_of_what_changed_stays_above_and_nothing_printed_is_lost(self) -> None:
        product = Product()
        self.addCleanup(lambda: self.assertEqual(product.close(), []))
        backend, gate = product.held("The answer.")
        terminal = Tmux(product, 100, 24)
        self.addCleanup(terminal.close)
        directory = Path(product.command()[0]).parent
        terminal.type(f"PATH={directory}:$PATH; PS1='$ '; clear")
        terminal.wait(r"^\$$")
        terminal.type(f"ironcurtain start --backend '{backend}'")
        terminal.wait("^>$")
        for _ in range(3):  # until there is no room below, where tmux would scroll what becomes longer off the screen
            terminal.type("/help")
            terminal.wait("^>$")
        terminal.type("Go on.")
        terminal.wait("● thinking")
        terminal.keys("-l", MESSAGE)
        terminal.wait(f"^> {MESSAGE}$")
        printed = self.lines(terminal)
        self.seconds_pass(terminal)  # so that nothing is drawn in the moment in which the size changes
        for columns in (60, 45, 32, 100):
            terminal.resize(columns, 24)
            pattern = r"\s*".join(map(re.escape, MESSAGE.replace(" ", "")))
            terminal.wait(rf"● thinking \d+ s\n> {pattern}\s*\Z")
            self.seconds_pass(terminal)
            self.assertEqual(self.lines(terminal), printed)
        gate.touch()
        terminal.wait(r"The answer\.[^●]*\n> ")
        terminal.keys("C-u")
        terminal.type("/quit")
        terminal.wait(r"^\$$")

    def seconds_pass(self, terminal: Tmux) -> None:
        """Wait until the status was drawn anew, for the present width."""
        before = re.findall(r"thinking (\d+) s", terminal.text)[-1]
        terminal.until(lambda: re.findall(r"thinking (\d+) s", terminal.text)[-1:] not in ([], [before]))

    def lines(self, terminal: Tmux) -> list[str]:
        """:returns: all above the status, row by row as they were written."""
        text = terminal.ask("capture-pane", "-p", "-J", "-S", "-").rpartition("● thinking")[0]
        return [line.rstrip() for line in text.split("\n") if line.strip()]
