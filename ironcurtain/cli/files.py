"""Read a file, and follow it while it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from ironcurtain.errors import NotFound

LOOK_SECONDS = 0.2
"""Seconds between checks of a followed file."""


def follow(path: Path, on: bool) -> Iterator[bytes]:
    """
    :param on: whether to continue after the end, without a time limit.
    :returns: the lines of a file, with their ends.
    """
    if not path.exists():
        raise NotFound(f"there is no {path}")
    with path.open("rb") as file:
        kept = b""
        while True:
            if line := file.readline():
                kept += line
                if kept.endswith(b"\n"):
                    yield kept
                    kept = b""
            elif on:
                time.sleep(LOOK_SECONDS)
            else:
                if kept:
                    yield kept
                return
