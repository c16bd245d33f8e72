"""A hub whose only viewer's terminal gets much output past it."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.backlog import BACKLOG_LIMIT, REST_SECONDS
from ironcurtain.terminal.model import Ended, Mode
from tests.terminal.doubles import Eye, Stage


class DirectTests(SynchronousTestCase):
    """Much output goes past the hub to the only viewer's terminal."""

    def setUp(self) -> None:
        self.stage = Stage()
        self.hub, self.clock = self.stage.hub, self.stage.clock
        self.eye = Eye()
        self.attachment = self.hub.attach(self.eye, Mode.DRIVE, 80, 24, lambda: 7)
        self.eye.new()

    def test_for_one_who_takes_all(self) -> None:
        self.assertEqual(self.hub.direct(), 7)
        self.eye.stalled = True
        self.hub.received(b"x")
        self.assertIsNone(self.hub.direct())
        self.eye.stalled = False
        self.attachment.drained()
        self.assertEqual(self.hub.direct(), 7)

    def test_not_before_the_screen_is_drawn(self) -> None:
        self.attachment.detach()
        self.stage.screen.slow = True
        self.hub.attach(self.eye, Mode.DRIVE, 80, 24, lambda: 7)
        self.assertIsNone(self.hub.direct())
        self.stage.screen.answer()
        self.assertEqual(self.hub.direct(), 7)

    def test_nor_for_several_or_none_or_one_who_has_no_terminal(self) -> None:
        _, other = self.stage.attach()
        self.assertIsNone(self.hub.direct())
        self.attachment.detach()
        self.assertIsNone(self.hub.direct())
        other.detach()
        self.assertIsNone(self.hub.direct())

    def test_nor_while_a_bell_waits_for_the_end_of_a_sequence(self) -> None:
        self.hub.received(b"\x1b]0;ti")
        self.hub.bell()
        self.assertIsNone(self.hub.direct())
        self.hub.received(b"tle\x07")
        self.assertEqual(self.hub.direct(), 7)

    def test_nor_while_too_much_is_put_off(self) -> None:
        self.hub.relayed(b"x" * BACKLOG_LIMIT)
        self.assertIsNone(self.hub.direct())
        self.clock.pump([REST_SECONDS] * 2)
        self.assertEqual(self.hub.direct(), 7)

    def test_who_comes_later_sees_it(self) -> None:
        self.hub.received(b"first ")
        self.hub.relayed(b"second ")
        self.hub.received(b"third ")
        eye = Eye()
        self.hub.attach(eye, Mode.OBSERVE, 80, 24)
        self.hub.received(b"fourth")
        self.assertEqual(eye.seen, b"<80 24 1:first second third >fourth")
        self.assertEqual(self.eye.seen, b"first third fourth")

    def test_a_bell_is_put_behind_it(self) -> None:
        self.hub.relayed(b"\x1b]0;ti")
        self.hub.bell()
        self.assertEqual(self.eye.seen, b"")
        self.hub.received(b"tle\x07")
        self.assertEqual(self.eye.seen, b"tle\x07\x07")

    def test_it_is_in_the_text(self) -> None:
        self.hub.relayed(b"LOOP_COMPLETE")
        self.assertEqual(self.successResultOf(self.hub.text()), "LOOP_COMPLETE")

    def test_at_the_end_nothing_is_put_off(self) -> None:
        done = list[int]()
        self.hub.in_order(lambda: done.append(1))
        self.hub.relayed(b"x")
        self.hub.in_order(lambda: done.append(2))
        self.assertEqual(done, [])
        self.hub.ended(Ended(0))
        self.assertEqual((done, self.clock.getDelayedCalls()), ([1, 2], []))

    def test_it_counts_as_activity(self) -> None:
        self.clock.advance(5)
        self.hub.relayed(b"x")
        self.assertEqual(self.hub.active, 5)
