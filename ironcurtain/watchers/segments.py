"""Cut endless sound into pieces in which something may be heard. Only how loud it is, is looked at here."""

from __future__ import annotations

import array
import sys

from ironcurtain.senses.model import RATE, SAMPLE

BLOCK = RATE * SAMPLE // 2
"""Bytes of half a second, which is loud or quiet as a whole."""

LOUD = 400
"""The largest sample of a quiet block, of 32767: what a microphone gives in a quiet room."""

QUIET_BLOCKS = 2
"""Quiet blocks that end a piece."""

LONGEST = 60 * BLOCK
"""Maximum size in bytes of a piece: half a minute. A longer sound is several."""


class Segments:
    """The pieces of one source of sound."""

    def __init__(self) -> None:
        self._rest, self._piece, self._before, self._quiet = bytearray(), bytearray(), b"", 0

    def feed(self, sound: bytes) -> list[bytes]:
        """
        Take sound as it comes, in any slicing.

        :param sound: of one channel: :data:`~ironcurtain.senses.model.RATE`,
            :data:`~ironcurtain.senses.model.SAMPLE`.
        :returns: the pieces that end in it, each with half a second before its first loud sample, if there was that.
        """
        self._rest += sound
        pieces: list[bytes] = []
        while len(self._rest) >= BLOCK:
            block = bytes(self._rest[:BLOCK])
            del self._rest[:BLOCK]
            if piece := self._take(block):
                pieces.append(piece)
        return pieces

    def forget(self) -> None:
        """What has been heard so far counts no more."""
        self._rest.clear()
        self._piece.clear()
        self._before, self._quiet = b"", 0

    def _take(self, block: bytes) -> bytes:
        loud = is_loud(block)
        if not self._piece and not loud:
            self._before = block
            return b""
        if not self._piece:
            self._piece += self._before
        self._piece += block
        self._quiet = 0 if loud else self._quiet + 1
        if self._quiet < QUIET_BLOCKS and len(self._piece) < LONGEST:
            return b""
        piece, self._before, self._quiet = bytes(self._piece), block if not loud else b"", 0
        self._piece.clear()
        return piece


def is_loud(block: bytes) -> bool:
    """:returns: whether a block has a sample above :data:`LOUD`."""
    samples = array.array("h", block)
    if sys.byteorder == "big":
        samples.byteswap()
    return max(samples) > LOUD or min(samples) < -LOUD
