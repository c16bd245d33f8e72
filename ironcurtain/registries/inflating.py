"""Inflate a document as it arrives, within a limit: a small compressed one can be of any size inflated."""

from __future__ import annotations

import zlib
from typing import Any, Final

from ironcurtain.registries.fetching import Unusable

_GZIP: Final = 16 + zlib.MAX_WBITS
"""For zlib: the gzip format only."""


class Inflating:
    """
    :param host: for messages.
    :param coding: value of the Content-Encoding header; empty if there is none.
    :param limit: maximum size in bytes once inflated.
    :raises Unusable: the coding is unknown.
    """

    def __init__(self, host: str, coding: str, limit: int) -> None:
        if (coding := coding.strip().lower()) not in ("", "identity", "gzip", "x-gzip"):
            raise Unusable(f"{host} answers in an encoding that was not asked for")
        self._host, self._limit = host, limit
        self._inflater: Any = zlib.decompressobj(_GZIP) if coding.endswith("gzip") else None
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """:raises Unusable: the document is too large, or is no gzip."""
        inflater = self._inflater
        if inflater is None:
            self._add(data)
            return
        try:
            while data:
                if inflater.eof:
                    raise Unusable(f"{self._host} sends more than a compressed document")
                self._add(inflater.decompress(data, self._limit - self._size + 1))
                data = inflater.unconsumed_tail or inflater.unused_data
        except zlib.error:
            raise Unusable(f"{self._host} sends a document that cannot be decompressed") from None

    def whole(self) -> bytes:
        """
        :returns: the document.
        :raises Unusable: its end is missing.
        """
        if self._inflater is not None and not self._inflater.eof:
            raise Unusable(f"{self._host} sends a document whose end is missing")
        return b"".join(self._pieces)

    def _add(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._limit:
            raise Unusable(f"{self._host} sends a document of more than {self._limit // 1_000_000} MB")
        self._pieces.append(data)
