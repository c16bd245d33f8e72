"""When a program is ended, on a clock."""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.loop.iteration import INTERRUPTED_SECONDS, IterationMonitor
from ironcurtain.loop.model import RunOutcome
from ironcurtain.terminal.echo import Promise
from ironcurtain.terminal.emulator_wire import ScanResult
from ironcurtain.terminal.model import ProgramExit
from ironcurtain.terminal.scan import Scanner


class Program:
    """Notes how it is ended."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    def stop(self) -> None:
        self.ends.append("stop")

    def kill(self) -> None:
        self.ends.append("kill")


class Reader:
    """Reads in this process; late, or never, if it is told so."""

    def __init__(self) -> None:
        self.scanner = Scanner(Promise("LOOP_COMPLETE"), "do it", (80, 24))
        self.problem = ""
        self.late: Deferred[ScanResult] | None = None
        self.patience: float | None = None

    def feed(self, data: bytes) -> None:
        self.scanner.feed(data)

    def end(self, patience: float | None = None) -> Deferred[ScanResult]:
        self.patience = patience
        found = ScanResult(1, self.scanner.end() and not self.problem, self.scanner.text())
        return succeed(found) if self.late is None else self.late

    def lost(self, why: str = "") -> None:
        self.problem = why
        if self.late is not None:
            self.late.callback(ScanResult(1, False, ""))


class WatchTests(SynchronousTestCase):
    """One iteration each."""

    def begin(self, idle: float = 30, limit: float | None = None) -> None:
        self.clock, self.program, self.shown = Clock(), Program(), list[bytes]()
        self.typed, self.held_up = 0.0, False
        self.reader = Reader()
        self.watch = IterationMonitor(
            self.clock,
            self.reader,
            self.shown.append,
            idle,
            limit,
            lambda: (self.typed, self.held_up),
        )
        self.watch.begin(self.program)
        self.addCleanup(lambda: self.assertEqual(self.clock.getDelayedCalls(), []))

    def ended(self, status: int, reason: str = "") -> tuple[RunOutcome, str]:
        return self.successResultOf(Deferred.fromCoroutine(self.watch.ended(ProgramExit(status, reason))))

    def advance(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.clock.advance(0.1)

    def test_idle(self) -> None:
        self.begin()
        self.advance(29)
        self.assertEqual(self.program.ends, [])
        self.advance(1.1)
        self.assertEqual(self.program.ends, ["stop"])
        outcome, reason = self.ended(143)
        self.assertEqual((outcome, reason), (RunOutcome.IDLE, "it was idle for 30 s and was ended"))

    def test_output_is_activity(self) -> None:
        self.begin()
        self.advance(29)
        self.watch.received(b"\x1b[0m")
        self.advance(29)
        self.assertEqual((self.program.ends, self.shown), ([], [b"\x1b[0m"]))
        self.advance(1.1)
        self.assertEqual(self.program.ends, ["stop"])
        self.ended(143)

    def test_so_is_typing(self) -> None:
        self.begin()
        self.advance(29)
        self.typed = self.clock.seconds()
        self.advance(29)
        self.assertEqual(self.program.ends, [])
        self.ended(0)

    def test_a_program_that_is_held_up_is_not_idle(self) -> None:
        self.begin()
        self.held_up = True
        self.advance(100)
        self.assertEqual(self.program.ends, [])
        self.held_up = False
        self.advance(31)
        self.assertEqual(self.program.ends, ["stop"])
        self.ended(143)

    def test_never_idle(self) -> None:
        self.begin(idle=0)
        self.advance(1000)
        self.assertEqual(self.program.ends, [])
        self.ended(0)

    def test_the_time_is_up(self) -> None:
        self.begin(limit=5)
        self.advance(5.1)
        self.assertEqual(self.program.ends, ["stop"])
        self.assertEqual(self.ended(143)[0], RunOutcome.LIMIT)

    def test_its_own_end(self) -> None:
        for status, outcome in (
            (0, RunOutcome.DONE),
            (1, RunOutcome.FAILED),
            (137, RunOutcome.FAILED),
        ):
            self.begin()
            self.assertEqual(self.ended(status, "why"), (outcome, "why"))

    def test_the_promise_counts_however_it_ended(self) -> None:
        for status in (0, 7, 143):
            self.begin()
            self.watch.received(b"LOOP_COMPLETE\r\n")
            self.assertEqual(self.ended(status)[0], RunOutcome.PROMISE)
        self.begin()
        self.watch.received(b"LOOP_COMPLETE\r\n")
        self.advance(31)
        self.assertEqual(self.ended(143)[0], RunOutcome.PROMISE)

    def test_but_somebody_who_ends_it_wins(self) -> None:
        self.begin()
        self.watch.received(b"LOOP_COMPLETE\r\n")
        self.watch.end(RunOutcome.INTERRUPTED, "Ctrl-C")
        self.watch.end(RunOutcome.INTERRUPTED, "Ctrl-\\", at_once=True)
        self.assertEqual(self.program.ends, ["stop", "kill"])
        self.assertEqual(self.ended(143), (RunOutcome.INTERRUPTED, "Ctrl-C"))

    def test_what_cannot_be_read_has_failed_whatever_its_status(self) -> None:
        for forced in (False, True):
            self.begin()
            self.watch.received(b"LOOP_COMPLETE\r\n")
            self.reader.problem = "does not answer"
            if forced:
                self.advance(31)
            outcome, reason = self.ended(0)
            self.assertEqual(outcome, RunOutcome.FAILED)
            self.assertIn("the reader of its output does not answer", reason)

    def test_who_interrupts_it_waits_little_for_what_is_not_read(self) -> None:
        self.begin()
        self.watch.end(RunOutcome.INTERRUPTED, "Ctrl-C")
        self.ended(143)
        self.assertEqual(self.reader.patience, INTERRUPTED_SECONDS)

    def test_it_can_be_interrupted_while_the_rest_is_read(self) -> None:
        self.begin()
        self.reader.late = Deferred()
        ended = Deferred.fromCoroutine(self.watch.ended(ProgramExit(0)))
        self.assertNoResult(ended)
        self.assertIsNone(self.reader.patience)
        self.watch.end(RunOutcome.INTERRUPTED, "Ctrl-C")
        self.assertEqual(self.successResultOf(ended), (RunOutcome.INTERRUPTED, "Ctrl-C"))

    def test_what_it_wrote_is_kept(self) -> None:
        self.begin()
        self.watch.received(b"one\r\ntwo\r\n")
        self.ended(0)
        self.assertEqual(self.watch.text, "one\ntwo")
