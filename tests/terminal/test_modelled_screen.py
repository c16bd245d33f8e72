"""A screen model in a process that the test plays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.process.frames import packed
from ironcurtain.terminal.attachment import Attachment
from ironcurtain.terminal.emulator_process import (
    ANSWER_SECONDS,
    BATCH_SECONDS,
    COMMAND,
    START_SECONDS,
    EmulatorProcess,
    Purpose,
)
from ironcurtain.terminal.emulator_wire import (
    BATCH_SIZE,
    GAP,
    Answer,
    CloseEmulator,
    EmulatorFailed,
    FeedOutput,
    OpenScreen,
    RedrawScreen,
    Refusal,
    ResizeTerminal,
)
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode, ProgramExit
from ironcurtain.terminal.screen import BEHIND_LIMIT, RING_LIMIT, ModelledScreen
from ironcurtain.terminal.sequences import CLEAR, RESTORE
from tests.terminal.doubles import Eye, Program, Worker, WorkerReactor


def ring(data: bytes) -> bytes:
    """:returns: what is drawn where there is no model."""
    return RESTORE + CLEAR + data


class ScreenTests(SynchronousTestCase):
    """One screen, or two, in one process."""

    def setUp(self) -> None:
        reactor: Any = WorkerReactor()
        self.reactor, self.process = reactor, EmulatorProcess(reactor, Purpose.SCREENS)
        self.worker: Worker = reactor.worker
        self.screen = self.make_screen()
        self.drawn: list[bytes] = []
        self.found: list[str] = []

    def make_screen(self) -> ModelledScreen:
        return ModelledScreen(self.process, 80, 24)

    def start(self) -> None:
        self.worker.start()
        self.worker.work()

    def ask(self, screen: ModelledScreen | None = None) -> None:
        (screen or self.screen).redraw(80, 24, True, self.drawn.append)

    def warnings(self, act: Callable[[], None]) -> list[str]:
        """:returns: what is logged meanwhile."""
        with capturedLogs() as events:
            act()
        return [event["log_format"].format(**event) for event in events]


class FeedingTests(ScreenTests):
    """Output goes to the process, in its time."""

    def test_nothing_is_sent_before_the_process_is_ready(self) -> None:
        self.screen.feed(b"a" * 2 * BATCH_SIZE)
        self.reactor.advance(BATCH_SECONDS)
        self.assertEqual(self.worker.read(), [])
        self.worker.start()
        number = 1
        self.assertEqual(self.worker.read(), [OpenScreen(number, 80, 24), FeedOutput(number, b"a" * 2 * BATCH_SIZE)])

    def test_small_output_is_sent_together(self) -> None:
        self.start()
        for data in (b"a", b"b", b"c"):
            self.screen.feed(data)
        self.assertEqual(self.worker.read(), [])
        self.reactor.advance(BATCH_SECONDS)
        self.assertEqual(self.worker.read(), [FeedOutput(1, b"abc")])
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_large_output_is_sent_at_once(self) -> None:
        self.start()
        self.screen.feed(b"a")
        self.screen.feed(b"b" * BATCH_SIZE)
        self.assertEqual(self.worker.read(), [FeedOutput(1, b"a" + b"b" * BATCH_SIZE)])
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_a_question_comes_after_all_output_before_it(self) -> None:
        self.start()
        self.screen.feed(b"a")
        self.screen.resize(90, 30)
        self.screen.feed(b"b")
        self.ask()
        sent = self.worker.read()
        self.assertEqual(sent[:3], [FeedOutput(1, b"a"), ResizeTerminal(1, 90, 30), FeedOutput(1, b"b")])
        self.assertIsInstance(sent[3], RedrawScreen)

    def test_a_process_that_does_not_read_costs_no_more_than_the_limit(self) -> None:
        self.start()
        self.worker.block(True)
        for number in range(100):
            self.screen.feed(b"%02d" % number + b"x" * 99_998)
            self.assertLessEqual(self.screen.outbox.waiting, BEHIND_LIMIT)
        self.assertEqual((self.worker.read(), self.reactor.getDelayedCalls()), ([], []))
        self.worker.block(False)
        sent = b"".join(order.data for order in self.worker.read() if isinstance(order, FeedOutput))
        self.assertTrue(sent.startswith(GAP))
        self.assertTrue(sent.endswith(b"99" + b"x" * 99_998))
        self.screen.feed(b"more")
        self.ask()
        self.assertEqual(self.worker.read()[0], FeedOutput(1, b"more"))

    def test_who_asked_before_a_gap_sees_the_last_output(self) -> None:
        self.start()
        self.worker.block(True)
        self.screen.feed(b"before")
        self.ask()
        self.screen.feed(b"x" * (BEHIND_LIMIT + 1))
        self.assertEqual(self.drawn, [ring(b"before")])
        self.worker.block(False)
        self.worker.work()
        self.assertEqual(len(self.drawn), 1)
        self.assertEqual(self.reactor.getDelayedCalls(), [])


class AskingTests(ScreenTests):
    """Redraws and text."""

    def test_an_answer(self) -> None:
        self.start()
        self.screen.feed(b"text")
        self.ask()
        self.screen.text(self.found.append)
        self.assertEqual(self.drawn, [])
        self.worker.work()
        self.assertEqual((self.drawn, self.found), ([b"<text>"], ["<text>"]))
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_before_the_process_is_ready_a_redraw_is_the_last_output(self) -> None:
        self.screen.feed(b"text")
        self.ask()
        self.assertEqual(self.drawn, [ring(b"text")])

    def test_but_the_text_waits_for_it(self) -> None:
        self.screen.feed(b"text")
        self.screen.text(self.found.append)
        self.reactor.advance(START_SECONDS / 2)
        self.start()
        self.assertEqual(self.found, ["<text>"])

    def test_not_for_ever(self) -> None:
        self.screen.feed(b"\x1b[1mtext")
        self.screen.text(self.found.append)
        self.reactor.advance(START_SECONDS)
        self.assertEqual((self.found, self.worker.signals), (["text"], ["KILL"]))

    def test_failed_screen_goes_on_with_its_last_output(self) -> None:
        other = self.make_screen()
        self.start()
        self.screen.feed(b"text")
        self.ask()
        logged = self.warnings(
            lambda: self.worker.say(EmulatorFailed(1, "MemoryError: \x1b[31m"), EmulatorFailed(1, "again"))
        )
        self.assertEqual(self.drawn, [ring(b"text")])
        self.assertEqual(logged, ["a terminal emulator failed: MemoryError: [31m"])
        self.ask()
        self.assertEqual(self.drawn, [ring(b"text")] * 2)
        other.feed(b"two")
        self.ask(other)
        self.worker.work()
        self.assertEqual(self.drawn[2:], [b"<two>"])

    def test_refused_request_is_answered_with_the_last_output(self) -> None:
        self.start()
        self.screen.feed(b"text")
        self.ask()
        order = self.worker.read()[-1]
        assert isinstance(order, RedrawScreen)
        logged = self.warnings(
            lambda: self.worker.say(Refusal(order.request, "no\x1b[31m memory"), Refusal(order.request, "again"))
        )
        self.assertEqual((self.drawn, logged), ([ring(b"text")], ["a terminal emulator failed: no [31m memory"]))
        self.assertFalse(self.process.gone)

    def test_an_answer_to_no_question_is_dropped(self) -> None:
        self.start()
        self.worker.say(Answer(77, b"x"), Refusal(78, "x"))
        self.assertFalse(self.process.gone)


class FailureTests(ScreenTests):
    """A process that hangs, dies or talks nonsense costs exact redraws, and nothing else."""

    def setUp(self) -> None:
        super().setUp()
        self.start()
        self.other = self.make_screen()
        self.screen.feed(b"text")
        self.other.feed(b"more")
        self.ask()
        self.ask(self.other)

    def check_that_nothing_is_left(self) -> None:
        self.assertEqual(self.drawn, [ring(b"text"), ring(b"more")])
        self.assertEqual((self.worker.signals, self.process.gone), (["KILL"], True))
        self.assertEqual(self.reactor.getDelayedCalls(), [])
        self.screen.feed(b"2" * BATCH_SIZE)
        self.screen.resize(1, 1)
        self.screen.text(self.found.append)
        self.ask()
        self.assertEqual(self.found, ["text" + "2" * BATCH_SIZE])
        self.assertEqual(self.drawn[2:], [ring(b"text" + b"2" * BATCH_SIZE)])
        self.assertEqual(self.reactor.getDelayedCalls(), [])
        self.screen.close()
        self.other.close()

    def test_it_does_not_answer(self) -> None:
        self.reactor.advance(ANSWER_SECONDS - 0.01)
        self.assertEqual(self.drawn, [])
        self.reactor.advance(0.01)
        logged = self.warnings(lambda: self.worker.die(number=9))
        self.assertEqual(len(logged), 1)
        self.assertIn("does not answer", logged[0])
        self.check_that_nothing_is_left()

    def test_slow_is_not_silent(self) -> None:
        self.ask()
        orders = [order for order in self.worker.read() if isinstance(order, RedrawScreen)]
        self.reactor.advance(ANSWER_SECONDS / 2)
        self.worker.say(Answer(orders[1].request, b"<more>"))
        self.reactor.advance(ANSWER_SECONDS / 2)
        self.assertEqual(self.drawn, [b"<more>", ring(b"text"), ring(b"text")])
        self.assertFalse(self.process.gone)
        self.worker.say(Answer(orders[0].request, b"late"))
        self.assertEqual(len(self.drawn), 3)

    def test_it_is_killed(self) -> None:
        logged = self.warnings(lambda: self.worker.die(number=11, said=b"first\nlast \x1b[31mwords\n"))
        self.assertEqual(len(logged), 1)
        self.assertIn("was ended by signal SIGSEGV", logged[0])
        self.assertIn("last [31mwords", logged[0])
        self.check_that_nothing_is_left()

    def test_it_ends_by_itself(self) -> None:
        (logged,) = self.warnings(lambda: self.worker.die(status=1))
        self.assertIn("ended with status 1", logged)
        self.check_that_nothing_is_left()

    def test_it_talks_nonsense(self) -> None:
        self.worker.stream.dataReceived(packed(CloseEmulator(1)) + packed(Answer(1, b"x")))
        (logged,) = self.warnings(lambda: self.worker.die(number=9))
        self.assertIn("broke the protocol", logged)
        self.check_that_nothing_is_left()

    @given(st.binary(min_size=1))
    def test_whatever_it_says_nothing_is_drawn_but_an_answer(self, data: bytes) -> None:
        ScreenTests.setUp(self)
        self.start()
        self.screen.feed(b"text")
        self.ask()
        self.worker.stream.dataReceived(data)
        self.reactor.advance(ANSWER_SECONDS)
        self.assertEqual(self.drawn, [ring(b"text")])


class LifeTests(ScreenTests):
    """How long the process lives."""

    def test_what_it_is_started_with(self) -> None:
        self.assertEqual((self.worker.command, self.worker.environment), ((*COMMAND, "5"), {}))
        self.assertEqual(COMMAND[1:], ("-I", "-m", "ironcurtain.terminal.emulator_worker"))

    def test_two_screens_share_it(self) -> None:
        other = self.make_screen()
        self.start()
        self.screen.feed(b"one")
        other.feed(b"two")
        self.ask()
        self.ask(other)
        self.worker.work()
        self.assertEqual((self.drawn, len(self.reactor.workers)), ([b"<one>", b"<two>"], 1))

    def test_it_ends_with_the_last_screen(self) -> None:
        other = self.make_screen()
        self.start()
        self.screen.feed(b"x")
        self.screen.close()
        self.screen.close()
        self.assertEqual(self.worker.read(), [CloseEmulator(1)])
        self.assertEqual(self.worker.signals, [])
        other.close()
        self.assertEqual((self.worker.signals, self.process.gone), (["KILL"], True))
        self.assertEqual(self.warnings(lambda: self.worker.die(number=9)), [])
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_a_question_under_way_is_answered_when_the_screen_is_closed(self) -> None:
        self.make_screen()
        self.start()
        self.screen.feed(b"text")
        self.ask()
        self.screen.close()
        self.assertEqual(self.drawn, [ring(b"text")])
        self.worker.work()
        self.assertEqual(len(self.drawn), 1)


STEPS = ("out", "flood", "attach", "detach", "stall", "drain", "work", "block", "free", "wait")


class OrderTests(SynchronousTestCase):
    """What a viewer sees of a hub over such a screen."""

    @given(st.lists(st.sampled_from(STEPS), max_size=60), st.booleans(), st.sampled_from(["", "dies", "ends"]))
    def test_a_redraw_and_what_follows_are_the_whole_output(self, done: list[str], ready: bool, end: str) -> None:
        reactor: Any = WorkerReactor()
        process = EmulatorProcess(reactor, Purpose.SCREENS)
        hub = Hub(Program(), reactor, ModelledScreen(process, 80, 24), (80, 24), queue_limit=200)
        viewers: list[tuple[Eye, Attachment]] = []
        whole = b""
        if ready:
            reactor.worker.start()
        for count, step in enumerate(done):
            if step in ("out", "flood"):
                data = b"%03d " % count * (1 if step == "out" else 100)
                whole += data
                hub.received(data)
            elif step == "attach":
                eye = Eye()
                viewers.append((eye, hub.attach(eye, Mode.OBSERVE, 80, 24)))
            elif step == "work":
                reactor.worker.work()
            elif step in ("block", "free"):
                reactor.worker.block(step == "block")
            elif step == "wait":
                reactor.advance(BATCH_SECONDS)
            elif viewers:
                eye, attachment = viewers[count % len(viewers)]
                eye.stalled = step == "stall"
                if step == "drain":
                    attachment.drained()
                elif step == "detach":
                    attachment.detach()
                    viewers.remove((eye, attachment))
        if end == "dies":
            reactor.worker.die(number=9)
        elif end == "ends":
            hub.ended(ProgramExit(0))
        reactor.worker.block(False)
        reactor.worker.work()
        for eye, attachment in viewers:
            eye.stalled = False
            attachment.drained()
            reactor.worker.work()
            self.assertEqual(what_is_seen(eye.seen), whole)
        hub.ended(ProgramExit(0))
        self.assertEqual(reactor.getDelayedCalls(), [])

    def test_a_program_that_ends_while_a_redraw_is_awaited(self) -> None:
        reactor: Any = WorkerReactor()
        hub = Hub(Program(), reactor, ModelledScreen(EmulatorProcess(reactor, Purpose.SCREENS), 80, 24), (80, 24))
        reactor.worker.start()
        eye = Eye()
        hub.received(b"before ")
        hub.attach(eye, Mode.OBSERVE, 80, 24)
        hub.received(b"after")
        self.assertEqual(eye.seen, b"")
        hub.ended(ProgramExit(7, "why"))
        self.assertEqual((eye.seen, eye.end), (ring(b"before ") + b"after" + RESTORE, ("why", 7)))


def what_is_seen(drawn: bytes) -> bytes:
    """:returns: what is on a viewer's screen, after the last redraw that the ring or the worker gave."""
    text = drawn.removesuffix(RESTORE)
    text = text.replace(RESTORE + CLEAR, b"<")
    return text.rpartition(b"<")[2].replace(b">", b"")


class LimitTests(SynchronousTestCase):
    """The numbers fit each other."""

    def test_the_last_output_fits_into_what_may_wait(self) -> None:
        self.assertLess(RING_LIMIT + len(GAP) + 1000, BEHIND_LIMIT)
