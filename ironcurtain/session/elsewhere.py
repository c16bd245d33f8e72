"""Sessions that keep their files outside of the home: a small file in the home says where. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from ironcurtain.home import Home, SessionPaths, write_atomically


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
