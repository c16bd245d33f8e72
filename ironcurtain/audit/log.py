"""The writer of the audit log. It writes whole records, syncs them in groups, and refuses to write after an error."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from ironcurtain.audit import chain
from ironcurtain.audit.checkpoints import Checkpoints
from ironcurtain.audit.file import LogChanged, LogFile
from ironcurtain.audit.syncing import InThread, Syncing
from ironcurtain.errors import AuditUnavailable
from ironcurtain.secrets.redaction import Redactor

if TYPE_CHECKING:
    from ironcurtain.audit.signing import SignedHead, SigningKey

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


def _nobody(_: object) -> None:
    """Nobody listens."""


class AuditLog:
    """
    One session's audit log.

    :param path: the file. It is created, or continued if it exists.
    :param session_id: written to the first record.
    :param redactor: redacts every record.
    :param clock: used for the delayed sync.
    :param now: returns seconds since the epoch.
    :param in_thread: runs a blocking function in a thread (``deferToThread``).
    :param key: signs the log; ``None``: a new log has the format version without signatures.
    :param signed: called with each signed head.
    :param broken: called once, with the reason, when nothing more can be written.
    :param witnesses: names of those that get its signed heads. The log has them, so that one that has none is noticed.
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
        key: SigningKey | None = None,
        signed: Callable[[SignedHead], None] = _nobody,
        broken: Callable[[str], None] = _nobody,
        witnesses: Sequence[str] = (),
    ) -> None:
        self.path, self._redactor, self._now, self._tell_broken = path, redactor, now, broken
        self._sequence, self._head, self._last = 0, chain.START, b""
        self._broken: AuditUnavailable | None = None
        try:
            self._file = LogFile(path)
        except OSError as e:
            raise AuditUnavailable(f"cannot open the audit log {path}: {e.strerror}") from None
        self._syncing = Syncing(self._file, clock, in_thread, self._set_broken)
        self._checkpoints = Checkpoints(key, session_id, clock, self._sign, signed)
        named = self._redacted({"witnesses": list(witnesses)}) if witnesses else {}
        try:
            self._continue({"session": session_id, **named})
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

    @property
    def sequence(self) -> int:
        """Number of the last record."""
        return self._sequence

    @property
    def signed_head(self) -> SignedHead | None:
        """The newest head that was signed here; ``None``: none yet."""
        return self._checkpoints.newest

    @property
    def closed(self) -> bool:
        """Whether no more records can come."""
        return self._file.fd < 0

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

    def append_outcome(self, kind: str, **fields: Any) -> None:
        """
        Write one record of what has happened already, and of which nothing follows. See :meth:`append`.

        A change of the file by others is not looked for, which would take as long as writing: the next record that
        precedes an effect does, and the next sync.
        """
        if self._broken is not None:
            raise self._broken
        self._record(kind, self._redacted(fields), check=False)

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
        at_once = False
        for kind, fields in records:
            if lines:
                head = chain.digest(lines[-1])
            lines.append(chain.make_line(self._sequence + len(lines) + 1, time, kind, self._redacted(fields), head))
            at_once = at_once or kind in chain.SIGNED_AT_ONCE
        return self._append(lines, time, at_once)

    def _redacted(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        value = self._redactor.value
        return {name: each if name in UNREDACTED else value(each, TEXT_LIMIT) for name, each in fields.items()}

    def _record(self, kind: str, fields: Mapping[str, Any], *, check: bool = True) -> int:
        time = chain.timestamp(self._now())
        line = chain.make_line(self._sequence + 1, time, kind, fields, self.head)
        return self._append([line], time, kind in chain.SIGNED_AT_ONCE, check=check)

    def _append(self, lines: list[bytes], time: str, at_once: bool, *, check: bool = True) -> int:
        """
        :param at_once: whether a signature follows in any case.
        :param check: whether to look for changes of the file by others.
        :returns: the number of the last of the lines.
        """
        sequence = self._sequence + len(lines)
        signed = self._checkpoints.sign(sequence, lambda: self._head_after(lines), time, at_once)
        if signed is not None:
            fields = {name: getattr(signed, name) for name in chain.CHECKPOINT_MEMBERS}
            lines = [*lines, chain.make_line(sequence + 1, time, chain.CHECKPOINT, fields, signed.head)]
        self._write(b"\n".join(lines) + b"\n", check=check)
        self._sequence, self._last = sequence + (signed is not None), lines[-1]
        self._syncing.written(self._sequence)
        self._checkpoints.written(self._sequence, signed)
        return sequence

    def _head_after(self, lines: Sequence[bytes]) -> str:
        return chain.digest(lines[-1]) if lines else self.head

    def _sign(self) -> None:
        if self._broken is None:
            with suppress(AuditUnavailable):  # which was said, and holds for the next record, too
                self._append([], chain.timestamp(self._now()), True)

    def durable(self, sequence: int) -> Deferred[None]:
        """
        :param sequence: a record's number.
        :returns: fires when the record is on disk; fails with :class:`AuditUnavailable` if it cannot be synced.
        """
        return self._syncing.durable(sequence)

    async def close(self) -> None:
        """Sync all records and close the file. Later writes fail."""
        try:
            await self.durable(self._sequence)
        except AuditUnavailable as e:
            self.log.error("{error}", error=e)
        finally:
            self._broken = self._broken or AuditUnavailable(f"the audit log {self.path} is closed")
            self._syncing.stop(self._broken)
            self._release()

    def _release(self) -> None:
        self._syncing.cancel()
        self._checkpoints.cancel()
        self._file.close()

    def _continue(self, writer: Mapping[str, Any]) -> None:
        """:param writer: what the record with which this process begins says about it."""
        with self._file.reader() as file:
            first, last = file.readline(), _last_line(file)
        if not last:
            self._record("begin", {"version": self._checkpoints.version, **writer})
            return
        self._check_version(first)
        line = last.removesuffix(b"\n")
        self._head = chain.digest(line)
        record = chain.read_record(line) if last.endswith(b"\n") else None
        if record is not None:
            self._sequence = record["sequence"]
            self._checkpoints.resume(self._sequence)
            self._record("resumed", writer)
        else:
            self._recover(last, writer)

    def _check_version(self, first: bytes) -> None:
        record = chain.read_record(first.removesuffix(b"\n"))
        if record is not None and record.get("version") not in chain.VERSIONS:
            raise AuditUnavailable(f"{self.path} has format version {record.get('version')}: use a newer ironcurtain")

    def _recover(self, last: bytes, writer: Mapping[str, Any]) -> None:
        torn: list[bytes] = []  # more than one line if an earlier recovery was itself interrupted
        with self._file.reader() as file:
            for line in (raw.removesuffix(b"\n") for raw in file):
                if (record := chain.read_record(line)) is None:
                    torn.append(line)
                else:
                    torn, self._sequence = [], max(self._sequence, record["sequence"])
        if not last.endswith(b"\n"):
            self._write(b"\n")
        fields: dict[str, Any] = {} if self._sequence else {"version": self._checkpoints.version}
        fields |= {**writer, "tornBytes": sum(map(len, torn)), "tornDigest": chain.torn_digest(torn)}
        self._record("recovered", fields)  # not redacted: a digest can look like a card number

    def _write(self, data: bytes, *, check: bool = True) -> None:
        try:
            self._file.write(data)
            if check:
                self._file.check()
        except LogChanged as e:
            self._set_broken(str(e))
        except OSError as e:
            self._set_broken(f"it cannot be written: {e.strerror or e}")
        if self._broken is not None:
            raise self._broken

    def _set_broken(self, why: str) -> None:
        if self._broken is not None:
            return
        self._broken = AuditUnavailable(f"the audit log {self.path} has failed ({why}): no further calls")
        self.log.critical("{error}", error=self._broken)
        self._syncing.stop(self._broken)
        self._tell_broken(str(self._broken))


def _last_line(file: BinaryIO) -> bytes:
    end = file.seek(0, os.SEEK_END)
    tail = b""
    while end > 0 and b"\n" not in tail[:-1]:
        size = min(end, TEXT_LIMIT)
        end = file.seek(end - size)
        tail = file.read(size) + tail
    return tail[tail.rfind(b"\n", 0, -1) + 1 :]
