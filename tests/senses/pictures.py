"""PNG files for tests, right and wrong."""

from __future__ import annotations

import struct
import zlib


def chunk(name: bytes, data: bytes) -> bytes:
    """:returns: a chunk of a PNG file, with its check sum."""
    return struct.pack("!I", len(data)) + name + data + struct.pack("!I", zlib.crc32(name + data))


def png(width: int, height: int, pixels: bytes | None = None) -> bytes:
    """
    :param pixels: three bytes each, by rows; ``None``: the file claims its size and holds one row of nothing.
    :returns: a PNG file.
    """
    rows = b"\0" * 100 if pixels is None else _rows(width, height, pixels)
    head = struct.pack("!IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _rows(width: int, height: int, pixels: bytes) -> bytes:
    return b"".join(b"\0" + pixels[row * width * 3 : (row + 1) * width * 3] for row in range(height))


def plain(width: int, height: int, colour: bytes = b"\xff\xff\xff") -> bytes:
    """:returns: a PNG file of one colour."""
    return png(width, height, colour * (width * height))
