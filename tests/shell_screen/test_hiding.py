"""What a command has printed, and what is drawn after it."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.shell.messages import StepCompleted, StepOutcome, StepStarted
from tests.shell_screen.doubles import PLAN, AgentMode
from tests.shell_screen.frames import planned


class HidingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.mode = AgentMode()
        planned(self.mode)
        self.mode.press(b"a")
        self.mode.receive(StepStarted(plan_id=PLAN, step=1, command="make"))

    def test_output_cannot_hide_what_is_drawn_after_it(self) -> None:
        done = StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE, duration_ms=1000)
        for output in (
            *(b"\x1b[1;3r", b"\x1b[?6h\x1b[5;8r\x1b[2;1H", b"\x1b[?7l", b"\x1b[4h", b"\x1b(0", b"\x0e", b"\x1b[8m"),
            *(b"\x1b[?1049h", b"\x1b[?25l", b"\x1b[20h", b"\x1b]4;0;#000\x07", b"\x1b]8;;http://x\x07", b"\x1bP+q"),
        ):
            self.setUp()
            self.mode.output(b"begun\r\n" + output)
            self.mode.receive(done)
            written = self.mode.written.rpartition(output)[2]
            before, drawn, _ = written.partition("✓ done".encode())
            self.assertTrue(drawn, written)
            plain = output == b"\x1b[8m"
            ready = (b"\x1b[r", b"\x1b[4l", b"\x1b[?7h", b"\x1b(B", b"\x0f", b"\x1b[J")
            for sequence in (b"\x1b[0m", *(() if plain else ready)):
                self.assertIn(sequence, before, output)

    def test_output_that_is_plain_is_followed_without_more(self) -> None:
        self.mode.output(b"\x1b[1mone\x1b[0m\r\n")
        before = len(self.mode.written)
        self.mode.receive(StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE, duration_ms=1000))
        self.assertNotIn(b"\x1b[r", self.mode.written[before:])

    def test_what_output_drew_below_does_not_stay_beside_what_is_drawn(self) -> None:
        self.mode.output(b"one\r\n\n\x1b[30C FAKE\r\n\x1b[30C FAKE\x1b[3A\r")
        self.mode.receive(StepCompleted(plan_id=PLAN, step=1, outcome=StepOutcome.DONE, duration_ms=1000))
        self.assertNotIn("FAKE", self.mode.text)
