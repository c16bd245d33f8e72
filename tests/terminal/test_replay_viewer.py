from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.recording import Cast, CastEvent
from ironcurtain.terminal.replay import INTERRUPTED, LONGEST_WAIT, Replay, ReplayViewer

ROWS = 10


class Terminal:
    """A channel that keeps what is written."""

    def __init__(self) -> None:
        self.blocked = False
        self.rows = ROWS
        self.status: int | None = None
        self._written = b""

    def write(self, data: bytes) -> None:
        self._written += data

    def size(self) -> tuple[int, int]:
        return 80, self.rows

    def hold(self, full: bool) -> None:
        raise AssertionError("nothing is typed to anybody")

    def close(self, status: int | None) -> None:
        assert self.status is None
        self.status = status

    def new(self) -> str:
        """:returns: what was written since the last time."""
        written, self._written = self._written, b""
        return written.decode()


class ViewerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.terminal = Clock(), Terminal()
        events = [CastEvent(float(n), output=f"<{n}>") for n in range(1, 21)] + [CastEvent(20.0, marker="the end")]
        self.play(*events)

    def play(self, *events: CastEvent, rows: int = ROWS) -> None:
        replay = Replay(Cast((80, rows), "", None, events, False, 0))
        self.viewer = ReplayViewer(replay, self.terminal, self.clock, rows, events[-1].time)

    def begin(self, at: float = 0.0) -> None:
        self.viewer.begin(at)
        self.terminal.new()

    def test_what_was_there_moves_up_first(self) -> None:
        self.viewer.begin(2.0)
        drawn = self.terminal.new()
        self.assertTrue(drawn.startswith("\r\n" * ROWS))
        self.assertTrue(drawn.endswith("<1><2>"))

    def test_it_plays_to_the_end_and_leaves_below_what_it_showed(self) -> None:
        self.begin()
        self.clock.pump([0.5] * 40)
        self.assertEqual(self.terminal.new(), "".join(f"<{n}>" for n in range(1, 21)) + f"\x1b[{ROWS};1H\r\n")
        self.assertEqual((self.terminal.status, self.clock.getDelayedCalls()), (0, []))

    def test_space_pauses_and_goes_on(self) -> None:
        self.begin()
        self.clock.advance(1.5)
        self.viewer.received(b" ")
        self.clock.advance(100.0)
        self.assertEqual(self.terminal.new(), "<1>")
        self.viewer.received(b" ")
        self.clock.advance(0.5)
        self.assertEqual(self.terminal.new(), "<2>")

    def test_what_was_due_before_a_key_comes_before_what_the_key_does(self) -> None:
        self.begin()
        self.clock.rightNow += 3.2  # the timer is late
        self.viewer.received(b" ")
        self.assertEqual(self.terminal.new(), "<1><2><3>")

    def test_the_arrows(self) -> None:
        for right, left in ((b"\x1b[C", b"\x1b[D"), (b"\x1bOC", b"\x1bOD")):
            self.setUp()
            self.begin()
            self.viewer.received(right)
            self.assertEqual(self.terminal.new(), "<1><2><3><4><5>")
            self.viewer.received(right + left)
            self.assertTrue(self.terminal.new().endswith("<1><2><3><4><5>"))
            self.viewer.lost()

    def test_one_change_at_a_time(self) -> None:
        self.begin()
        self.viewer.received(b"..")
        self.clock.advance(50.0)
        self.assertEqual(self.terminal.new(), "<1><2>")
        self.viewer.received(b" ")
        self.clock.advance(1.0)
        self.assertEqual(self.terminal.new(), "<3>")

    def test_to_the_markers(self) -> None:
        self.play(CastEvent(1.0, output="<1>"), CastEvent(30.0, marker="m"), CastEvent(60.0, output="<60>"))
        self.begin()
        self.viewer.received(b"]")
        self.assertEqual(self.terminal.new(), "<1>")
        self.clock.advance(30.0)
        self.assertEqual(self.terminal.new()[:4], "<60>")
        self.assertEqual(self.terminal.status, 0)

    def test_keys_that_end_it(self) -> None:
        for key, status in ((b"q", 0), (b"\x03", INTERRUPTED), (b"\x1b[99;5u", INTERRUPTED)):
            self.setUp()
            self.begin()
            self.viewer.received(key + b" .")
            self.assertEqual((self.terminal.status, self.clock.getDelayedCalls()), (status, []), key)

    def test_what_is_no_key_does_nothing(self) -> None:
        self.begin()
        for read in (
            b"\x1b[?62;22c",
            b"\x1b]11;rgb:0000/q \x1b\\",
            b"\x1b[200~q .\x1b[201~",
            b"\x1b[<0;1;1M",
            b"x",
            b"\xff",
        ):
            self.viewer.received(read)
        self.assertEqual((self.terminal.new(), self.terminal.status), ("", None))
        self.clock.advance(1.0)
        self.assertEqual(self.terminal.new(), "<1>")

    def test_a_line_below_says_where_it_is_paused(self) -> None:
        self.terminal.rows = ROWS + 2
        self.begin()
        self.clock.advance(3.5)
        self.viewer.received(b" ")
        line = self.terminal.new()
        self.assertIn(f"\x1b7\x1b[{ROWS + 2};1H", line)
        self.assertIn("paused at 0:03 of 0:20", line)
        self.viewer.received(b"\x1b[C")
        self.assertIn("paused at 0:08 of 0:20", self.terminal.new())
        self.viewer.received(b" ")
        self.assertEqual(self.terminal.new(), f"\x1b7\x1b[{ROWS + 2};1H\x1b[0m\x1b[K\x1b8")

    def test_a_terminal_that_takes_nothing_stops_time(self) -> None:
        self.begin()
        self.terminal.blocked = True
        self.clock.advance(1.0)
        self.assertEqual((self.terminal.new(), self.clock.getDelayedCalls()), ("<1>", []))
        self.clock.advance(50.0)
        self.terminal.blocked = False
        self.viewer.drained()
        self.assertEqual(self.terminal.new(), "")
        self.clock.advance(1.0)
        self.assertEqual(self.terminal.new(), "<2>")

    def test_a_terminal_that_takes_more_again_in_time_loses_none(self) -> None:
        self.begin()
        self.clock.advance(0.5)
        self.viewer.drained()
        self.clock.advance(0.5)
        self.assertEqual(self.terminal.new(), "<1>")

    def test_another_size_is_drawn_afresh(self) -> None:
        self.begin()
        self.clock.advance(2.0)
        self.terminal.new()
        self.viewer.resized(100, 50)
        self.assertTrue(self.terminal.new().endswith("<1><2>"))
        self.clock.advance(1.0)
        self.assertEqual(self.terminal.new(), "<3>")

    def test_a_question_first(self) -> None:
        self.viewer.ask("Smaller.\r\n", 2.0)
        self.clock.advance(10.0)
        self.viewer.resized(100, 50)
        self.viewer.drained()
        self.assertEqual(self.terminal.new(), "Smaller.\r\n")
        self.viewer.received(b"\r")
        self.assertTrue(self.terminal.new().endswith("<1><2>"))
        self.viewer.received(b"q")

    def test_a_question_answered_by_going(self) -> None:
        self.viewer.ask("Smaller.\r\n", 0.0)
        self.viewer.received(b"q")
        self.assertEqual((self.terminal.new(), self.terminal.status), ("Smaller.\r\n\r\n", 0))

    def test_the_terminal_goes(self) -> None:
        self.begin()
        self.viewer.lost()
        self.assertEqual((self.clock.getDelayedCalls(), self.terminal.status), ([], None))

    def test_a_pause_of_years_is_waited_for_in_parts(self) -> None:
        self.play(CastEvent(1e8, output="late"))
        self.begin()
        self.assertEqual([call.getTime() for call in self.clock.getDelayedCalls()], [LONGEST_WAIT])
        self.clock.advance(LONGEST_WAIT)
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)
        self.viewer.lost()
