"""Numbers for people: counted across all processes of a home, and never reused."""

from __future__ import annotations

from pathlib import Path

from ironcurtain.errors import ConfigurationError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import locked

MOST_DIGITS = 15
"""A larger number means that the file is damaged."""


class Counter:
    """
    A counter in a file.

    :param path: the file; its lock file is beside it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def next(self) -> int:
        """
        :returns: 1 at first, then one more than any process ever got.
        :raises ConfigurationError: the file does not contain a number.
        """
        with locked(self._path.with_suffix(".lock")):
            number = self._last() + 1
            write_atomically(self._path, b"%d\n" % number)
        return number

    def _last(self) -> int:
        try:
            text = self._path.read_bytes()[: MOST_DIGITS + 2].decode("ascii", "replace").strip()
        except FileNotFoundError:
            return 0
        if not text.isdecimal() or len(text) > MOST_DIGITS:
            raise ConfigurationError(str(self._path), f"must contain a number, not {text[:20]!r}: correct it")
        return int(text)
