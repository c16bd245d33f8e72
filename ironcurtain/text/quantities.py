"""Read and write quantities: lengths of time, and sizes of files."""

from __future__ import annotations

import re

from ironcurtain.errors import UsageError

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
"""Seconds of each unit of time."""

_AGE = re.compile(r"([0-9]{1,6})([smhdw])")


def read_age(text: str) -> float:
    """
    :param text: such as ``7d``: a whole number of seconds, minutes, hours, days or weeks.
    :returns: seconds.
    :raises UsageError: it is something else.
    """
    if (found := _AGE.fullmatch(text.strip())) is None:
        raise UsageError(f"{text!r} is no length of time: write a number with s, m, h, d or w, such as 7d")
    return int(found[1]) * UNITS[found[2]]


def size_text(size: int) -> str:
    """:returns: a number of bytes for people."""
    if size < 1000:
        return f"{size} B"
    units = (("kB", 1000), ("MB", 1000**2), ("GB", 1000**3))
    unit, factor = next((pair for pair in units if size < 999.5 * pair[1]), units[-1])
    value = size / factor
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"


def noun(count: int, one: str, several: str = "") -> str:
    """
    :param several: the plural, if it is not ``one`` with an s.
    :returns: the word for so many things, such as ``file`` or ``files``.
    """
    return one if count == 1 else several or f"{one}s"


def counted(count: int, one: str, several: str = "") -> str:
    """
    :param several: as for :func:`noun`.
    :returns: a number of things, such as ``1 file`` or ``2 files``.
    """
    return f"{count:,} {noun(count, one, several)}"
