"""Verify the audit log of a session, with what the home knows of the session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ironcurtain.audit.chain import CHECKPOINT, read_record
from ironcurtain.audit.signing import SignedHead, SigningKey, VerifyingKey
from ironcurtain.audit.verification import Expected, LogReport, verify_log
from ironcurtain.audit.witness import read_heads, witness_file
from ironcurtain.errors import NotFound
from ironcurtain.files.locks import is_held
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.session.model import State


def public_key(home: Home, named: Path | None = None) -> VerifyingKey | None:
    """
    :param named: a file with a public key.
    :returns: the key to verify with: the named one, else the home's, if it has one.
    :raises ConfigurationError: the file cannot be used.
    """
    if named is not None:
        return VerifyingKey.load(named)
    own = SigningKey.load(home.records)
    return own.public if own is not None else None


def check_session(
    home: Home,
    paths: SessionPaths,
    key: VerifyingKey | None,
    witness: Path | None = None,
    configured: Iterable[str] = (),
) -> LogReport:
    """
    :param witness: a file with heads, in which the session must have some.
    :param configured: the witnesses of the settings, of which the files are read if none is named.
    :returns: the result of verifying a session's log.
    :raises NotFound: the named file cannot be read.
    """
    described = description(paths.snapshot)
    inside = paths.directory.parent == home.sessions
    session = paths.directory.name if inside else described.get("id")
    ended = described.get("state") == State.CLOSED and not is_held(paths.lock)
    files = [witness] if witness is not None else list(filter(None, map(witness_file, configured)))
    heads = [head for head in _heads(files, witness is not None, key) if head.session == session]
    return verify_log(
        paths.audit, Expected(session, not inside, ended, key, heads or (None if witness is None else []))
    )


def _heads(files: Iterable[Path], required: bool, key: VerifyingKey | None) -> Iterator[SignedHead]:
    """:param key: heads that it did not sign are left out: anybody may write to syslog."""
    for path in files:
        try:
            with path.open("rb") as lines:
                yield from (head for head in read_heads(lines) if key is None or key.verifies(head))
        except OSError as e:
            if required:
                raise NotFound(f"the witness {path} cannot be read: {e.strerror}") from None


def signed_heads(path: Path) -> Iterator[SignedHead]:
    """:returns: the signed heads in a log, whether they are right or not."""
    with path.open("rb") as lines:
        for line in lines:
            record = read_record(line.removesuffix(b"\n"))
            if record is not None and record["kind"] == CHECKPOINT:
                said = {**record, "sequence": record["sequence"] - 1, "head": record.get("previous")}
                if (head := SignedHead.read(said)) is not None:
                    yield head


def description(path: Path) -> dict[str, Any]:
    """:returns: the description of a session; empty if it is damaged or missing."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}
