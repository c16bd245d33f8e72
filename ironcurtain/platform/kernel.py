"""Which system this is, and what only the kernel of Linux has."""

from __future__ import annotations

import sys

IS_MACOS = sys.platform == "darwin"
"""Whether this system is macOS."""


def lacking(what: str) -> str | None:
    """
    :param what: what only Linux can do, for people.
    :returns: that this system is another one; ``None`` on Linux.
    """
    if sys.platform == "linux":
        return None
    return f"{what} needs Linux, and this system is {sys.platform}"
