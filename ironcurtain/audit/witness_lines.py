"""The lines in which witnesses have heads, and the names of witnesses as the setting has them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from ironcurtain.audit.signing import SignedHead

BEGINS = b'{"session":"'
"""What every line of a witness begins with; syslog and the journal put something before it."""

FLEET = "fleet"
"""The name of the witness that all members of a home's fleet are together."""

_encoder = msgspec.json.Encoder()


def head_line(head: SignedHead) -> bytes:
    """:returns: a head as a line of JSON, with its end."""
    return _encoder.encode(head) + b"\n"


def read_heads(lines: Iterable[bytes]) -> Iterator[SignedHead]:
    """
    :param lines: of a witness, also as the journal or syslog show them. Other lines are left out.
    :returns: the heads in them.
    """
    for line in lines:
        start = line.find(BEGINS)
        try:
            members = msgspec.json.decode(line[start:]) if start >= 0 else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if isinstance(members, dict) and (head := SignedHead.read(members)) is not None:
            yield head


def witness_file(place: str) -> Path | None:
    """
    :param place: as the setting ``audit.witness`` has it.
    :returns: the absolute path of its file; ``None`` if it is none.
    """
    kind, _, path = place.partition(":")
    return Path(os.path.abspath(path)) if kind == "file" else None
