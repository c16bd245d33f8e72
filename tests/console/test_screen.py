"""urwid on a byte channel."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.console.layout import Frame
from ironcurtain.console.screen import ChannelScreen
from ironcurtain.console.state import Shown
from ironcurtain.text.columns import Span
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


class ColourTests(SynchronousTestCase):
    """What is sent for text that is dim, by the viewer's environment."""

    def test_dim_text_has_a_gray_of_256_colours_between_dark_and_light_backgrounds(self) -> None:
        for environ in ({"TERM": "xterm-256color"}, {"TERM": "xterm", "COLORTERM": "truecolor"}):
            self.assertIn(b"\x1b[0;38;5;244;49mdim", self.sent(**environ), environ)

    def test_dim_text_is_as_other_text_where_there_are_sixteen_colours(self) -> None:
        for term in ("xterm", "linux", "screen"):
            self.assertIn(b"\x1b[0;39;49mdim", self.sent(TERM=term), term)

    def test_terminal_without_colours_gets_none(self) -> None:
        for environ in ({"TERM": "xterm-256color", "NO_COLOR": "1"}, {"TERM": "vt220-m"}):
            self.assertIn(b"\x1b[0;39;49mdim", self.sent(**environ), environ)

    def sent(self, **environ: str) -> bytes:
        """:returns: what draws dim text."""
        terminal = MemoryTerminal(10, 1)
        screen = ChannelScreen(terminal, environ)
        screen.start()
        screen.draw(Frame(((Span("dim", "dim"),),), Shown()), 10, 1)
        screen.stop()
        return terminal.sent
