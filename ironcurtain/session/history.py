"""The turns of a session on disk: a line when a turn begins, and one when it ends."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ironcurtain.files.appending import LineFile
from ironcurtain.session.model import Turn, Usage

INTERRUPTED = "interrupted: IronCurtain was ended while this message was worked on"
"""The error of a turn without an end."""


class _Begun(msgspec.Struct, frozen=True, kw_only=True):
    """:param begun: the turn's number."""

    begun: int
    message: str
    timestamp: str


_encoder = msgspec.json.Encoder()
_turn, _begun = msgspec.json.Decoder(Turn), msgspec.json.Decoder(_Begun)


class History:
    """
    The turns of one session.

    :param path: the file; created with the first turn, continued if it exists.
    :ivar first: the first message; empty until there is one.
    """

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path)
        self.turns = _turns(self._file.lines())
        self.first = self.turns[0].message if self.turns else ""

    def begin(self, message: str, timestamp: str) -> None:
        """
        Record on disk that a turn begins.

        :raises OSError: it is not completely on disk.
        """
        self.first = self.first or message
        begun = _Begun(begun=len(self.turns) + 1, message=message, timestamp=timestamp)
        self._file.append(_encoder.encode(begun))

    def append(self, turn: Turn) -> None:
        """
        Add a turn that ended, in memory and on disk.

        :raises OSError: the turn is in memory, but not completely on disk.
        """
        self.turns.append(turn)
        self._file.append(_encoder.encode(turn))


def read_turns(path: Path) -> list[Turn]:
    """:returns: the turns in a file, without lines that a crash left incomplete; one without an end failed."""
    return _turns(LineFile(path).lines())


def _turns(lines: Iterable[bytes]) -> list[Turn]:
    turns: list[Turn] = []
    begun: _Begun | None = None
    for line in lines:
        found = _read(line)
        if isinstance(found, Turn):
            if begun is not None and begun.begun < found.number:
                turns.append(_interrupted(begun))
            turns.append(found)
            begun = None
        elif found is not None:
            if begun is not None and begun.begun < found.begun:
                turns.append(_interrupted(begun))
            begun = found
    return turns if begun is None else [*turns, _interrupted(begun)]


def _read(line: bytes) -> Turn | _Begun | None:
    for decoder in (_turn, _begun):
        try:
            return decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return None


def _interrupted(begun: _Begun) -> Turn:
    unknown = Usage(token_tracking_available=False)
    return Turn(
        number=begun.begun,
        message=begun.message,
        answer="",
        usage=unknown,
        timestamp=begun.timestamp,
        error=INTERRUPTED,
    )
