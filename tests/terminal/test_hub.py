"""One program, many viewers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound
from ironcurtain.terminal.hub import RESIZE_SECONDS
from ironcurtain.terminal.model import Mode, ProgramExit
from ironcurtain.terminal.sequences import RESTORE
from tests.terminal.doubles import Eye, Stage


class HubTests(SynchronousTestCase):
    """A hub over a program that notes what it is told."""

    def setUp(self) -> None:
        self.stage = Stage()
        self.hub, self.program, self.clock = self.stage.hub, self.stage.program, self.stage.clock


class ShowingTests(HubTests):
    """Output."""

    def test_the_screen_comes_first_then_what_follows(self) -> None:
        self.hub.received(b"before")
        eye = Eye()
        self.hub.attach(eye, Mode.DRIVE, 80, 24)
        self.hub.received(b"after")
        self.assertEqual(eye.seen, b"<80 24 1:before>after")

    def test_bytes_are_not_changed(self) -> None:
        eye, _ = self.stage.attach()
        every = bytes(range(256))
        for i in range(256):
            self.hub.received(every[i : i + 1])
        self.assertEqual(eye.seen, every)

    def test_all_viewers_see_it(self) -> None:
        eyes = [self.stage.attach(mode)[0] for mode in (Mode.DRIVE, Mode.OBSERVE, Mode.DRIVE)]
        self.assertEqual(self.hub.viewers, 3)
        self.hub.received(b"x")
        self.assertEqual([eye.seen for eye in eyes], [b"x"] * 3)

    def test_who_has_left_sees_nothing_more(self) -> None:
        eye, attachment = self.stage.attach()
        attachment.detach()
        attachment.detach()
        self.hub.received(b"x")
        attachment.typed(b"y")
        attachment.resized(10, 10)
        self.assertEqual((eye.seen, self.program.typed, self.hub.viewers), (b"", b"", 0))

    def test_a_viewer_that_fails_harms_nobody_else(self) -> None:
        broken, _ = self.stage.attach()
        eye, _ = self.stage.attach()
        self.patch(broken, "draw", lambda data: 1 / 0)
        self.hub.received(b"x")
        self.assertEqual((eye.seen, self.hub.viewers), (b"x", 1))
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)


class SlowTests(HubTests):
    """Viewers that do not read."""

    def test_what_waits_is_drawn_in_order(self) -> None:
        eye, attachment = self.stage.attach()
        self.stage.attach()
        eye.stalled = True
        for data in (b"1", b"2", b"3"):
            self.hub.received(data)
        self.assertEqual(eye.seen, b"1")
        eye.stalled = False
        attachment.drained()
        self.hub.received(b"4")
        self.assertEqual(eye.seen, b"1234")

    def test_a_stalled_one_costs_no_more_than_its_limit_and_is_drawn_afresh(self) -> None:
        eye, attachment = self.stage.attach()
        other, _ = self.stage.attach()
        eye.stalled = True
        self.hub.received(b"first")
        for _ in range(1000):
            self.hub.received(b"0123456789")
        self.assertLessEqual(attachment.waiting, 100)
        self.assertEqual(other.seen, b"first" + b"0123456789" * 1000)
        self.assertEqual(eye.new(), b"first")
        eye.stalled = False
        attachment.drained()
        self.assertEqual(eye.new(), b"<80 24 0:first" + b"0123456789" * 1000 + b">")
        self.hub.received(b"on")
        self.assertEqual(eye.new(), b"on")

    def test_a_redraw_may_fill_it_again(self) -> None:
        eye, attachment = self.stage.attach()
        self.stage.attach()
        eye.stalled = True
        self.hub.received(b"x")
        self.hub.received(b"y" * 200)
        eye.new()
        attachment.drained()
        self.assertIn(b"<80 24 0:", eye.new())
        self.hub.received(b"z")
        self.assertEqual(eye.new(), b"")
        eye.stalled = False
        attachment.drained()
        self.assertEqual(eye.new(), b"z")

    @given(st.lists(st.sampled_from(["out", "stall", "drain", "other-stall", "other-drain"]), max_size=60))
    def test_whatever_happens_the_viewer_ends_with_all_or_with_a_redraw(self, steps: list[str]) -> None:
        stage = Stage(queue_limit=6)
        (eye, attachment), (other, other_attachment) = stage.attach(), stage.attach(Mode.OBSERVE)
        count = 0
        for step in steps:
            if step == "out" and not stage.program.paused:
                count += 1
                stage.hub.received(b"%02d" % (count % 100))
            elif step.endswith("stall"):
                (other if step.startswith("other") else eye).stalled = True
            elif step.endswith("drain"):
                who, its = (other, other_attachment) if step.startswith("other") else (eye, attachment)
                who.stalled = False
                its.drained()
        eye.stalled = False
        attachment.drained()
        self.assertFalse(stage.program.paused)
        whole = b"".join(b"%02d" % (i % 100) for i in range(1, count + 1))
        last = eye.seen.rpartition(b"<80 24 0:")[2].replace(b">", b"")
        self.assertEqual(last, whole)


class PausingTests(HubTests):
    """When the program has to wait."""

    def test_one_driver_is_followed_like_a_terminal(self) -> None:
        eye, attachment = self.stage.attach()
        eye.stalled = True
        self.hub.received(b"x")
        self.assertTrue(self.program.paused)
        eye.stalled = False
        attachment.drained()
        self.assertFalse(self.program.paused)

    def test_only_when_everybody_is_full(self) -> None:
        (eye, _), (other, attachment) = self.stage.attach(), self.stage.attach(Mode.OBSERVE)
        eye.stalled = True
        self.hub.received(b"x")
        self.assertFalse(self.program.paused)
        other.stalled = True
        self.hub.received(b"x")
        self.assertTrue(self.program.paused)
        attachment.detach()
        self.assertTrue(self.program.paused)

    def test_who_leaves_lets_it_go_on(self) -> None:
        eye, attachment = self.stage.attach()
        eye.stalled = True
        self.hub.received(b"x")
        attachment.detach()
        self.assertFalse(self.program.paused)

    def test_a_new_viewer_lets_it_go_on(self) -> None:
        eye, _ = self.stage.attach()
        eye.stalled = True
        self.hub.received(b"x")
        self.stage.attach(Mode.OBSERVE)
        self.assertFalse(self.program.paused)

    def test_those_who_only_look_on_never_stop_it(self) -> None:
        eye, _ = self.stage.attach(Mode.OBSERVE)
        eye.stalled = True
        for _ in range(100):
            self.hub.received(b"0123456789")
        self.assertFalse(self.program.paused)

    def test_with_nobody_there_it_runs_on(self) -> None:
        self.hub.received(b"x" * 1000)
        self.assertFalse(self.program.paused)

    def test_a_program_that_does_not_read_stops_the_keyboards(self) -> None:
        (eye, _), (observer, _) = self.stage.attach(), self.stage.attach(Mode.OBSERVE)
        self.hub.input_full(True)
        late, _ = self.stage.attach()
        self.assertEqual((eye.held, late.held, observer.held), (True, True, False))
        self.hub.input_full(False)
        self.assertEqual((eye.held, late.held), (False, False))


class TypingTests(HubTests):
    """Input."""

    def test_a_drivers_keys_reach_the_program(self) -> None:
        _, attachment = self.stage.attach()
        attachment.typed(b"ls\r")
        self.assertEqual(self.program.typed, b"ls\r")

    def test_an_observers_do_not(self) -> None:
        _, attachment = self.stage.attach(Mode.OBSERVE)
        attachment.typed(b"ls\r")
        self.assertEqual(self.program.typed, b"")

    def test_of_two_terminals_one_answers(self) -> None:
        (_, first), (_, second) = self.stage.attach(), self.stage.attach()
        for attachment in (first, second):
            attachment.typed(b"\x1b[?62c")
        self.assertEqual(self.program.typed, b"\x1b[?62c")
        first.typed(b"x\x1b[I")
        second.typed(b"\x1b[?62c")
        self.assertEqual(self.program.typed, b"\x1b[?62cx\x1b[I")

    def test_who_comes_after_a_key_is_the_one_in_use(self) -> None:
        _, first = self.stage.attach()
        first.typed(b"x")
        self.stage.attach(columns=100, rows=40)
        self.clock.advance(1)
        self.assertEqual(self.hub.size, (100, 40))

    def test_who_resizes_after_a_key_has_the_size(self) -> None:
        (_, first), (_, second) = self.stage.attach(), self.stage.attach()
        first.typed(b"x")
        first.typed(b"y")
        second.resized(100, 40)
        self.clock.advance(1)
        self.assertEqual(self.hub.size, (100, 40))

    def test_when_the_one_in_use_leaves_any_other_answers(self) -> None:
        (_, first), (_, second) = self.stage.attach(), self.stage.attach()
        second.detach()
        first.typed(b"\x1b[?62c")
        self.assertEqual(self.program.typed, b"\x1b[?62c")

    def test_what_counts_as_activity(self) -> None:
        _, attachment = self.stage.attach()
        times = []
        for act in (
            lambda: self.hub.received(b"x"),
            lambda: attachment.typed(b"k"),
            lambda: attachment.typed(b"\x1b[?62c"),
            lambda: self.hub.bell("x"),
            lambda: attachment.resized(10, 10),
        ):
            self.clock.advance(10)
            act()
            times.append(self.hub.active)
        self.clock.advance(1)
        self.assertEqual(times, [10, 20, 20, 20, 20])


class SizeTests(HubTests):
    """The program's terminal has the size of the driver in use."""

    def settle(self) -> list[tuple[int, int]]:
        self.clock.advance(RESIZE_SECONDS)
        sizes, self.program.sizes = self.program.sizes, []
        return sizes

    def test_attaching_sets_it_before_the_first_redraw(self) -> None:
        eye = Eye()
        self.hub.attach(eye, Mode.DRIVE, 100, 30)
        self.assertEqual((self.program.sizes, self.hub.size), ([(100, 30)], (100, 30)))
        self.assertEqual(eye.seen, b"<100 30 1:>")
        self.settle()

    def test_an_observer_of_another_size_is_drawn_afresh(self) -> None:
        eye, attachment = self.stage.attach(Mode.OBSERVE)
        self.hub.received(b"x")
        attachment.resized(100, 40)
        self.hub.received(b"y")
        self.assertEqual(eye.seen, b"x<100 40 0:x>y")

    def test_also_if_it_is_being_drawn(self) -> None:
        eye, attachment = self.stage.attach(Mode.OBSERVE)
        self.stage.screen.slow = True
        attachment.resized(60, 15)
        attachment.resized(100, 40)
        self.hub.received(b"x")
        self.stage.screen.answer()
        self.stage.screen.answer()
        self.hub.received(b"y")
        self.assertEqual(eye.seen, b"<60 15 0:><100 40 0:x>y")

    def test_an_observer_sets_nothing(self) -> None:
        _, attachment = self.stage.attach(Mode.OBSERVE, 10, 10)
        attachment.resized(20, 20)
        self.assertEqual(self.settle(), [])

    def test_the_last_one_in_use_has_it(self) -> None:
        (_, first), (_, second) = self.stage.attach(columns=100), self.stage.attach(columns=120)
        self.assertEqual(self.settle(), [(100, 24), (120, 24)])
        first.typed(b"x")
        self.assertEqual(self.settle(), [(100, 24)])
        second.typed(b"\x1b[I")
        self.assertEqual(self.settle(), [])

    def test_a_storm_of_changes_comes_to_the_last_one(self) -> None:
        _, attachment = self.stage.attach()
        for columns in range(1, 500):
            attachment.resized(columns, 24)
        self.assertEqual(self.program.sizes, [(1, 24)])
        self.assertEqual(self.settle(), [(1, 24), (499, 24)])
        self.assertEqual(self.settle(), [])

    def test_sizes_that_cannot_be(self) -> None:
        _, attachment = self.stage.attach(columns=0, rows=0)
        self.assertEqual(self.hub.size, (80, 24))
        attachment.resized(65535, 65535)
        self.assertEqual(self.settle(), [(1000, 500)])
        attachment.resized(-1, 0)
        self.assertEqual(self.settle(), [(80, 24)])

    def test_a_change_back_is_none(self) -> None:
        _, attachment = self.stage.attach()
        attachment.resized(90, 24)
        attachment.resized(100, 24)
        attachment.resized(90, 24)
        self.assertEqual(self.settle(), [(90, 24)])


