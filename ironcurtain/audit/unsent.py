"""The heads that a witness lacks, kept in the home until it has them, also beyond the end of their session."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

from ironcurtain.errors import UsageError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.layout import private_directory

KEPT = 256
"""Maximum number of sessions whose heads are sent later; of more, the newest."""

_MARK_DIGITS = 16


class UnsentHeads:
    """
    The newest head of each session that one witness lacks.

    :param directory: of all witnesses' heads; created with the first one.
    :param place: the witness, as the setting ``audit.witness`` has it.
    """

    def __init__(self, directory: Path, place: str) -> None:
        self._directory = directory
        self._mark = hashlib.sha256(place.encode()).hexdigest()[:_MARK_DIGITS]

    def keep(self, session: str, line: bytes) -> None:
        """
        Keep a head in place of an earlier one. If that fails, it is only in the log.

        :param session: id of the session.
        """
        with suppress(OSError, UsageError):
            private_directory(self._directory)
            write_atomically(self._path(session), line)

    def sent(self, session: str, line: bytes) -> None:
        """The witness has a head; a later one stays."""
        path = self._path(session)
        with suppress(OSError):
            if path.read_bytes() == line:
                path.unlink()

    def lines(self) -> list[tuple[str, bytes]]:
        """:returns: the sessions with their heads, oldest first."""
        found = []
        for path in self._directory.glob(f"{self._mark}-*.json"):
            with suppress(OSError):
                session = path.name.removeprefix(f"{self._mark}-").removesuffix(".json")
                found.append((path.stat().st_mtime_ns, session, path.read_bytes()))
        return [(session, line) for _, session, line in sorted(found)[-KEPT:]]

    def _path(self, session: str) -> Path:
        return self._directory / f"{self._mark}-{session}.json"
