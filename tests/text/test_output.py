from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.text.display import visible
from ironcurtain.text.output import EscapedOutput
from tests.text.visible import invisible

PIECES = (
    b"\x1b]52;c;aGk=\x07", b"\x1b[?1049h", b"\x1bc", b"\x9b6n", b"\r\n", b"\r", b"\n", b"\t", b"\\", b"plain",
    "größer 日本 🙂".encode(), "\u202e\u200b".encode(), b"\xed\xa0\x80", b"\xf0\x9f", b"\xff", b"\xc2\x9b",
)  # fmt: skip
"""Sequences for terminals, line ends, characters, and bytes that are none."""

OUTPUTS = st.lists(st.sampled_from(PIECES) | st.binary(max_size=4)).map(b"".join)


class EscapedOutputTests(SynchronousTestCase):
    def shown(self, *reads: bytes) -> str:
        escaped = EscapedOutput()
        return "".join([escaped.feed(read) for read in reads]) + escaped.feed(b"", last=True)

    def test_what_a_terminal_would_obey(self) -> None:
        self.assertEqual(self.shown(b"\x1b]52;c;aGk=\x07"), "\\x1b]52;c;aGk=\\x07")
        self.assertEqual(self.shown(b"\xc2\x9b6n\x9b6n\b"), "\\x9b6n\\x9b6n\\x08")
        self.assertEqual(self.shown("a\u202eb".encode()), "a\\u202eb")

    def test_ordinary_output(self) -> None:
        self.assertEqual(self.shown("größer\t日本 🙂\r\n\u0435".encode()), "größer\t日本 🙂\n\u0435")

    def test_what_would_write_over_a_line(self) -> None:
        self.assertEqual(self.shown(b"all is well\rrm -rf", b"\r"), "all is well\\x0drm -rf\\x0d")

    def test_text_is_shown_at_once(self) -> None:
        escaped = EscapedOutput()
        self.assertEqual([escaped.feed(each) for each in (b"ready? ", b"\xf0\x9f", b"\x99\x82")], ["ready? ", "", "🙂"])

    @given(st.data(), OUTPUTS)
    def test_any_slicing(self, data: st.DataObject, output: bytes) -> None:
        cuts = sorted(data.draw(st.lists(st.integers(0, len(output)))))
        reads = [output[start:end] for start, end in zip([0, *cuts], [*cuts, len(output)], strict=True)]
        self.assertEqual(self.shown(*reads), self.shown(output))

    @given(OUTPUTS)
    def test_no_control_character_is_left(self, output: bytes) -> None:
        shown = self.shown(output)
        self.assertEqual(invisible(shown), [])
        self.assertTrue(all(c in "\n\t" or unicodedata.category(c) != "Cc" for c in shown), ascii(shown))
        self.assertEqual(visible(shown), shown)
