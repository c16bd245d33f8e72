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
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ironcurtain.audit import chain
from ironcurtain.audit.chain import CHECKPOINT, CHECKPOINT_MEMBERS, SIGNED_AT_ONCE, ChainProblem, ChainReport
from ironcurtain.audit.signing import SignedHead, VerifyingKey
from ironcurtain.text.quantities import counted, noun

DESCRIPTION = "session.json"
"""The place of a head in the session's own description. It is no witness: whoever can change the log can change it."""

_MEMBERS = {"sequence", "time", "kind", "previous", *CHECKPOINT_MEMBERS}


class Expected(msgspec.Struct, frozen=True):
    """
    What is known of a log from elsewhere.

    :param session: id of the session that the log must belong to; ``None``: of any.
    :param shared: whether other sessions may have written to the log as well.
    :param ended: whether the session is known to have ended by itself.
    :param key: verifies signatures; ``None``: there is none.
    :param heads: of the session, by the place that has them: :data:`DESCRIPTION`, or the name of a witness.
    :param required: witnesses that must have some, besides those that the log names.
    """

    session: str | None = None
    shared: bool = False
    ended: bool = False
    key: VerifyingKey | None = None
    heads: Mapping[str, Sequence[SignedHead]] = msgspec.field(default_factory=dict)
    required: frozenset[str] = frozenset()


