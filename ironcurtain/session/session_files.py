"""The files of a session that its process owns: the lock, the log, and the description for others."""

from __future__ import annotations

import msgspec
from twisted.logger import Logger

from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import FileLock
from ironcurtain.process.accounts import Account
from ironcurtain.session.identity import Identity
from ironcurtain.session.model import SessionInfo
from ironcurtain.session.parts import Services
from ironcurtain.session.records import SessionLog, make_directories


class SessionFiles:
    """
    :ivar log: takes lines while the files are open.
    :ivar spoken: makes lines of what the agent says and changes.
    """

    _log = Logger()

    def __init__(self, known: Identity, services: Services) -> None:
        self._known, self._services = known, services
        self._lock = FileLock(known.paths.lock)
        self.log = SessionLog(known.paths.log, services.now, services.redactor)
        self.spoken = services.spoken()

    async def open(self, info: SessionInfo) -> Account:
        """
        Make the session's directories, and lock them.

        :returns: the account of its programs.
        """
        known = self._known
        account = make_directories(known.id, known.number, known.request, known.paths, self._services, self._lock)
        try:
            self.save(info)
            self.log.open()
        except BaseException:
            self._lock.release()
            raise
        return account

    def close(self) -> None:
        """Close the log, and release the lock."""
        self.log.close()
        self._lock.release()

    def save(self, info: SessionInfo) -> None:
        """:raises OSError: the description cannot be written."""
        write_atomically(self._known.paths.snapshot, msgspec.json.encode(info) + b"\n")

    def try_to_save(self, info: SessionInfo) -> None:
        """Write the description; a failure is only logged."""
        try:
            self.save(info)
        except OSError as e:
            self._log.error("session {number} is not described on disk: {error}", number=info.number, error=e)
