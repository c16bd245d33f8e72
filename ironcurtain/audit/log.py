"""The writer of the audit log. It writes whole records, syncs them in groups, and refuses to write after an error."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.audit import chain
from ironcurtain.errors import AuditUnavailable
from ironcurtain.process.portability import sync_data
from ironcurtain.secrets.redaction import Redactor

SYNC_SECONDS = 1.0
"""Maximum delay in seconds before a record is synced. A crash of this process loses nothing that it has written."""

TEXT_LIMIT = 64 * 1024
"""Maximum length in characters of a string in a record. Longer ones are cut; a call's digest covers all of it."""

UNREDACTED = frozenset(
    (
        *("callId", "decision", "digest", "durationMs", "number", "outcome", "policyVersion", "requestId", "size"),
        *("estimated", "status", "usage", "version"),
    )
)
"""
Members of records whose values IronCurtain generates: numbers, digests and fixed words. They are not redacted, since
the digits of a digest can look like a card number.
"""

InThread = Callable[[Callable[[], None]], Deferred[None]]


class AuditLog:
    """
    One session's audit log.

    :param path: the file. It is created, or continued if it exists.
    :param session_id: written to the first record.
    :param redactor: redacts every record.
    :param clock: used for the delayed sync.
    :param now: returns seconds since the epoch.
    :param in_thread: runs a blocking function in a thread (``deferToThread``).
    :raises AuditUnavailable: the file cannot be opened, or has an unknown format version.
    """

    log = Logger()

    def __init__(
        self,
        path: Path,
        session_id: str,
        redactor: Redactor,
        clock: IReactorTime,
        now: Callable[[], float],
        in_thread: InThread,
    ) -> None:
        self.path = path
        self._redactor, self._clock, self._now, self._in_thread = redactor, clock, now, in_thread
        self._sequence, self._synced = 0, 0
        self._head, self._last = chain.START, b""
        self._broken: AuditUnavailable | None = None
        self._syncing: Deferred[None] | None = None
        self._waiting: list[tuple[int, Deferred[None]]] = []
        self._later: Any = None
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as e:
            raise AuditUnavailable(f"cannot open the audit log {path}: {e.strerror}") from None
        try:
            self._continue(session_id)
        except BaseException as e:
            self._release()
            if isinstance(e, OSError):
                raise AuditUnavailable(f"cannot read the audit log {path}: {e.strerror}") from None
            raise

    @property
    def head(self) -> str:
        """Digest of the last record's line. It is computed on demand."""
        if self._last:
            self._head, self._last = chain.digest(self._last), b""
        return self._head

    def append(self, kind: str, **fields: Any) -> int:
        """
        Write one record, before the effect that it describes.

        :param fields: JSON values, with names of ours. Long strings are cut, and all except :data:`UNREDACTED` are
            redacted.
        :returns: the record's number, for :meth:`durable`.
        :raises AuditUnavailable: this or an earlier record could not be written.
        """
        if self._broken is not None:
            raise self._broken
        return self._record(kind, self._redacted(fields))

    def extend(self, records: Iterable[tuple[str, dict[str, Any]]]) -> int:
        """
        Write several records with one ``write``; see :meth:`append`.

        :param records: kind and fields of each.
        :returns: the number of the last one.
        :raises AuditUnavailable: these or earlier records could not be written.
        """
        if self._broken is not None:
            raise self._broken
        time, lines, head = chain.timestamp(self._now()), list[bytes](), self.head
        sequence = self._sequence
        for kind, fields in records:
            if lines:
                head = chain.digest(lines[-1])
            sequence += 1
            lines.append(chain.make_line(sequence, time, kind, self._redacted(fields), head))
        return self._append(b"\n".join(lines), lines[-1], sequence)

    def _redacted(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        value = self._redactor.value
        return {name: each if name in UNREDACTED else value(each, TEXT_LIMIT) for name, each in fields.items()}

    def _record(self, kind: str, fields: Mapping[str, Any]) -> int:
        sequence, time = self._sequence + 1, chain.timestamp(self._now())
        line = chain.make_line(sequence, time, kind, fields, self.head)
        return self._append(line, line, sequence)

    def _append(self, lines: bytes, last: bytes, sequence: int) -> int:
        self._write(lines + b"\n")
        self._sequence, self._last = sequence, last
        if self._later is None:
            self._later = self._clock.callLater(SYNC_SECONDS, self._sync_soon)
        return sequence

    def durable(self, sequence: int) -> Deferred[None]:
        """
        :param sequence: a record's number.
        :returns: fires when the record is on disk; fails with :class:`AuditUnavailable` if it cannot be synced.
        """
        if sequence <= self._synced:
            return succeed(None)
        done: Deferred[None] = Deferred()
        if self._broken is not None:
            done.errback(Failure(self._broken))
            return done
        self._waiting.append((sequence, done))
        self._sync()
        return done

    async def close(self) -> None:
        """Sync all records and close the file. Later writes fail."""
        try:
            await self.durable(self._sequence)
        except AuditUnavailable as e:
            self.log.error("{error}", error=e)
        finally:
            self._broken = self._broken or AuditUnavailable(f"the audit log {self.path} is closed")
            self._release()

    def _release(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def _continue(self, session_id: str) -> None:
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            raise AuditUnavailable(f"{self.path} is not a regular file: move it away")
        with open(self.path, "rb") as file:
            first, last = file.readline(), _last_line(file)
        if not last:
            self._record("begin", {"version": chain.FORMAT_VERSION, "session": session_id})
            return
        self._check_version(first)
        line = last.removesuffix(b"\n")
        self._head = chain.digest(line)
        record = chain.read_record(line) if last.endswith(b"\n") else None
        if record is not None:
            self._sequence = record["sequence"]
            self._record("resumed", {"session": session_id})
        else:
            self._seal(last, session_id)

    def _check_version(self, first: bytes) -> None:
        record = chain.read_record(first.removesuffix(b"\n"))
        if record is not None and record.get("version") != chain.FORMAT_VERSION:
            raise AuditUnavailable(f"{self.path} has format version {record.get('version')}: use a newer ironcurtain")

    def _seal(self, last: bytes, session_id: str) -> None:
        torn: list[bytes] = []  # more than one line if an earlier recovery was itself interrupted
        with open(self.path, "rb") as file:
            for line in (raw.removesuffix(b"\n") for raw in file):
                if (record := chain.read_record(line)) is None:
                    torn.append(line)
                else:
                    torn, self._sequence = [], max(self._sequence, record["sequence"])
        if not last.endswith(b"\n"):
            self._write(b"\n")
        fields: dict[str, Any] = {} if self._sequence else {"version": chain.FORMAT_VERSION}
        fields |= {"session": session_id, "tornBytes": sum(map(len, torn)), "tornDigest": chain.torn_digest(torn)}
        self._record("recovered", fields)  # not redacted: a digest can look like a card number

    def _write(self, data: bytes) -> None:
        try:
            written = os.write(self._fd, data)
        except OSError as e:
            self._set_broken(e.strerror or str(e))
        else:
            if written < len(data):
                self._set_broken("the disk is full")
        if self._broken is not None:
            raise self._broken

    def _set_broken(self, why: str) -> None:
        if self._broken is not None:
            return
        self._broken = AuditUnavailable(f"the audit log {self.path} cannot be written ({why}): no further calls")
        self.log.critical("{error}", error=self._broken)
        waiting, self._waiting = self._waiting, []
        for _, done in waiting:
            done.errback(Failure(self._broken))

    def _sync_soon(self) -> None:
        self._later = None
        self._sync()

    def _sync(self) -> None:
        if self._syncing is None and self._broken is None and self._synced < self._sequence:
            covered, fd = self._sequence, self._fd
            self._syncing = self._in_thread(lambda: sync_data(fd))
            self._syncing.addCallbacks(lambda _: self._sync_done(covered), self._sync_failed)

    def _sync_done(self, sequence: int) -> None:
        self._syncing, self._synced = None, sequence
        ready = [done for needed, done in self._waiting if needed <= sequence]
        self._waiting = [(needed, done) for needed, done in self._waiting if needed > sequence]
        if self._waiting:
            self._sync()
        for done in ready:
            done.callback(None)

    def _sync_failed(self, failure: Failure) -> None:
        self._syncing = None
        self._set_broken(failure.getErrorMessage())


def _last_line(file: BinaryIO) -> bytes:
    end = file.seek(0, os.SEEK_END)
    tail = b""
    while end > 0 and b"\n" not in tail[:-1]:
        size = min(end, TEXT_LIMIT)
        end = file.seek(end - size)
        tail = file.read(size) + tail
    return tail[tail.rfind(b"\n", 0, -1) + 1 :]
