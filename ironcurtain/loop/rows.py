"""Rows of a terminal as text: cells, and the lines that are wrapped over several rows. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

COMBINED_LIMIT = 16
"""Most characters in one cell (our choice; letters with marks have a few)."""


SPACER = "\0"
"""In the last cell of a row, where a wide character did not fit and went to the next row."""


class Line(NamedTuple):
    """
    A line as the program wrote it, with the rows joined over which it was wrapped.

    :param number: of its first row, since the beginning.
    :param full: whether it fills its last row to the margin, so that the next line may go on with it.
    """

    number: int
    text: str
    full: bool


@dataclass(slots=True)
class Row:
    """
    :param cells: a character each, with what combines with it; empty: the second half of a wide one; :data:`SPACER`.
    :param wraps: whether the next row goes on with it.
    """

    cells: list[str]
    wraps: bool = False
    _text: str | None = None

    @property
    def text(self) -> str:
        """All of it, with blanks up to the margin."""
        if self._text is None:
            self._text = "".join(self.cells).replace(SPACER, "")
        return self._text

    @property
    def full(self) -> bool:
        """Whether it is written up to the margin."""
        return self.cells[-1] != " "

    def written(self, first: int = 0, end: int | None = None) -> bool:
        """:returns: whether there is anything but blanks."""
        part = self.cells[first:end]
        return part.count(" ") != len(part)

    def fill(self, column: int, piece: Sequence[str]) -> None:
        """Write cells where there are blanks."""
        self.cells[column : column + len(piece)] = piece
        self._text = None

    def put(self, column: int, piece: Sequence[str]) -> None:
        """Write cells over what is there."""
        end = column + len(piece)
        self._split(column)
        self._split(end)
        self.fill(column, piece)

    def erase(self, first: int, end: int) -> None:
        """Leave blanks; if they reach the margin, it is wrapped no more."""
        if self.written(first, end):
            self.put(first, [" "] * (end - first))
        self.wraps = self.wraps and end < len(self.cells)

    def insert(self, column: int, piece: Sequence[str]) -> None:
        """Move the rest to the right, over the margin."""
        columns = len(self.cells)
        self._split(column)
        self.cells[column:column] = piece
        self._split(columns)
        del self.cells[columns:]
        self._text = None

    def delete(self, column: int, count: int) -> None:
        """Move the rest to the left."""
        count, self.wraps = min(count, len(self.cells) - column), False
        self._split(column)
        self._split(column + count)
        del self.cells[column : column + count]
        self.cells += [" "] * count
        self._text = None

    def combine(self, column: int, mark: str) -> None:
        """Add a mark to the letter before a column."""
        at = column - 1
        while at > 0 and not self.cells[at]:
            at -= 1
        if at >= 0 and self.cells[at] != " ":
            self.cells[at] = (self.cells[at] + mark)[:COMBINED_LIMIT]
            self._text = None

    def fit(self, columns: int) -> None:
        """Have another number of columns; it is wrapped no more."""
        self._split(columns)
        self.cells = (self.cells + [" "] * (columns - len(self.cells)))[:columns]
        self.wraps, self._text = False, None

    def _split(self, at: int) -> None:
        """Where one half of a wide character goes, the other half goes too."""
        if 0 < at < len(self.cells) and not self.cells[at]:
            self.cells[at - 1] = self.cells[at] = " "


class Unwrapper:
    """
    Joins rows to lines.

    :param index: number of the first row.
    :param limit: most characters that are kept of a line that goes on and on.
    """

    def __init__(self, index: int = 0, limit: int = 256 * 1024) -> None:
        self._limit = limit
        self.index = index
        self._first = index
        self._parts: list[str] = []

    def copy(self) -> Unwrapper:
        """:returns: another one in the same state."""
        twin = Unwrapper(self.index, self._limit)
        twin._first, twin._parts = self._first, list(self._parts)
        return twin

    def add(self, row: Row, last: bool = False) -> Line | None:
        """
        :param last: no row follows.
        :returns: a line, if one ends with this row.
        """
        self.index += 1
        self._parts.append(row.text)
        if row.wraps and not last:
            if len(self._parts) * len(row.cells) > 2 * self._limit:
                self._parts = ["".join(self._parts)[-self._limit :]]
            return None
        line = Line(self._first, "".join(self._parts)[-self._limit :].rstrip(), row.full)
        self._first, self._parts = self.index, []
        return line

    def whole(self, texts: Sequence[str], columns: int, apart: bool) -> list[Line]:
        """
        :param texts: lines that were not cut into rows.
        :param apart: whether they are told apart; else they become one.
        """
        if not apart:
            joined = [Line(self.index, "\n".join(texts), False)]
            self.index += len(texts)
        else:
            joined = []
            for text in texts:
                full = len(text) % columns == 0 and text[-1:] not in ("", " ")
                joined.append(Line(self.index, text.rstrip(), full))
                self.index += max(1, -(-len(text) // columns))
        self._first = self.index
        return joined


@lru_cache(4096)
def width(letter: str) -> int:
    """:returns: how many cells a character takes; 0 for what combines with the one before."""
    if unicodedata.category(letter) in ("Mn", "Me", "Cf") or "\u1160" <= letter <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