class EndTests(HubTests):
    """The program ends."""

    def test_terminals_are_restored_and_the_reason_is_given(self) -> None:
        eye, _ = self.stage.attach()
        self.hub.received(b"bye")
        self.hub.ended(ProgramExit(7, "ended with status 7"))
        self.hub.ended(ProgramExit(8, "again"))
        self.assertEqual((eye.seen, eye.end), (b"bye" + RESTORE, ("ended with status 7", 7)))
        self.assertEqual(self.hub.over, ProgramExit(7, "ended with status 7"))

    def test_a_slow_viewer_sees_the_end_of_the_output(self) -> None:
        eye, attachment = self.stage.attach()
        eye.stalled = True
        self.hub.received(b"1")
        self.hub.received(b"2")
        self.hub.ended(ProgramExit(0))
        self.assertEqual((eye.seen, eye.end), (b"1", None))
        eye.stalled = False
        attachment.drained()
        self.assertEqual((eye.seen, eye.end), (b"12" + RESTORE, ("", 0)))

    def test_what_a_slow_viewer_types_after_the_end_goes_nowhere(self) -> None:
        eye, attachment = self.stage.attach()
        eye.stalled = True
        self.hub.received(b"1")
        self.hub.ended(ProgramExit(0))
        attachment.typed(b"x")
        attachment.resized(10, 10)
        self.assertEqual((self.program.typed, self.program.sizes), (b"", []))
        attachment.detach()
        self.assertIsNone(eye.end)

    def test_nobody_can_attach_any_more(self) -> None:
        self.hub.ended(ProgramExit(137, "out of memory"))
        error = self.assertRaises(NotFound, self.hub.attach, Eye(), Mode.DRIVE, 80, 24)
        self.assertIn("out of memory", str(error))

    def test_no_timer_is_left(self) -> None:
        self.stage.attach(columns=100)
        self.hub.ended(ProgramExit(0))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_its_text_is_still_there(self) -> None:
        self.hub.received(b"LOOP_COMPLETE")
        self.hub.ended(ProgramExit(0))
        self.assertEqual(self.successResultOf(self.hub.text()), "LOOP_COMPLETE")


class BellTests(HubTests):
    """An escalation came."""

    def test_it_rings_and_notifies(self) -> None:
        eye, _ = self.stage.attach()
        self.hub.bell("a question\x1b]0;x\x07 waits\n")
        self.assertEqual(eye.seen, b"\x1b]9;a question ]0;x waits\x1b\\\x07")
        self.assertNotIn("\x07", self.successResultOf(self.hub.text()))

    def test_it_cuts_no_sequence_in_two(self) -> None:
        eye, _ = self.stage.attach()
        self.hub.received(b"\x1b]0;ti")
        self.hub.bell()
        self.hub.received(b"tle\x07")
        self.assertEqual(eye.seen, b"\x1b]0;title\x07\x07")

    def test_who_has_lost_output_hears_it_later(self) -> None:
        eye, attachment = self.stage.attach()
        self.stage.attach()
        eye.stalled = True
        self.hub.received(b"x")
        self.hub.received(b"y" * 200)
        self.hub.bell()
        eye.stalled = False
        eye.new()
        attachment.drained()
        self.assertRegex(eye.new(), rb"\x07<80 24 0:x")
