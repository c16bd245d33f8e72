"""Styled text, and how many columns of a terminal it takes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

Style = Literal["", "dim", "bold", "good", "bad", "warn", "key", "title", "chosen", "old", "new"]
"""
How a piece of text looks: ``key`` is what the person is to type, ``chosen`` the row that keys act on, ``old`` and
``new`` are the sides of a change.
"""


class Span(NamedTuple):
    """A piece of a line. The text is safe to show: escaped, and without line ends."""

    text: str
    style: Style = ""


Line = tuple[Span, ...]
"""One line; an empty one is a blank line."""


def plain(line: Line) -> str:
    """:returns: a line without its styles."""
    return "".join(span.text for span in line)


class Columns:
    """
    Text in columns.

    :param width: how many columns a character takes that is not one of ASCII; those take one.
    """

    def __init__(self, width: Callable[[str], int]) -> None:
        self._width = width

    def cells(self, text: str) -> int:
        """:returns: how many columns the text takes."""
        return len(text) if text.isascii() else sum(map(self._width, text))

    def fitting(self, text: str, start: int, width: int) -> int:
        """:returns: the end of the longest part from ``start`` that fits."""
        if text[start : start + width + 1].isascii():
            return min(start + width, len(text))
        used = 0
        for index in range(start, len(text)):
            used += self._width(text[index])
            if used > width:
                return index
        return len(text)

    def wrap(self, text: str, width: int) -> Iterator[str]:
        """
        Break text into pieces of at most ``width`` columns, at spaces where there are any near; nothing is left out but
        the space at which it is broken.
        """
        width, start = max(width, 2), 0
        while (end := self.fitting(text, start, width)) < len(text):
            space = text.rfind(" ", start + 1, end + 1)
            broken = space if space - start > (end - start) // 2 else end
            yield text[start:broken]
            start = broken + (text[broken] == " ")
        yield text[start:]
