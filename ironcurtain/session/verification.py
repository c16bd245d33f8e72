"""
Verify the audit logs of a home, with what the home and its witnesses know of the sessions.

``audit verify``, ``report`` and ``undo`` rest on the same judgement, :func:`verify_records`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ironcurtain.audit.chain import CHECKPOINT, ChainProblem, read_record
from ironcurtain.audit.signing import SignedHead, SigningKey, VerifyingKey
from ironcurtain.audit.verification import DESCRIPTION, Expected, LogReport, verify_log
from ironcurtain.audit.witness_lines import FLEET, read_heads, witness_file
from ironcurtain.errors import NotFound
from ironcurtain.files.locks import is_held
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.session.elsewhere import elsewhere
from ironcurtain.session.model import State
from ironcurtain.session.removed import removed_sessions
from ironcurtain.text.quantities import counted

_UNREADABLE = "the witness {} cannot be read ({}): whether sessions or records were removed is not known"
_UNWITNESSED = (
    "This host has no head of it: it may be older than the fleet, or its host made room by sending heads of many other "
    "sessions. Nothing here shows whether the whole log was replaced."
)


class SessionRecords(msgspec.Struct, frozen=True):
    """
    A session whose log was judged.

    :param description: of the session; empty if it is missing or damaged.
    :param log: the result.
    :param remarks: sentences on what could not be compared.
    """

    id: str
    paths: SessionPaths
    description: Mapping[str, Any]
    log: LogReport
    remarks: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """Of the session; 0 if it is not known."""
        number = self.description.get("number")
        return number if isinstance(number, int) else 0

    @property
    def proved(self) -> tuple[str, ...]:
        """Sentences that say what is proved, and what is not."""
        return (*self.log.proofs(), *self.remarks)


class RecordsReport(msgspec.Struct, frozen=True):
    """
    The result of verifying the logs of several sessions.

    :param problems: what is wrong besides the logs, for people.
    """

    sessions: tuple[SessionRecords, ...]
    problems: tuple[str, ...]

    @property
    def intact(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems and all(session.log.intact for session in self.sessions)


class _Witness(msgspec.Struct):
    """
    What a witness has.

    :param name: as the setting has it.
    :param error: why it cannot be read; empty if it can.
    """

    name: str
    key: VerifyingKey | None
    error: str = ""
    heads: dict[str, list[SignedHead]] = msgspec.field(default_factory=dict)

    @classmethod
    def read(cls, name: str, path: Path, key: VerifyingKey | None) -> _Witness:
        witness = cls(name, key)
        try:
            with path.open("rb") as lines:
                for head in read_heads(lines):
                    witness.heads.setdefault(head.session, []).append(head)
        except OSError as e:
            witness.error = e.strerror or str(e)
        return witness

    def of(self, session: str) -> list[SignedHead]:
        """:returns: the heads of a session, without those that the key did not sign: anybody may write to syslog."""
        return [head for head in self.heads.get(session, ()) if self._is_signed(head)]

    def newest(self, session: str) -> SignedHead | None:
        """:returns: the newest of :meth:`of`."""
        latest = sorted(self.heads.get(session, ()), key=lambda head: -head.sequence)
        return next(filter(self._is_signed, latest), None)

    def _is_signed(self, head: SignedHead) -> bool:
        return self.key is None or self.key.verifies(head)


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


def verify_records(
    home: Home,
    configured: Iterable[str],
    *,
    chosen: Sequence[SessionPaths] | None = None,
    key: Path | None = None,
    witness: Path | None = None,
    fleet: Path | None = None,
) -> RecordsReport:
    """
    :param configured: the witnesses of the settings, of which the files are read if none is named.
    :param fleet: the heads of another host, whose sessions these are, that this one has as its witness.
    :param chosen: the sessions to verify; ``None``: all of the home, none of which may have gone.
    :param key: a file with a public key, in place of the home's key.
    :param witness: a file with heads, in which each session must have some.
    :raises NotFound: the named witness cannot be read.
    :raises ConfigurationError: the key cannot be used.
    """
    public = public_key(home, key)
    if witness is not None:
        named = _Witness.read(str(witness), witness, public)
        if named.error:
            raise NotFound(f"the witness {witness} cannot be read: {named.error}")
        witnesses = [named]
    else:
        files = [(place, path) for place in configured if (path := witness_file(place)) is not None]
        files += [(FLEET, fleet)] if fleet is not None else []
        witnesses = [_Witness.read(place, path, public) for place, path in files]
    verifier = _Verifier(home, public, witnesses, named=witness is not None)
    problems = [_UNREADABLE.format(each.name, each.error) for each in witnesses if each.error]
    if chosen is not None:
        sessions = [verifier.check(*_identity(home, paths)) for paths in chosen]
    else:
        known, damaged = _all_sessions(home)
        sessions = [verifier.check(session, paths) for session, paths in known.items()]
        problems += [*damaged, *verifier.gone({*known, *removed_sessions(home, public)})]
    return RecordsReport(tuple(sorted(sessions, key=lambda session: session.number)), tuple(problems))


def _identity(home: Home, paths: SessionPaths) -> tuple[str, SessionPaths]:
    if paths.directory.parent == home.sessions:
        return paths.directory.name, paths
    last = [other.id for other in sorted(elsewhere(home), key=lambda other: other.number) if other.paths == paths][-1:]
    return str(description(paths.snapshot).get("id") or "".join(last)), paths


def _all_sessions(home: Home) -> tuple[dict[str, SessionPaths], list[str]]:
    """:returns: all sessions by id, whether they are described or not; which entries are damaged."""
    directories = sorted(path for path in home.sessions.glob("*") if path.is_dir())
    known = {path.name: SessionPaths(path) for path in directories if not path.name.startswith(".")}
    others = {other.id: other.paths for other in elsewhere(home)}
    lost = sorted(path for path in home.sessions.glob("*.json") if path.stem not in others)
    return known | others, [f"{path} is damaged: the files of this session are not found" for path in lost]


class _Verifier:
    """
    Verifies sessions of one home.

    :param named: whether the witness was named, so that each session must have heads in it, and other witnesses
        do not count.
    """

    def __init__(self, home: Home, key: VerifyingKey | None, witnesses: Sequence[_Witness], *, named: bool) -> None:
        self._home, self._key, self._named = home, key, named
        self._witnesses = {each.name: each for each in witnesses}

    def check(self, session: str, paths: SessionPaths) -> SessionRecords:
        described = description(paths.snapshot)
        inside = paths.directory.parent == self._home.sessions
        own = described.get("id") == session
        ended = own and described.get("state") == State.CLOSED and not is_held(paths.lock)
        heads = {each.name: each.of(session) for each in self._witnesses.values() if not each.error}
        required = frozenset(heads if self._named else ())
        if own and (last := _described_head(session, described)) is not None:
            heads[DESCRIPTION] = [last]
        expected = Expected(session, not inside, ended, self._key, heads, required)
        log = verify_log(paths.audit, expected)
        remarks = [_UNWITNESSED] if heads.get(FLEET) == [] and FLEET not in log.witnesses else []
        if not self._named and (others := log.witnesses - self._witnesses.keys()):
            # The settings do not name them any more, so they were not read yet.
            found = {name: _Witness.read(name, path, self._key) for name in others if (path := witness_file(name))}
            heads |= {name: each.of(session) for name, each in found.items() if not each.error}
            log = verify_log(paths.audit, expected)
            log.problems.extend(
                ChainProblem(log.chain.records + 1, f"cannot be compared: {_UNREADABLE.format(name, each.error)}")
                for name, each in sorted(found.items())
                if each.error
            )
            remarks += [
                f"Its heads also went to {name}, which is not read here: compare them with --witness FILE."
                for name in sorted(others - found.keys())
            ]
        if inside and (what := _wrong_files(session, paths, described)):
            log.problems.append(ChainProblem(log.chain.records + 1, what))
        return SessionRecords(session, paths, described, log, tuple(remarks))

    def gone(self, known: set[str]) -> list[str]:
        """:returns: a sentence for each session that a witness knows, but not the home."""
        lost = []
        for each in self._witnesses.values():
            missing = sorted(each.heads.keys() - known)
            if missing and self._key is None:
                sessions = counted(len(missing), "session")
                lost.append(
                    f"the witness {each.name} has heads of {sessions} not found here, and there is no key to tell "
                    "whether they were here: name its file with --key"
                )
                continue
            for session in missing:
                if (head := each.newest(session)) is not None:
                    lost.append(
                        f"session {session} has gone: the witness {each.name} has the head of its record "
                        f"{head.sequence} ({head.time})"
                    )
        return lost


def _described_head(session: str, described: Mapping[str, Any]) -> SignedHead | None:
    head = described.get("head")
    told = {"session": session, "time": "", "key": "", "signature": ""}
    return SignedHead.read({**head, **told, "head": head.get("digest")}) if isinstance(head, dict) else None


def _wrong_files(session: str, paths: SessionPaths, described: Mapping[str, Any]) -> str:
    if os.path.islink(paths.directory):
        return "cannot be trusted: the session's directory is a symbolic link"
    if described.get("id") != session:
        return "cannot be compared: the session's session.json is missing, damaged, or that of another session"
    return ""


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
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
