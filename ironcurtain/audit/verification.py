"""
Verify an audit log: its chain, its signatures, whose log it is, and the heads that a witness has.

The report says what is proved. A signature proves that all records up to it are as they were when it was made, as far
as its key was only used by the writer.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ironcurtain.audit import chain
from ironcurtain.audit.chain import CHECKPOINT, CHECKPOINT_MEMBERS, ChainProblem, ChainReport
from ironcurtain.audit.signing import SignedHead, VerifyingKey

OPENING = ("begin", "resumed", "recovered")
"""Kinds of records with which a process begins to write, each followed by its signature."""

_MEMBERS = {"sequence", "time", "kind", "previous", *CHECKPOINT_MEMBERS}


@dataclass(frozen=True, slots=True)
class Expected:
    """
    What is known of a log from elsewhere.

    :param session: id of the session that the log must belong to; ``None``: of any.
    :param shared: whether other sessions may have written to the log as well.
    :param ended: whether the session is known to have ended by itself.
    :param key: verifies signatures; ``None``: there is none.
    :param heads: of the session, from a witness; ``None``: there is no witness.
    """

    session: str | None = None
    shared: bool = False
    ended: bool = False
    key: VerifyingKey | None = None
    heads: Sequence[SignedHead] | None = None


@dataclass(slots=True)
class LogReport:
    """
    The result of verifying a log.

    :ivar version: of the log's format; 0: unknown.
    :ivar signed_through: number of the last record that a signature covers, without a problem before it; 0: none.
    :ivar signed_at: when that signature was made.
    :ivar witnessed_through: number of the last record whose digest a witness has; 0: none.
    """

    chain: ChainReport = field(default_factory=ChainReport)
    version: int = 0
    last: int = 0
    signed_through: int = 0
    signed_at: str = ""
    witnessed_through: int = 0

    @property
    def problems(self) -> list[ChainProblem]:
        """What is wrong, in the order of the lines."""
        return self.chain.problems

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong. :meth:`proofs` says how much that means."""
        return self.chain.intact

    def proofs(self) -> Iterator[str]:
        """:returns: sentences that say what is proved, and what is not."""
        if not self.intact:
            first = self.problems[0]
            if self.signed_through:
                yield f"Records 1 to {self.signed_through} are as they were signed at {self.signed_at}."
            yield f"The first bad record is on line {first.line}. Nothing from there on is proved."
            return
        if not self.signed_through:
            yield "The log has no signatures: it fits together, but somebody could have written all of it anew."
        else:
            yield f"Records 1 to {self.signed_through} are as they were signed at {self.signed_at}."
            if after := self.last - self.signed_through:
                yield f"{after} records after the last signature are chained, but not signed."
        if self.witnessed_through:
            yield f"The witness has the same head of record {self.witnessed_through}."
        if not self.chain.ended:
            later = self.witnessed_through or self.last
            yield f"Nothing shows whether records after {later} were removed, unless a witness has a later head."


