"""What comes on standard input of ``ironcurtain shell`` without a terminal."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.shell_input import InstructionInput
from ironcurtain.shell.messages import Action


class AliveTests(SynchronousTestCase):
    """Whether the program at the other end is there."""

    def setUp(self) -> None:
        self.clock, self.acted, self.wrong = Clock(), list[Action | None](), list[str]()
        self.lost = 0
        self.input = InstructionInput(self.acted.append, self.wrong.append, self.lose, self.clock)

    def lose(self) -> None:
        self.lost += 1

    def alive(self, seconds: object) -> None:
        """It says that it is there."""
        self.input.dataReceived(b'{"type":"alive","seconds":%s}\n' % str(seconds).encode())

    def test_one_that_never_says_so_may_be_silent(self) -> None:
        self.input.dataReceived(b"# greet\n")
        self.clock.advance(1e6)
        self.assertEqual((self.lost, self.clock.getDelayedCalls()), (0, []))

    def test_each_time_it_says_so_it_has_as_long_again(self) -> None:
        for _ in range(5):
            self.alive(10)
            self.clock.advance(9.9)
        self.input.dataReceived(b"# greet\n")  # is no such word
        self.assertEqual(self.lost, 0)
        self.clock.advance(0.2)
        self.assertEqual((self.lost, self.acted), (1, []))

    def test_the_end_of_the_input_is_no_loss(self) -> None:
        self.alive(10)
        self.input.connectionLost()
        self.alive(10)
        self.clock.advance(100)
        self.assertEqual((self.lost, self.acted, self.clock.getDelayedCalls()), (0, [None], []))

    def test_no_time_that_is_none_is_taken(self) -> None:
        for seconds in (0, -1, "1e999", 10**9, '"1"'):
            self.alive(seconds)
        self.assertEqual((len(self.wrong), self.clock.getDelayedCalls()), (5, []))
