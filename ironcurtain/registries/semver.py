"""The order of versions (Semantic Versioning 2.0.0, section 11)."""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(
    r"v?(\d{1,16})\.(\d{1,16})\.(\d{1,16})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?", re.ASCII
)

Precedence = tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]
"""Compares as versions do."""


def precedence(version: str) -> Precedence | None:
    """
    :returns: the rank of a version among others, whose second member says whether it is a release; ``None`` if it is no
        such version.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        return None
    numbers = int(match[1]), int(match[2]), int(match[3])
    parts = match[4].split(".") if match[4] else ()
    return numbers, not parts, tuple(map(_rank, parts))


def _rank(part: str) -> tuple[bool, int, str]:
    """:returns: the rank of a part of a pre-release: numbers of any length before words."""
    number = part.lstrip("0")
    return (False, len(number), number) if part.isdigit() else (True, 0, part)
