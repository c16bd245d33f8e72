from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.view.look import ASCII, UNICODE, representable, signs_for


class EncodingTests(SynchronousTestCase):
    def test_signs_follow_the_encoding(self) -> None:
        self.assertIs(signs_for("utf-8"), UNICODE)
        self.assertIs(signs_for("ascii"), ASCII)
        self.assertIs(signs_for("iso-8859-1"), ASCII)
        self.assertIs(signs_for("no such encoding"), ASCII)

    def test_ascii_signs_are_ascii(self) -> None:
        self.assertTrue(all(getattr(ASCII, name).isascii() for name in ASCII.__struct_fields__))

    def test_what_an_encoding_lacks_is_escaped_not_lost(self) -> None:
        self.assertEqual(representable("naïve…", "ascii"), "na\\xefve...")
        self.assertEqual(representable("naïve…", "utf-8"), "naïve…")

    @given(st.text())
    def test_the_result_can_always_be_written(self, text: str) -> None:
        for encoding in ("ascii", "utf-8", "iso-8859-1"):
            representable(text, encoding).encode(encoding)
