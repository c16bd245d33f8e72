"""Keep the beginning and the end of a text of any length."""

from __future__ import annotations

HEAD_SHARE = 0.8
"""Share of the limit for the beginning; the rest is for the end (as in other code modes)."""


class Bounded:
    """
    Collects text; keeps at most a number of bytes of it.

    :param limit: in bytes of UTF-8.
    """

    def __init__(self, limit: int) -> None:
        self._head_limit = int(limit * HEAD_SHARE)
        self._tail_limit = limit - self._head_limit
        self._head, self._tail = bytearray(), bytearray()
        self._size = 0

    @property
    def missing(self) -> int:
        """Number of bytes left out so far."""
        return self._size - len(self._head) - len(self._tail)

    def write(self, text: str) -> None:
        """Add text."""
        data = text.encode(errors="replace")
        self._size += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, len(data) - self._tail_limit) :]
        del self._tail[: max(0, len(self._tail) - self._tail_limit)]

    def text(self) -> str:
        """All of the text, or its beginning and end with a note in between of how much was left out."""
        if not self.missing:
            return (self._head + self._tail).decode()
        head, tail = self._head.decode(errors="ignore"), self._tail.decode(errors="ignore")
        return f"{head}\n[... {self.missing} bytes left out ...]\n{tail}"


def kept(text: str, limit: int) -> Bounded:
    """:returns: the text, cut to at most ``limit`` bytes."""
    made = Bounded(limit)
    made.write(text)
    return made


def bounded(text: str, limit: int) -> str:
    """:returns: the text, or its beginning and end if it has more than ``limit`` bytes."""
    return kept(text, limit).text()


def shown(value: object, limit: int) -> Bounded | None:
    """:returns: a program's value for the model: a string unchanged, else its ``repr``; ``None`` for ``None``."""
    if value is None:
        return None
    if isinstance(value, str):
        return kept(value, limit)
    try:
        return kept(repr(value), limit)
    except RecursionError:
        return kept("(a value nested too deeply to be shown)", limit)
