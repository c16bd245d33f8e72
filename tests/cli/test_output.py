"""What commands print, on terminals and in pipes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.product import Product
from tests.tmux import Tmux

COLUMNS = 44

REFUSAL = (
    "ironcurtain: there is no session that runs: see 'ironcurtain sessions'",
    "[loop] session 1, headless: true, on this machine, with all your rights",
)


class WidthTests(SynchronousTestCase):
    """Lines follow the terminal, and are whole where a program reads them."""

    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.product.run("init")

    def test_on_a_terminal_they_are_broken_at_words(self) -> None:
        terminal = Tmux(self.product, COLUMNS, 40)
        self.addCleanup(terminal.close)
        for words, whole in zip(("observe", "loop --prompt x -n 1 -- true"), REFUSAL, strict=True):
            terminal.type(f"clear; {self.product.command()[0]} {words}; echo ov''er {words[:4]}")
            lines = [line.rstrip() for line in terminal.wait(f"^over {words[:4]}").splitlines()]
            self.assertIn(whole, " ".join(lines))
            self.assertNotIn(whole[:COLUMNS], lines)

    def test_in_a_pipe_they_are_whole(self) -> None:
        self.assertIn(REFUSAL[1], self.product.run("loop", "--prompt", "x", "-n", "1", "--", "true").stderr)
        told = self.product.run("doctor").stdout.splitlines()
        self.assertTrue(any(len(line) > 80 for line in told))
