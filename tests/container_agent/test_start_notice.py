"""What a screen shows while the agent shows nothing yet."""

from __future__ import annotations

from pyghostty import Terminal  # type: ignore[import-untyped, unused-ignore]
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container_agent.screen import BLANK_SECONDS, StartNotice
from ironcurtain.terminal.model import Mode
from tests.terminal.doubles import Eye, Stage


class NoticeTests(SynchronousTestCase):
    """An agent that takes long to draw its screen."""

    def setUp(self) -> None:
        self.stage, self.eye = Stage(), Eye()
        self.stage.hub.attach(self.eye, Mode.DRIVE, 80, 24)
        self.eye.seen = b""
        self.notice = StartNotice(self.stage.hub, self.stage.clock, "Claude Code")

    def shown(self) -> tuple[str, tuple[int, int]]:
        """:returns: what a person sees, and where the cursor is."""
        emulator = Terminal(80, 24)
        emulator.feed(self.eye.seen)
        return str(emulator.text()), emulator.cursor

    def test_one_that_stays_blank_says_that_the_agent_starts(self) -> None:
        self.notice.received(b"\x1b[?25l\x1b[3;3H")
        self.stage.clock.advance(BLANK_SECONDS)
        self.assertIn("Claude Code is starting ...", self.shown()[0])
        self.notice.received(b"\x1b[?2004h")
        self.assertEqual(self.shown(), ("", (2, 2)))
        self.stage.clock.advance(BLANK_SECONDS)
        self.assertIn("Claude Code is starting ...", self.shown()[0])
        self.notice.received(b"hello")
        self.assertEqual(self.shown(), ("\n\n  hello", (7, 2)))
        self.stage.clock.advance(10 * BLANK_SECONDS)
        self.assertEqual(self.shown(), ("\n\n  hello", (7, 2)))

    def test_one_that_shows_something_soon_is_left_alone(self) -> None:
        self.notice.received(b"hello")
        self.stage.clock.advance(10 * BLANK_SECONDS)
        self.assertEqual(self.eye.seen, b"hello")

    def test_one_that_ends_before_it_shows_anything(self) -> None:
        self.stage.clock.advance(BLANK_SECONDS)
        self.notice.close()
        self.notice.close()
        self.stage.clock.advance(10 * BLANK_SECONDS)
        self.assertEqual(self.shown(), ("", (0, 0)))
