"""urwid on a byte channel."""

from __future__ import annotations

from typing import Any

import urwid
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.console.screen import ChannelScreen, ReactorLoop
from tests.console.doubles import MemoryTerminal


class InputTests(SynchronousTestCase):
    """What urwid is told of bytes that arrive in any slicing."""

    def setUp(self) -> None:
        self.clock, self.terminal = Clock(), MemoryTerminal(80, 24)
        self.screen = ChannelScreen(self.terminal, {"TERM": "xterm"}, lambda: None)
        self.heard: list[Any] = []
        self.loop: urwid.EventLoop = ReactorLoop(self.clock, self.fail)
        self.screen.hook_event_loop(self.loop, lambda keys, codes: self.heard.extend(keys))

    def test_sequence_cut_between_reads_is_one_key(self) -> None:
        for piece in (b"\x1b", b"[6", b"~a"):
            self.screen.received(piece)
        self.assertEqual(self.heard, ["page down", "a"])

    def test_escape_that_nothing_follows_is_a_key(self) -> None:
        self.screen.received(b"\x1b")
        self.assertEqual(self.heard, [])
        self.clock.advance(1)
        self.assertEqual(self.heard, ["esc"])
        self.screen.received(b"j")
        self.assertEqual((self.heard, self.screen.alone), (["esc", "j"], True))

    def test_input_before_the_start_and_after_the_end_is_kept(self) -> None:
        self.screen.unhook_event_loop(self.loop)
        self.screen.received(b"\xe2\x82")
        self.screen.hook_event_loop(self.loop, lambda keys, codes: self.heard.extend(keys))
        self.screen.received(b"\xacz")
        self.assertEqual(self.heard, ["€", "z"])

    def test_resize_is_told_at_once(self) -> None:
        self.screen.resized()
        self.assertEqual(self.heard, ["window resize"])

    def test_kernels_terminal_has_no_mouse(self) -> None:
        """urwid would run a helper of this machine for it."""
        self.assertFalse(ChannelScreen(self.terminal, {"TERM": "linux"}, lambda: None).has_mouse)
        self.assertTrue(self.screen.has_mouse)
