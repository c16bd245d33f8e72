"""Symbolic links."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath

LINKS_LIMIT = 40
"""Maximum number of links that are followed (Linux's limit, path_resolution(7))."""


def link_chain(path: str) -> Iterator[str]:
    """:returns: a path, then that with its first link replaced by the link's target, and so on to the real path."""
    for _ in range(LINKS_LIMIT):
        yield path
        parts = PurePath(path).parts
        above = (os.path.join(*parts[:depth]) for depth in range(2, len(parts) + 1))
        if (link := next(filter(os.path.islink, above), None)) is None:
            break
        rest = os.path.relpath(path, link)
        path = os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link), rest))
    yield os.path.realpath(path)


def directories_above(path: str) -> Iterator[str]:
    """:returns: the directories above an absolute path, as it is written. Sessions wait for hundreds of these."""
    while path.strip("/"):
        path = path.rstrip("/").rpartition("/")[0] or "/"
        yield path
