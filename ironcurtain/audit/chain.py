"""
The chain of records: make lines, and verify files.

Each line is a JSON object. Its ``previous`` is the SHA-256 digest of the preceding line (without the line end), so that
changing, removing or inserting a line invalidates all lines after it. The ``previous`` of the first line is zeros.
A chain can be written anew as a whole: signatures (:mod:`~ironcurtain.audit.verification`) show that. Truncation at the
end cannot be detected from the file alone: compare the head digest with one stored elsewhere.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

FORMAT_VERSION = 2
"""The version in the first record of each file. Readers refuse newer ones."""

UNSIGNED_VERSION = 1
"""
The version of files without signatures. One that is continued is signed from there on, and keeps its version; what
precedes stays unproved.
"""

VERSIONS = (UNSIGNED_VERSION, FORMAT_VERSION)
"""The versions that can be read and continued."""

CHECKPOINT = "checkpoint"
"""The kind of the records that sign the head of the chain before them: their ``previous``."""

CHECKPOINT_MEMBERS = ("session", "key", "signature")
"""The members that such a record has besides those of every record."""

OPENING = ("begin", "resumed", "recovered")
"""Kinds of records with which a process begins to write."""

SIGNED_AT_ONCE = frozenset((*OPENING, "decision", "permission", "permission-revoked", "end"))
"""Kinds of records that are written together with a signature: what people decided, the start and the end."""

START = "0" * 64
"""The ``previous`` of the first line."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(dict[str, Any])


def digest(line: bytes) -> str:
    """:returns: the SHA-256 digest, in hex, of a line without its end."""
    return hashlib.sha256(line).hexdigest()


def timestamp(seconds: float) -> str:
    """:returns: seconds since the epoch as a UTC time in ISO 8601, with milliseconds."""
    whole, rest = divmod(math.floor(seconds * 1000), 1000)
    return f"{_to_the_second(whole)}.{rest:03d}Z"


@lru_cache(maxsize=8)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def make_line(sequence: int, time: str, kind: str, fields: Mapping[str, Any], previous: str) -> bytes:
    """
    :param time: see :func:`timestamp`.
    :returns: one record as a line, without its end.
    """
    record = {"sequence": sequence, "time": time, "kind": kind, **fields, "previous": previous}
    try:
        return _encoder.encode(record)
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot represent
        return _encoder.encode(_escaped(record))


def read_record(line: bytes) -> dict[str, Any] | None:
    """:returns: the record on a line, or ``None`` if the line is not a record."""
    try:
        record = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return record if isinstance(record.get("sequence"), int) and isinstance(record.get("kind"), str) else None


class ChainProblem(msgspec.Struct, frozen=True):
    """
    A line that is not as it was written.

    :param line: the line's number, from 1.
    :param what: what is wrong, for people.
    """

    line: int
    what: str


class ChainReport(msgspec.Struct):
    """The result of verifying a file."""

    records: int = 0
    head: str = START
    """Digest of the last line. Store it elsewhere to detect a truncation later."""
    ended: bool = False
    """Whether the last record, but for its signature, is the end of the session."""
    recovered: int = 0
    """The number of ``recovered`` records, each of which accounts for lines that a crash left incomplete."""
    problems: list[ChainProblem] = msgspec.field(default_factory=list)

    @property
    def intact(self) -> bool:
        """Whether no line was changed, removed or inserted."""
        return not self.problems


Judge = Callable[[Mapping[str, Any], ChainReport], Iterable[str]]
"""Given a record and the report on those before it, returns what else is wrong with it."""


def verify(lines: Iterable[bytes], judge: Judge = lambda record, before: ()) -> ChainReport:
    """
    Verify the chain of a file.

    :param lines: with their line ends, so that an incomplete last line can be recognized.
    :param judge: called for each record.
    """
    report, torn, expected, number = ChainReport(), list[bytes](), 1, 0
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix(b"\n")
        record = read_record(line) if raw.endswith(b"\n") else None
        if record is None:
            torn.append(line)
            report.head = digest(line)
            continue
        for what in (*_faults(record, report.head, torn, expected), *judge(record, report)):
            report.problems.append(ChainProblem(number, what))
        report.recovered += bool(torn)
        torn, expected = [], record["sequence"] + 1
        report.records, report.head = report.records + 1, digest(line)
        report.ended = record["kind"] == "end" or (report.ended and record["kind"] == CHECKPOINT)
    if torn:
        report.problems.append(ChainProblem(number, "is incomplete: the writer was interrupted"))
    if not report.records:
        report.problems.append(ChainProblem(1, "the file has no records"))
    return report


def torn_digest(torn: Sequence[bytes]) -> str:
    """:returns: the ``tornDigest`` of a ``recovered`` record, over the incomplete lines before it (usually one)."""
    return digest(b"\n".join(torn))


def _faults(record: Mapping[str, Any], previous: str, torn: Sequence[bytes], expected: int) -> Iterable[str]:
    if record.get("previous") != previous:
        yield "does not follow the preceding line: one of the two was changed, or lines between them were removed"
    if torn and (record["kind"] != "recovered" or record.get("tornDigest") != torn_digest(torn)):
        yield "follows an incomplete line, but does not account for it"
    if record["sequence"] != expected:
        yield f"has number {record['sequence']}, expected {expected}"
    if expected == 1 and record.get("version") not in VERSIONS:
        yield f"has format version {record.get('version')}, this program reads up to {FORMAT_VERSION}"


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_escaped(key): _escaped(member) for key, member in value.items()}
    return [_escaped(member) for member in value] if isinstance(value, list) else value
