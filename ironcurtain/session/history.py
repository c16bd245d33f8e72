"""The conversation on disk: one turn per line, appended when it ends."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import msgspec

from ironcurtain.session.model import Turn

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Turn)


class History:
    """
    The turns of one session.

    :param path: the file; created with the first turn, continued if it exists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.turns = read_turns(path)
        self._torn = b""

    def append(self, turn: Turn) -> None:
        """
        Add a turn in memory and on disk.

        :raises OSError: the turn is in memory, but not completely on disk.
        """
        self.turns.append(turn)
        line = self._torn + _encoder.encode(turn) + b"\n"
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._torn = b"\n"  # until the line is complete
        try:
            if os.write(fd, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
            self._torn = b""
        finally:
            os.close(fd)


def read_turns(path: Path) -> list[Turn]:
    """:returns: the turns in a file, without lines that a crash left incomplete."""
    turns = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            turns.append(_decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return turns
