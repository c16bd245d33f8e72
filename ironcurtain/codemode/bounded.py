"""Keep the beginning and the end of a text that may be endless."""

from __future__ import annotations

HEAD_SHARE = 0.8
"""Share of the limit that goes to the beginning; the rest goes to the end (as in other code modes)."""


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
        """How many bytes were left out so far."""
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
    """The text, of which at most ``limit`` bytes are kept."""
    made = Bounded(limit)
    made.write(text)
    return made


def bounded(text: str, limit: int) -> str:
    """The text, or its beginning and end if it has more than ``limit`` bytes."""
    return kept(text, limit).text()


def shown(value: object, limit: int) -> Bounded | None:
    """A program's value for the model to read: a string as it is, else as Python writes it; ``None`` for ``None``."""
    if value is None:
        return None
    if isinstance(value, str):
        return kept(value, limit)
    try:
        return kept(repr(value), limit)
    except RecursionError:
        return kept("(a value nested too deeply to be shown)", limit)
