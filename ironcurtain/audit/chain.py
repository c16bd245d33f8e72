"""
The chain of records: how a line is made, and how a file of lines is checked.

Each line is a JSON object. Its ``previous`` is the SHA-256 digest of the line before it (without the line end), so that
nobody can change, remove or insert a line without changing all that follow. The first line's ``previous`` is zeros.
Cutting lines off the end cannot be seen from the file alone: compare the head digest with one noted elsewhere.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

FORMAT_VERSION = 1
"""In the first record of each file; readers refuse newer ones."""

START = "0" * 64
"""What stands for the digest of the line before the first."""

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(dict[str, Any])


def digest(line: bytes) -> str:
    """:returns: SHA-256 of a line without its end, in hex."""
    return hashlib.sha256(line).hexdigest()


def timestamp(seconds: float) -> str:
    """:returns: seconds since the epoch as UTC in ISO 8601, to the millisecond."""
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
    except UnicodeEncodeError:  # half of a surrogate pair, which neither UTF-8 nor our reader can hold
        return _encoder.encode(_spelled_out(record))


def read_record(line: bytes) -> dict[str, Any] | None:
    """:returns: the record on a line, or ``None`` if it is none."""
    try:
        record = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return record if isinstance(record.get("sequence"), int) and isinstance(record.get("kind"), str) else None


@dataclass(frozen=True, slots=True)
class Problem:
    """:param line: its number, from 1.  :param what: what is wrong, for people."""

    line: int
    what: str


@dataclass(slots=True)
class Report:
    """What a check of a whole file found."""

    records: int = 0
    head: str = START
    """Digest of the last line: note it elsewhere to see later that nothing was cut off."""
    ended: bool = False
    """Whether the last record says that the session was closed."""
    recovered: int = 0
    """Torn lines that a crash left and that were sealed afterwards."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def intact(self) -> bool:
        """Whether every line is where and what it was when it was written."""
        return not self.problems


def verify(lines: Iterable[bytes]) -> Report:
    """
    Check a file's chain.

    :param lines: with their line ends, so that a torn last line can be told.
    """
    report, torn, expected, number = Report(), list[bytes](), 1, 0
    for number, raw in enumerate(lines, 1):
        line = raw.removesuffix(b"\n")
        record = read_record(line) if raw.endswith(b"\n") else None
        if record is None:
            torn.append(line)
            report.head = digest(line)
            continue
        for what in _faults(record, report.head, torn, expected):
            report.problems.append(Problem(number, what))
        report.recovered += bool(torn)
        torn, expected = [], record["sequence"] + 1
        report.records, report.head, report.ended = report.records + 1, digest(line), record["kind"] == "end"
    if torn:
        report.problems.append(Problem(number, "is torn: the writer was cut off"))
    if not report.records:
        report.problems.append(Problem(1, "there is no record at all"))
    return report


def torn_digest(torn: Sequence[bytes]) -> str:
    """:returns: what a ``recovered`` record says of the lines before it that are none: usually one, cut off."""
    return digest(b"\n".join(torn))


def _faults(record: Mapping[str, Any], previous: str, torn: Sequence[bytes], expected: int) -> Iterable[str]:
    if record.get("previous") != previous:
        yield "does not follow the line before it: one of the two was changed, or lines between them were removed"
    if torn and (record["kind"] != "recovered" or record.get("tornDigest") != torn_digest(torn)):
        yield "follows a torn line, but does not account for it"
    if record["sequence"] != expected:
        yield f"has number {record['sequence']} where {expected} was due"
    if expected == 1 and record.get("version") != FORMAT_VERSION:
        yield f"has format version {record.get('version')}, this program reads {FORMAT_VERSION}"


def _spelled_out(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_spelled_out(key): _spelled_out(member) for key, member in value.items()}
    return [_spelled_out(member) for member in value] if isinstance(value, list) else value