class LogReport(msgspec.Struct):
    """
    The result of verifying a log.

    :ivar version: of the log's format; 0: unknown.
    :ivar signed_through: number of the last record that a signature covers, without a problem before it; 0: none.
    :ivar signed_at: when that signature was made.
    :ivar witnessed_through: number of the last record whose digest a witness has; 0: none.
    :ivar unsigned: the first and last number of records that were not signed when another process continued the log.
    :ivar witnesses: those that get the session's heads, as the log says.
    """

    chain: ChainReport = msgspec.field(default_factory=ChainReport)
    version: int = 0
    last: int = 0
    signed_through: int = 0
    signed_at: str = ""
    witnessed_through: int = 0
    unsigned: list[tuple[int, int]] = msgspec.field(default_factory=list)
    witnesses: set[str] = msgspec.field(default_factory=set)

    @property
    def problems(self) -> list[ChainProblem]:
        """What is wrong, in the order of the lines."""
        return self.chain.problems

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong. :meth:`proofs` says how much that means."""
        return self.chain.intact

    @property
    def unproved(self) -> int:
        """Number of records that no signature covers, or that were not signed when the log was continued."""
        return self.last - self.signed_through + sum(last - first + 1 for first, last in self.unsigned)

    def proofs(self) -> Iterator[str]:
        """:returns: sentences that say what is proved, and what is not."""
        if not self.intact:
            if self.signed_through:
                yield f"Records 1 to {self.signed_through} are as they were signed at {self.signed_at}."
            yield f"The first bad record is on line {self.problems[0].line}. Nothing from there on is proved."
            return
        yield f"Records 1 to {self.signed_through} are as they were signed at {self.signed_at}."
        for first, last in self.unsigned:
            yield f"Records {first} to {last} had no signature when the log was continued: nothing proves them."
        if after := self.last - self.signed_through:
            are = noun(after, "is", "are")
            yield f"{counted(after, 'record')} after the last signature {are} chained, but not signed."
        if self.witnessed_through:
            yield f"The witness has the same head of record {self.witnessed_through}."
        if not self.chain.ended:
            later = self.witnessed_through or self.last
            yield f"Nothing shows whether records after {later} were removed, unless a witness has a later head."


class _Judge:
    """Judges records by what precedes them."""

    def __init__(self, expected: Expected) -> None:
        self._expected, self._wanted = expected, _by_sequence(expected.heads)
        self.report = LogReport()
        self.sessions: set[str] = set()
        self.opened = ""
        """The kind of the record that still lacks the signature written together with it."""
        self._after_end = ""
        self._current: set[str] = set()
        """The witnesses of the session's last process."""

    def __call__(self, record: Mapping[str, Any], before: ChainReport) -> Iterable[str]:
        found = list(self._found(record, before))
        report, kind = self.report, record["kind"]
        report.last = record["sequence"]
        if not before.records:
            version = record.get("version")
            report.version = version if isinstance(version, int) else 0
        if kind in chain.OPENING:
            self._opens(record)
        if kind in SIGNED_AT_ONCE and self._signs:
            self.opened = kind
        elif kind == CHECKPOINT:
            self.opened = ""
            if not (found or before.problems or record.get("previous") != before.head):
                report.signed_through, report.signed_at = record["sequence"], str(record.get("time"))
        return found

    def _opens(self, record: Mapping[str, Any]) -> None:
        covered = max([self.report.signed_through, *(last for _, last in self.report.unsigned)])
        if covered < record["sequence"] - 1:
            self.report.unsigned.append((covered + 1, record["sequence"] - 1))
        named = record.get("witnesses")
        if self._expected.session in (None, record.get("session")):
            self._current = set(map(str, named)) if isinstance(named, list) else set()
            self.report.witnesses |= self._current

    @property
    def _signs(self) -> bool:
        return self.report.version >= chain.FORMAT_VERSION

    def _found(self, record: Mapping[str, Any], before: ChainReport) -> Iterator[str]:
        kind, session = record["kind"], record.get("session")
        if not before.records and record.get("version") == chain.UNSIGNED_VERSION:
            yield "has the format version without signatures: an old program wrote the log, or somebody without the key"
        if kind in (*chain.OPENING, CHECKPOINT):
            self.sessions.add(str(session))
            if self._expected.session not in (None, session) and not self._expected.shared:
                yield f"belongs to session {session}, not to {self._expected.session}: this is another session's log"
        if self.opened and kind not in (CHECKPOINT, *chain.OPENING):
            yield f"follows '{self.opened}' without a signature: this program did not write it"
        if self._after_end and kind not in (CHECKPOINT, "resumed", "recovered"):
            yield "was appended after the end of the session"
        self._after_end = "end" if kind == "end" or (self._after_end and kind == CHECKPOINT) else ""
        if kind == CHECKPOINT and record.get("previous") == before.head:
            yield from self._unsigned(record, before)
        yield from self._unlike_heads(record["sequence"] - 1, before.head)

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

    def _unlike_heads(self, sequence: int, digest: str) -> Iterator[str]:
        for place, head in self._wanted.pop(sequence, ()):
            if head.head != digest:
                detail = f" ({place}, {head.time})" if place != DESCRIPTION else ""
                yield f"comes after record {sequence}, of which {_who(place)} has another digest{detail}"
            elif place != DESCRIPTION:
                self.report.witnessed_through = sequence

    def finish(self) -> LogReport:
        """Look at what the whole log lacks."""
        report = self.report
        line = report.chain.records + 1
        for what in (*self._missing_end(), *self._unlike_heads(report.last, report.chain.head), *self._heads_missing()):
            report.chain.problems.append(ChainProblem(line, what))
        return report

    def _missing_end(self) -> Iterator[str]:
        report = self.report
        if self.opened:
            yield f"is missing: the signature that is written together with '{self.opened}'"
        elif self._expected.ended and report.chain.records and not report.chain.ended:
            yield (
                "is missing: session.json says that the session ended, but the log has no end: records were removed, "
                "or the process died while it ended"
            )
        if self._expected.shared and self._expected.session not in (None, *self.sessions):
            yield f"is missing: no record is of session {self._expected.session}"

    def _heads_missing(self) -> Iterator[str]:
        report, heads = self.report, self._expected.heads
        later = {place: sequence for sequence in sorted(self._wanted) for place, _ in self._wanted[sequence]}
        for place, sequence in later.items():
            yield f"is missing: {_who(place)} has the head of record {sequence}, and the log ends at {report.last}"
        for place in sorted((self._expected.required | report.witnesses) & heads.keys() - later.keys()):
            through = max((head.sequence for head in heads[place]), default=0)
            if not through:
                yield f"cannot be compared: the witness has no head of this session ({place})"
            elif place in self._current and report.chain.ended and through < report.signed_through - 1:
                yield (
                    f"cannot be compared: the witness has no head after record {through}, and the log ends at "
                    f"{report.last} ({place}): it was cut, or was out of reach; the next session sends the head again"
                )


def _who(place: str) -> str:
    return place if place == DESCRIPTION else "the witness"


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


def _by_sequence(heads: Mapping[str, Sequence[SignedHead]]) -> dict[int, list[tuple[str, SignedHead]]]:
    found: dict[int, list[tuple[str, SignedHead]]] = {}
    for place, its in heads.items():
        for head in its:
            found.setdefault(head.sequence, []).append((place, head))
    return found
