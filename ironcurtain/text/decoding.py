"""
The text of files that people write. Every such file is decoded here, so that all are read alike.

Editors of other systems begin files with a byte order mark, end lines with CR LF, or write UTF-16.
"""

from __future__ import annotations

import codecs

from ironcurtain.errors import ConfigurationError

_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def decode_text(source: str, data: bytes) -> str:
    """
    :param source: the file's name, for messages.
    :returns: the text, without a byte order mark, and with ``\\n`` at the ends of lines.
    :raises ConfigurationError: it is not UTF-8; the message names the encoding, if it is known, or the line.
    """
    if (encoding := _wide_encoding(data)) is not None:
        raise ConfigurationError(source, f"is encoded in {encoding}; save it as UTF-8")
    try:
        return _plain(data.decode())
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise ConfigurationError(source, "is not UTF-8 text; save it as UTF-8", line=line) from None


def decode_anyhow(data: bytes) -> str:
    """:returns: the text of a file in any of these encodings, as :func:`decode_text`; wrong bytes become U+FFFD."""
    return _plain(data.decode(_wide_encoding(data) or "utf-8", errors="replace"))


def _plain(text: str) -> str:
    return text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").replace("\r\n", "\n")


def _wide_encoding(data: bytes) -> str | None:
    """:returns: the encoding of a text whose characters have two or four bytes each."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    # Without a mark: the first character is ASCII, so that its other byte is zero, which no text has otherwise.
    first = data[:2]
    if len(first) < 2 or first.count(0) != 1 or len(data) % 2:
        return None
    return "UTF-16-LE" if first[1] == 0 else "UTF-16-BE"
