"""urwid on a byte channel."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.console.screen import ChannelScreen
from tests.console.doubles import MemoryTerminal


class InputTests(SynchronousTestCase):
    """What is heard of bytes that arrive in any slicing."""

    def setUp(self) -> None:
        self.terminal = MemoryTerminal(80, 24)
        self.screen = ChannelScreen(self.terminal, {"TERM": "xterm"})

    def test_sequence_cut_between_reads_is_one_key(self) -> None:
        self.assertEqual([self.screen.decode(piece) for piece in (b"\x1b", b"[6", b"~a")], [[], [], ["page down", "a"]])
        self.assertFalse(self.screen.waits)

    def test_escape_that_nothing_follows_is_a_key(self) -> None:
        self.assertEqual(self.screen.decode(b"\x1b"), [])
        self.assertTrue(self.screen.waits)
        self.assertEqual(self.screen.decode(), ["esc"])
        self.assertEqual(self.screen.decode(b"j"), ["j"])

    def test_character_cut_between_reads_is_one_key(self) -> None:
        self.assertEqual([self.screen.decode(piece) for piece in (b"\xe2\x82", b"\xacz")], [[], ["€", "z"]])

    def test_kernels_terminal_has_no_mouse(self) -> None:
        """urwid would run a helper of this machine for it."""
        self.assertFalse(ChannelScreen(self.terminal, {"TERM": "linux"}).has_mouse)
        self.assertTrue(self.screen.has_mouse)
