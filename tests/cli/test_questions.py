"""Questions of commands at a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
import termios

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from tests.audit.doubles import scratch
from tests.product import wait_until
from tests.tmux import is_readable

PROGRAM = """
import sys, time
if clock := sys.argv[1:]:
    time.monotonic = lambda: float(open(*clock).read())
from ironcurtain.cli.questions import chosen, confirmed
print(confirmed("Sure?"), chosen("Which?", "abc", "a"))
"""


class QuestionTests(SynchronousTestCase):
    """A program that asks twice."""

    def setUp(self) -> None:
        self.person, self.terminal = os.openpty()
        self.addCleanup(os.close, self.person)
        self.before = termios.tcgetattr(self.terminal)
        self.seen = b""
        self.clock, self.now = scratch(self) / "clock", 0.0
        self.advance(0.0)

    def advance(self, seconds: float) -> None:
        """Advance the program's clock."""
        self.now += seconds
        new = self.clock.with_suffix(".new")
        new.write_text(str(self.now))
        new.rename(self.clock)

    def begin(self) -> subprocess.Popen[bytes]:
        """Start it in the terminal."""
        end = self.terminal
        asking = subprocess.Popen([sys.executable, "-c", PROGRAM, self.clock], stdin=end, stdout=end, stderr=end)
        self.addCleanup(asking.wait)
        self.addCleanup(asking.kill)
        return asking

    def until(self, text: bytes) -> bytes:
        """:returns: what was written since the last time, up to a text that comes after some seconds at the latest."""
        while text not in self.seen:
            if self.is_silent():
                self.advance(QUIET_SECONDS)
            else:
                self.seen += os.read(self.person, 4096)
        before, self.seen = self.seen.split(text, 1)
        return before

    def press(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.person, keys)

    def is_silent(self) -> bool:
        """:returns: whether nothing is written in a time in which a program that waits for nothing would."""
        return not is_readable(self.person, QUIET_SECONDS / 4)

    def test_choices_appear_after_a_quiet_second_and_what_came_before_is_dropped(self) -> None:
        self.press(b"y\ny\n")
        asking = self.begin()
        self.until(b"Sure?")
        self.advance(QUIET_SECONDS * 0.9)
        self.press(b"y\ny")
        wait_until(lambda: not is_readable(self.terminal))
        self.advance(QUIET_SECONDS * 0.9)
        self.assertTrue(self.is_silent())
        self.assertEqual(self.until(b" [y/n]: "), b" (too early: answer again)")
        self.press(b"n\n")
        self.until(b"Which?")
        self.assertEqual(self.until(b" (a, b, c) [a]: "), b"")
        self.press(b"c\n")
        self.until(b"False c")
        self.assertEqual((asking.wait(), termios.tcgetattr(self.terminal)), (0, self.before))

    def test_ctrl_c_while_it_waits_restores_the_terminal(self) -> None:
        asking = self.begin()
        self.until(b"Sure?")
        asking.send_signal(2)
        asking.wait()
        self.assertEqual(termios.tcgetattr(self.terminal), self.before)

    def test_lines_of_a_program_are_not_delayed(self) -> None:
        done = subprocess.run([sys.executable, "-c", PROGRAM], input=b"y\nb\n", capture_output=True, check=True)
        self.assertTrue(done.stdout.endswith(b"True b\n"), done.stdout)
        self.assertNotIn(b"too early", done.stdout)
