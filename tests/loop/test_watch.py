"""When a program is ended, on a clock."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.loop.echo import Promise
from ironcurtain.loop.iteration import Watch
from ironcurtain.loop.model import Outcome
from ironcurtain.loop.scan import Scanner
from ironcurtain.terminal.model import Ended


class Program:
    """Notes how it is ended."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def stop(self) -> None:
        self.ends.append("stop")

    def kill(self) -> None:
        self.ends.append("kill")


class WatchTests(SynchronousTestCase):
    """One iteration each."""

    def begin(self, idle: float = 30, limit: float | None = None) -> None:
        self.clock, self.program, self.shown = Clock(), Program(), list[bytes]()
        self.typed, self.held_up = 0.0, False
        scanner = Scanner(Promise("LOOP_COMPLETE"), "do it", (80, 24))
        self.watch = Watch(self.clock, scanner, self.shown.append, idle, limit, lambda: (self.typed, self.held_up))
        self.watch.begin(self.program)
        self.addCleanup(lambda: self.assertEqual(self.clock.getDelayedCalls(), []))

    def advance(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.clock.advance(0.1)

    def test_idle(self) -> None:
        self.begin()
        self.advance(29)
        self.assertEqual(self.program.ends, [])
        self.advance(1.1)
        self.assertEqual(self.program.ends, ["stop"])
        outcome, reason = self.watch.ended(Ended(143))
        self.assertEqual((outcome, reason), (Outcome.IDLE, "it was idle for 30 s and was ended"))

    def test_output_is_activity(self) -> None:
        self.begin()
        self.advance(29)
        self.watch.received(b"\x1b[0m")
        self.advance(29)
        self.assertEqual((self.program.ends, self.shown), ([], [b"\x1b[0m"]))
        self.advance(1.1)
        self.assertEqual(self.program.ends, ["stop"])
        self.watch.ended(Ended(143))

    def test_so_is_typing(self) -> None:
        self.begin()
        self.advance(29)
        self.typed = self.clock.seconds()
        self.advance(29)
        self.assertEqual(self.program.ends, [])
        self.watch.ended(Ended(0))

    def test_a_program_that_is_held_up_is_not_idle(self) -> None:
        self.begin()
        self.held_up = True
        self.advance(100)
        self.assertEqual(self.program.ends, [])
        self.held_up = False
        self.advance(31)
        self.assertEqual(self.program.ends, ["stop"])
        self.watch.ended(Ended(143))

    def test_never_idle(self) -> None:
        self.begin(idle=0)
        self.advance(1000)
        self.assertEqual(self.program.ends, [])
        self.watch.ended(Ended(0))

    def test_the_time_is_up(self) -> None:
        self.begin(limit=5)
        self.advance(5.1)
        self.assertEqual(self.program.ends, ["stop"])
        self.assertEqual(self.watch.ended(Ended(143))[0], Outcome.LIMIT)

    def test_its_own_end(self) -> None:
        for status, outcome in ((0, Outcome.DONE), (1, Outcome.FAILED), (137, Outcome.FAILED)):
            self.begin()
            self.assertEqual(self.watch.ended(Ended(status, "why")), (outcome, "why"))

    def test_the_promise_counts_however_it_ended(self) -> None:
        for status in (0, 7, 143):
            self.begin()
            self.watch.received(b"LOOP_COMPLETE\r\n")
            self.assertEqual(self.watch.ended(Ended(status))[0], Outcome.PROMISE)
        self.begin()
        self.watch.received(b"LOOP_COMPLETE\r\n")
        self.advance(31)
        self.assertEqual(self.watch.ended(Ended(143))[0], Outcome.PROMISE)

    def test_but_somebody_who_ends_it_wins(self) -> None:
        self.begin()
        self.watch.received(b"LOOP_COMPLETE\r\n")
        self.watch.end(Outcome.INTERRUPTED, "Ctrl-C")
        self.watch.end(Outcome.INTERRUPTED, "Ctrl-\\", at_once=True)
        self.assertEqual(self.program.ends, ["stop", "kill"])
        self.assertEqual(self.watch.ended(Ended(143)), (Outcome.INTERRUPTED, "Ctrl-C"))

    def test_events_are_heard_soon(self) -> None:
        self.begin()
        self.watch.received(b'<event topic="a">b</event>\x1b[2J')
        self.assertEqual(self.watch.scanner.events, [])
        self.advance(0.3)
        self.assertEqual(len(self.watch.scanner.events), 1)
        self.watch.ended(Ended(0))
