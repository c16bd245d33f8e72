"""
Find the files of a session, running or not.

Sessions may keep their files outside of the home; then a small file in the home says where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ironcurtain.errors import NotFound
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.layout import Home, SessionPaths


class Elsewhere(msgspec.Struct, frozen=True, kw_only=True):
    """
    One session.

    :param directory: absolute; other sessions may have used it since.
    """

    version: int = 1
    id: str
    number: int
    directory: str

    @property
    def paths(self) -> SessionPaths:
        """Its files."""
        return SessionPaths(Path(self.directory))


def remember(home: Home, session: Elsewhere) -> None:
    """Say in the home where a session keeps its files."""
    write_atomically(home.sessions / f"{session.id}.json", msgspec.json.encode(session) + b"\n")


def elsewhere(home: Home) -> Iterator[Elsewhere]:
    """:returns: the sessions of a home, also ended ones, with files outside of it; what is damaged is left out."""
    for path in home.sessions.glob("*.json"):
        try:
            yield msgspec.json.decode(path.read_bytes(), type=Elsewhere)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            continue


def session_directory(home: Home, name: str, suits: Callable[[str], bool] | None = None) -> SessionPaths:
    """
    :param name: a session's number, its id or a beginning of it, or ``last``.
    :param suits: says of a kind whether its sessions are meant by ``last``; ``None``: all are.
    :raises NotFound: there is no such session.
    """
    inside = [info for info in snapshots(home) if name != "last" or suits is None or suits(str(info.get("kind")))]
    found = {str(info["id"]): (int(info["number"]), home.session(info["id"])) for info in inside}
    if name != "last" or suits is None:
        found |= {other.id: (other.number, other.paths) for other in elsewhere(home)}
    if name == "last" and found:
        return max(found.values(), key=lambda pair: pair[0])[1]
    chosen = [paths for number, paths in found.values() if str(number) == name]
    chosen = chosen or [paths for key, (_, paths) in found.items() if key.startswith(name)]  # an id may begin so, too
    if len(chosen) != 1:
        what = name if name != "last" else "yet" if suits is None else "that could go on"
        raise NotFound(f"there is no session {what} in {home.sessions}")
    return chosen[0]


def snapshots(home: Home) -> Iterator[dict[str, Any]]:
    """:returns: what ``session.json`` says of each session in the home, also of ended ones: id and number at least."""
    for path in home.sessions.glob("*/session.json"):
        try:
            info = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except (OSError, msgspec.DecodeError):
            continue
        if {"id", "number"} <= info.keys():
            yield info
