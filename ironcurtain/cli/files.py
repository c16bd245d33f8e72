"""Find the directory of a session, running or not, and follow a file in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ironcurtain.errors import NotFound
from ironcurtain.home import Home, SessionPaths

LOOK_SECONDS = 0.2
"""How often a followed file is looked at."""


def session_directory(home: Home, name: str) -> SessionPaths:
    """
    :param name: a session's number, its id or a beginning of it, or ``last``.
    :raises NotFound: there is no such session.
    """
    from ironcurtain.session.elsewhere import elsewhere

    found = {str(info["id"]): (int(info["number"]), home.session(info["id"])) for info in _sessions(home)}
    found |= {other.id: (other.number, other.paths) for other in elsewhere(home)}
    if name == "last" and found:
        return max(found.values(), key=lambda pair: pair[0])[1]
    chosen = [paths for number, paths in found.values() if str(number) == name]
    chosen = chosen or [paths for key, (_, paths) in found.items() if key.startswith(name)]  # an id may begin so, too
    if len(chosen) != 1:
        raise NotFound(f"there is no session {name} in {home.sessions}")
    return chosen[0]


def follow(path: Path, on: bool) -> Iterator[bytes]:
    """
    :param on: whether to go on after the end, for ever.
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


def _sessions(home: Home) -> Iterator[dict[str, Any]]:
    import msgspec

    for path in home.sessions.glob("*/session.json"):
        try:
            info = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.DecodeError):
            continue
        if {"id", "number"} <= info.keys():
            yield info
