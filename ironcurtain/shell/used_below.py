"""What agents below one have used: a file to which each of them appends a line for each model request."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from ironcurtain.errors import SessionError

T = TypeVar("T", int, float)

MOST_USED: Final = 10**12
"""Most tokens, or US dollars, that an agent below is believed to have used; larger numbers could not be added up."""

USED_LIMIT: Final = 16 * 1024 * 1024
"""Most bytes that agents below may write before the one above looks: some 200,000 model requests."""

CHUNK: Final = 256 * 1024
"""Bytes that are read at a time; a line is shorter."""


class Used(msgspec.Struct, frozen=True):
    """
    What an agent used for one model request, or for several.

    :param counted: tokens of the budget.
    :param cost: in US dollars; ``None``: not known.
    """

    tokens_in: int = 0
    tokens_out: int = 0
    counted: float = 0.0
    cost: float | None = None


class UsedBelow:
    """
    The file, of which only what is new is read.

    :ivar end: how many of its bytes are known: all lines that are whole.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin = self.end = 0
        self._priced = self._unpriced = Used()

    def since(self, begin: int) -> tuple[Used, Used]:
        """
        :param begin: bytes that are counted already.
        :returns: the sums of what stands behind them: where the cost is known, and where it is not.
        :raises SessionError: the file is shorter than what is known of it, or is not what agents write.
        """
        if begin != self._begin:
            self._begin = self.end = begin
            self._priced = self._unpriced = Used()
        try:
            self._read_on()
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
            why = f"what agents below used cannot be read in {self._path}: {e}"
            raise SessionError("MESSAGE_FAILED", why) from e
        return self._priced, self._unpriced

    def append(self, used: Used) -> None:
        """
        Add a line. Others do so at the same time.

        :raises OSError: it cannot be written.
        """
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(self._path, flags, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(used) + b"\n")  # whole: others write there, too
        finally:
            os.close(descriptor)

    def _read_on(self) -> None:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            if self.end:
                raise
            return
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_size < self.end:
                raise OSError("it was changed by others")
            while lines := _lines(os.pread(descriptor, CHUNK, self.end)):
                self._count(lines)
        finally:
            os.close(descriptor)

    def _count(self, lines: bytes) -> None:
        found = [believable(used) for used in _DECODER.decode_lines(lines)]
        self._priced = _sum([self._priced, *(used for used in found if used.cost is not None)])
        self._unpriced = _sum([self._unpriced, *(used for used in found if used.cost is None)])
        self.end += len(lines)
        if self.end - self._begin > USED_LIMIT:
            raise OSError(f"there are more than {USED_LIMIT} bytes")


def believable(said: Used) -> Used:
    """:returns: what an agent below used, between nothing and :data:`MOST_USED`, with the tokens of the budget."""
    cost = None if said.cost is None else float(_bounded(said.cost))
    tokens_in, tokens_out = _bounded(said.tokens_in), _bounded(said.tokens_out)
    return Used(tokens_in, tokens_out, _bounded(said.counted) or tokens_in + tokens_out, cost)


_DECODER: Final = msgspec.json.Decoder(Used)


def _lines(data: bytes) -> bytes:
    """:returns: the lines of it that are whole."""
    whole = data[: data.rfind(b"\n") + 1]
    if not whole and len(data) == CHUNK:
        raise OSError("a line is too long")
    return whole


def _sum(found: Sequence[Used]) -> Used:
    costs = [used.cost for used in found if used.cost is not None]
    return Used(
        sum(used.tokens_in for used in found),
        sum(used.tokens_out for used in found),
        sum(used.counted for used in found),
        sum(costs) if costs else None,
    )


def _bounded(said: T) -> T | int:
    return min(max(said, 0), MOST_USED)
