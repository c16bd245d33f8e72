"""Escape sequences in a program's output: where they end, and what is left without them."""

from __future__ import annotations

import re

SEQUENCE_LIMIT = 4096
"""Most bytes of a sequence that has not ended, before it no longer counts as one."""

SEQUENCE = re.compile(
    rb"\x1b(?:\[[\x30-\x3f]*[\x20-\x2f]*[\x40-\x7e]"  # control sequences
    rb"|[\]PX^_][^\x07\x18\x1b]*(?:\x07|\x18|\x1b\\|(?=\x1b.))"  # strings: OSC, DCS, SOS, PM, APC
    rb"|[\x20-\x2f]+[\x30-\x7e]|[\x30-\x4f\x51-\x57\x59\x5a\x5c\x60-\x7e])",  # all others
    re.DOTALL,
)
"""ECMA-48, sections 5.3 to 5.6; strings may also end in BEL, as xterm has it."""

_STRING_INTRODUCERS = (b"]", b"P", b"X", b"^", b"_")
_BACKSPACES = re.compile("[^\n\b]\b")
_NO_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def unfinished(data: bytes) -> bytes:
    """:returns: the beginning of a sequence or character at the end of ``data``; empty if it ends between two."""
    start = data.rfind(b"\x1b")
    if start >= 0 and start == len(data) - 1:
        string = data.rfind(b"\x1b", 0, start)  # its end may be cut in two
        if string >= 0 and data.startswith(_STRING_INTRODUCERS, string + 1) and not SEQUENCE.match(data, string):
            start = string
    if start >= 0 and len(data) - start <= SEQUENCE_LIMIT and not SEQUENCE.match(data, start):
        return data[start:]
    return partial_character(data)


def partial_character(data: bytes) -> bytes:
    """:returns: the beginning of a character in UTF-8 at the end of ``data``, if there is one."""
    for size in range(1, min(3, len(data)) + 1):
        byte = data[-size]
        if byte >= 0xC0:
            wanted = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[-size:] if size < wanted and 0xC2 <= byte <= 0xF4 else b""
        if byte < 0x80:
            break
    return b""


def plain(data: bytes) -> str:
    """:returns: the text that is left when sequences are taken out. Where the cursor went is not followed."""
    text = SEQUENCE.sub(b"", data).decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return _NO_TEXT.sub("", _BACKSPACES.sub("", text))
