"""How files that people write are decoded."""

from __future__ import annotations

import codecs

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.text.decoding import decode_anyhow, decode_text


class DecodingTests(SynchronousTestCase):
    def refused(self, data: bytes) -> str:
        """:returns: the message that bytes are refused with."""
        return str(self.assertRaises(ConfigurationError, decode_text, "f.toml", data))

    def test_utf8_is_read_with_and_without_a_byte_order_mark(self) -> None:
        for data in (b"x = 'caf\xc3\xa9'\n", codecs.BOM_UTF8 + b"x = 'caf\xc3\xa9'\n"):
            self.assertEqual(decode_text("f.toml", data), "x = 'café'\n")
            self.assertEqual(decode_anyhow(data), "x = 'café'\n")

    def test_line_ends_of_other_systems_become_newlines(self) -> None:
        self.assertEqual(decode_text("f.toml", b"a\r\nb\n\r\n"), "a\nb\n\n")
        self.assertEqual(decode_text("f.toml", b"a\rb"), "a\rb")

    def test_wide_encodings_are_named(self) -> None:
        for encoding in ("UTF-16", "UTF-16-LE", "UTF-16-BE", "UTF-32"):
            for text in ("version = 1\r\n", '{"mcpServers": {}}'):
                data = text.encode(encoding)
                self.assertEqual(self.refused(data), f"f.toml: is encoded in {encoding}; save it as UTF-8")
                self.assertEqual(decode_anyhow(data), text.replace("\r\n", "\n"))
        for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            self.assertIn("UTF-16", self.refused(mark))

    def test_other_encodings_are_refused_with_the_line(self) -> None:
        self.assertEqual(
            self.refused("a\nb = 'café'\n".encode("latin-1")), "f.toml:2: is not UTF-8 text; save it as UTF-8"
        )
        self.assertEqual(decode_anyhow(b"caf\xe9"), "caf\N{REPLACEMENT CHARACTER}")

    def test_only_the_first_mark_is_removed(self) -> None:
        self.assertEqual(decode_text("f", 2 * codecs.BOM_UTF8 + b"x"), "\N{ZERO WIDTH NO-BREAK SPACE}x")

    @given(st.binary())
    def test_any_bytes_are_read_or_refused(self, data: bytes) -> None:
        decode_anyhow(data)
        try:
            decode_text("f", data)
        except ConfigurationError:
            return

    @given(st.text().filter(lambda text: "\0" not in text and "\r" not in text and text[:1] != "\ufeff"))
    def test_any_text_is_read_as_it_was_written(self, text: str) -> None:
        for data in (text.encode(), codecs.BOM_UTF8 + text.encode(), text.replace("\n", "\r\n").encode()):
            self.assertEqual(decode_text("f", data), text)
