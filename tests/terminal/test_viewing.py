"""A person at a channel."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound
from ironcurtain.terminal.keys import DETACH, HOLD_SECONDS, QUIT, Keys
from ironcurtain.terminal.model import Mode, ProgramExit
from ironcurtain.terminal.sequences import RESTORE
from ironcurtain.terminal.viewing import Keyboard, Viewing
from tests.terminal.doubles import Stage


class Wire:
    """A channel that remembers."""

    def __init__(self) -> None:
        self.seen = b""
        self.blocked = self.held = False
        self.columns, self.rows = 90, 30

    def write(self, data: bytes) -> None:
        self.seen += data

    def size(self) -> tuple[int, int]:
        return self.columns, self.rows

    def hold(self, full: bool) -> None:
        self.held = full

    def close(self, status: int | None) -> None:
        raise AssertionError("this is left to who made it")


class KeyboardTests(SynchronousTestCase):
    """Reserved keys are taken out, in time."""

    def setUp(self) -> None:
        self.clock, self.forwarded = Clock(), b""
        self.names: list[str] = []
        self.keyboard = Keyboard(Keys((QUIT, DETACH)), self.clock, self.forward, self.names.append)

    def forward(self, data: bytes) -> None:
        self.forwarded += data

    def test_keys(self) -> None:
        for read in (b"ls\r", b"\x1c", b"\x1d", b"d"):
            self.keyboard.received(read)
        self.assertEqual((self.forwarded, self.names), (b"ls\r", ["quit", "detach"]))

    def test_the_first_half_of_a_pair_does_not_wait_for_ever(self) -> None:
        self.keyboard.received(b"\x1d")
        self.clock.advance(HOLD_SECONDS - 0.1)
        self.assertEqual(self.forwarded, b"")
        self.clock.advance(0.1)
        self.assertEqual(self.forwarded, b"\x1d")
        self.keyboard.received(b"d")
        self.assertEqual((self.forwarded, self.names), (b"\x1dd", []))

    def test_once_stopped_nothing_passes(self) -> None:
        self.keyboard.received(b"\x1d")
        self.keyboard.stop()
        self.keyboard.received(b"x")
        self.assertEqual((self.forwarded, self.names, self.clock.getDelayedCalls()), (b"", [], []))


class ViewingTests(SynchronousTestCase):
    """Between a channel and a hub."""

    def setUp(self) -> None:
        self.stage, self.wire = Stage(), Wire()
        self.names: list[str] = []
        self.ends: list[tuple[str, int | None]] = []
        self.viewing = Viewing(
            self.wire,
            self.stage.clock,
            Keys((QUIT, DETACH)),
            self.names.append,
            lambda reason, status: self.ends.append((reason, status)),
        )

    def test_both_ways(self) -> None:
        self.viewing.begin(self.stage.hub, Mode.DRIVE)
        self.stage.hub.received(b"out")
        self.viewing.received(b"in")
        self.assertEqual((self.wire.seen, self.stage.program.typed), (b"<90 30 1:>out", b"in"))
        self.viewing.resized(100, 30)
        self.stage.clock.advance(1)
        self.assertEqual(self.stage.program.sizes, [(90, 30), (100, 30)])

    def test_reserved_keys_of_observers_count_too(self) -> None:
        self.viewing.begin(self.stage.hub, Mode.OBSERVE)
        self.viewing.received(b"x")
        self.viewing.received(b"\x1c")
        self.assertEqual((self.names, self.stage.program.typed), (["quit"], b""))

    def test_a_blocked_channel_is_waited_for(self) -> None:
        self.viewing.begin(self.stage.hub, Mode.DRIVE)
        self.wire.blocked = True
        self.stage.hub.received(b"1")
        self.stage.hub.received(b"2")
        self.assertTrue(self.stage.program.paused)
        self.wire.blocked = False
        self.viewing.drained()
        self.assertFalse(self.stage.program.paused)
        self.assertTrue(self.wire.seen.endswith(b"12"))

    def test_a_program_that_does_not_read(self) -> None:
        self.viewing.begin(self.stage.hub, Mode.DRIVE)
        self.stage.hub.input_full(True)
        self.assertTrue(self.wire.held)

    def test_leaving_restores_and_lets_the_program_go_on(self) -> None:
        self.viewing.begin(self.stage.hub, Mode.DRIVE)
        self.viewing.leave("detached")
        self.viewing.leave("again")
        self.assertTrue(self.wire.seen.endswith(RESTORE))
        self.assertEqual((self.ends, self.stage.hub.over, self.stage.hub.viewers), ([("detached", None)], None, 0))

    def test_the_end(self) -> None:
        self.viewing.begin(self.stage.hub, Mode.DRIVE)
        self.stage.hub.ended(ProgramExit(7, "ended with status 7"))
        self.assertEqual(self.ends, [("ended with status 7", 7)])
        self.assertEqual(self.wire.seen.count(RESTORE), 1)
        self.viewing.received(b"late")
        self.viewing.resized(1, 1)
        self.viewing.drained()
        self.assertEqual(self.stage.program.typed, b"")

    def test_a_lost_channel(self) -> None:
        self.viewing.begin(self.stage.hub, Mode.DRIVE)
        self.viewing.received(b"\x1d")
        self.viewing.lost()
        self.assertEqual((self.ends, self.stage.hub.viewers), ([], 0))
        self.assertNotIn(RESTORE, self.wire.seen)
        self.stage.hub.ended(ProgramExit(0))
        self.assertEqual(self.stage.clock.getDelayedCalls(), [])

    def test_too_late(self) -> None:
        self.stage.hub.ended(ProgramExit(0))
        self.assertRaises(NotFound, self.viewing.begin, self.stage.hub, Mode.DRIVE)
        self.viewing.lost()
