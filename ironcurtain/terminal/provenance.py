"""Which characters of an input line a person typed, while it is edited."""

from __future__ import annotations

KEY, PASTE = 1, 0
"""Most characters that a key inserts at once, and of those of a paste that count as typed."""


class Provenance:
    """
    Follows a line by its text after each change. What was inserted is known by comparing; the rest keeps its origin.

    :ivar text: the line.
    """

    def __init__(self) -> None:
        self.text, self._typed = "", ""
        """Of each character, whether it was typed: ``t``, or a space."""

    def change(self, text: str, longest: int) -> None:
        """
        The line has changed.

        :param text: all of it, now.
        :param longest: what is new in it counts as typed if it is not longer: :data:`KEY` or :data:`PASTE`.
        """
        start = _common(self.text, text)
        end = _common(self.text[start:][::-1], text[start:][::-1])
        new = len(text) - start - end
        mark = "t" if new <= longest else " "
        self._typed = self._typed[:start] + mark * new + self._typed[len(self.text) - end :]
        self.text = text

    def own(self) -> str:
        """:returns: what was typed, with an end of line wherever something else stands."""
        runs, last = list[str](), " "
        for letter, mark in zip(self.text, self._typed, strict=True):
            if mark == "t":
                runs.append(letter)
            elif last == "t":
                runs.append("\n")
            last = mark
        return "".join(runs)


def _common(first: str, second: str) -> int:
    """:returns: with how many equal characters both begin."""
    low, high = 0, min(len(first), len(second))
    while low < high:  # comparing slices is a hundred times as fast as comparing characters
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
