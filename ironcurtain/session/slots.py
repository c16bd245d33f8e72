"""How many sessions with containers may run at once, counted over all processes of a home."""

from __future__ import annotations

from pathlib import Path

from ironcurtain.errors import Unavailable
from ironcurtain.files.locks import FileLock, is_held, locked
from ironcurtain.home.layout import private_directory


class TooMany(Unavailable):
    """As many sessions run as the settings allow."""

    code = "TOO_MANY_SESSIONS"


class Slot:
    """
    A place among the sessions that may run. The kernel frees it when its process dies.

    :param directory: of the locked files, one a session.
    """

    def __init__(self, directory: Path, session_id: str) -> None:
        self._directory, self._lock = directory, FileLock(directory / session_id)

    def take(self, most: int) -> None:
        """
        :param most: how many may run at once; the setting ``limits.max_concurrent_sessions``.
        :raises TooMany: so many run.
        """
        private_directory(self._directory)
        with locked(self._directory / "lock"):
            if (running := self._count()) >= most:
                raise TooMany(
                    f"{running} sessions with containers run, and max_concurrent_sessions in the section [limits] of "
                    f"config.toml allows {most}: end one (ironcurtain stop N), or raise it"
                )
            self._lock.acquire()

    def release(self) -> None:
        """Give the place back; harmless if it is not taken."""
        if self._lock.held:
            self._lock.path.unlink(missing_ok=True)
            self._lock.release()

    def _count(self) -> int:
        running = 0
        for path in self._directory.iterdir():
            if path.name == "lock":
                continue
            if is_held(path):
                running += 1
            else:
                path.unlink(missing_ok=True)  # its process was killed
        return running