class _Judge:
    """Judges records by what precedes them."""

    def __init__(self, expected: Expected) -> None:
        self._expected, self._wanted = expected, _by_sequence(expected.heads or ())
        self.report = LogReport()
        self.sessions: set[str] = set()
        self.opened = ""
        """The kind of the opening record that still lacks its signature."""
        self._after_end = ""

    def __call__(self, record: Mapping[str, Any], before: ChainReport) -> Iterable[str]:
        found = list(self._found(record, before))
        report, kind = self.report, record["kind"]
        report.last = record["sequence"]
        if not before.records:
            version = record.get("version")
            report.version = version if isinstance(version, int) else 0
        if kind in OPENING and self._signs:
            self.opened = kind
        elif kind == CHECKPOINT:
            self.opened = ""
            if not (found or before.problems or record.get("previous") != before.head):
                report.signed_through, report.signed_at = record["sequence"], str(record.get("time"))
        return found

    @property
    def _signs(self) -> bool:
        return self.report.version >= chain.FORMAT_VERSION

    def _found(self, record: Mapping[str, Any], before: ChainReport) -> Iterator[str]:
        kind, session = record["kind"], record.get("session")
        if kind in (*OPENING, CHECKPOINT):
            self.sessions.add(str(session))
            if self._expected.session not in (None, session) and not self._expected.shared:
                yield f"belongs to session {session}, not to {self._expected.session}: this is another session's log"
        if self.opened and kind not in (CHECKPOINT, *OPENING):
            yield f"follows '{self.opened}' without a signature: this program did not write it"
        if self._after_end and kind not in (CHECKPOINT, "resumed", "recovered"):
            yield "was appended after the end of the session"
        self._after_end = "end" if kind == "end" or (self._after_end and kind == CHECKPOINT) else ""
        if kind == CHECKPOINT and record.get("previous") == before.head:
            yield from self._unsigned(record, before)
        yield from self._unlike_witness(record["sequence"] - 1, before.head)

    def _unsigned(self, record: Mapping[str, Any], before: ChainReport) -> Iterator[str]:
        key = self._expected.key
        head = SignedHead.read({**record, "sequence": record["sequence"] - 1, "head": before.head})
        if head is None or record.keys() != _MEMBERS:
            yield "is not a signature"
        elif key is None:
            yield f"is signed with key {head.key}, which is not here: name its file with --key"
        elif head.key != key.id:
            yield f"is signed with key {head.key}, not with {key.id}: name the file of the right key with --key"
        elif not key.verifies(head):
            since = self.report.signed_through
            which = f"records {since + 1} to {head.sequence}" if since else f"records 1 to {head.sequence}"
            yield f"has a wrong signature: {which} are not those that were signed"

    def _unlike_witness(self, sequence: int, digest: str) -> Iterator[str]:
        for head in self._wanted.pop(sequence, ()):
            if head.head != digest:
                yield f"comes after record {sequence}, of which the witness has another digest ({head.time})"
            else:
                self.report.witnessed_through = sequence

    def finish(self) -> LogReport:
        """Look at what the whole log lacks."""
        report = self.report
        line = report.chain.records + 1

        def wrong(what: str) -> None:
            report.chain.problems.append(ChainProblem(line, what))

        if self.opened:
            wrong(f"is missing: the signature that is written together with '{self.opened}'")
        elif self._expected.ended and report.chain.records and not report.chain.ended:
            wrong(
                "is missing: session.json says that the session ended, but the log has no end: records were removed, "
                "or the process died while it ended"
            )
        if self._expected.shared and self._expected.session not in (None, *self.sessions):
            wrong(f"is missing: no record is of session {self._expected.session}")
        for what in self._unlike_witness(report.last, report.chain.head):
            wrong(what)
        if self._wanted:
            latest = max(self._wanted)
            wrong(f"is missing: the witness has the head of record {latest}, and the log ends at {report.last}")
        elif self._expected.heads is not None and not self._expected.heads:
            wrong("cannot be compared: the witness has no head of this session")
        return report


def verify_lines(lines: Iterable[bytes], expected: Expected) -> LogReport:
    """
    :param lines: with their line ends.
    :returns: what is wrong, and what is proved.
    """
    judge = _Judge(expected)
    judge.report.chain = chain.verify(lines, judge)
    return judge.finish()


def verify_log(path: Path, expected: Expected) -> LogReport:
    """
    :param path: of the log; a link is not followed.
    :returns: what is wrong, and what is proved. A log that is missing or no file of its own is wrong.
    """
    try:
        file = _opened(path)
    except OSError as e:
        link = e.errno == errno.ELOOP
        what = "is a symbolic link" if link else "is missing" if e.errno == errno.ENOENT else f"failed: {e.strerror}"
        return LogReport(ChainReport(problems=[ChainProblem(1, f"cannot be read: the log {what}")]))
    with file:
        return verify_lines(file, expected)


def _opened(path: Path) -> BinaryIO:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return os.fdopen(fd, "rb")


def _by_sequence(heads: Iterable[SignedHead]) -> dict[int, list[SignedHead]]:
    found: dict[int, list[SignedHead]] = {}
    for head in heads:
        found.setdefault(head.sequence, []).append(head)
    return found
