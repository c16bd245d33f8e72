"""
Remove old sessions from the home: never one that runs, and its audit log only if told so.

What remains without the audit log removed is that log, the session's description, and its lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from twisted.logger import Logger

from ironcurtain.errors import Unavailable
from ironcurtain.files.locks import FileLock, Held, is_held
from ironcurtain.files.removal import remove
from ironcurtain.files.sizes import size_of
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.session.parts import Services
from ironcurtain.session.removed import record_removal

_log = Logger()


class _Described(msgspec.Struct):
    id: str
    number: int
    label: str = ""


class OldSession(msgspec.Struct, frozen=True):
    """
    A session that ended long ago.

    :param ended: seconds since the epoch at which its description was last written.
    :param size: number of bytes that can be removed.
    """

    id: str
    number: int
    label: str
    ended: float
    size: int


def old_sessions(home: Home, before: float, *, with_audit: bool) -> Iterator[OldSession]:
    """
    :param before: seconds since the epoch.
    :param with_audit: whether audit logs are to go, too.
    :returns: the sessions in the home that ended before, do not run, and have something to remove. What is not
        described as a session, or keeps its files outside the home, is left out.
    """
    for directory in sorted(home.sessions.glob("*/")):
        paths = SessionPaths(directory)
        described = _description(paths)
        if described is None or directory.is_symlink() or described.id != directory.name:
            continue
        ended = paths.snapshot.lstat().st_mtime
        if ended < before and not is_held(paths.lock):
            found = _removable(paths, with_audit=with_audit)
            size = sum(map(size_of, found))
            if found:
                yield OldSession(described.id, described.number, described.label, ended, size)


def remove_session(home: Home, session: OldSession, now: float, *, with_audit: bool) -> None:
    """
    Remove the files of a session.

    :param now: seconds since the epoch.
    :raises Unavailable: it runs, or a file cannot be renamed.
    :raises ConfigurationError: it cannot be signed that its audit log is removed.
    """
    paths = home.session(session.id)
    lock = FileLock(paths.lock)
    try:
        lock.acquire()
    except Held:
        raise Unavailable(f"session {session.number} runs now: nothing of it was removed") from None
    try:
        if paths.snapshot.lstat().st_mtime != session.ended:
            raise Unavailable(f"session {session.number} was used meanwhile: nothing of it was removed")
        if with_audit:
            record_removal(home, session.id, now)
        for path in _removable(paths, with_audit=with_audit):
            remove(path)
    finally:
        lock.release()


def _removable(paths: SessionPaths, *, with_audit: bool) -> list[Path]:
    if with_audit:
        return [paths.directory]
    kept = {paths.audit, paths.snapshot, paths.lock}
    return [path for path in sorted(paths.directory.iterdir()) if path not in kept]


def _description(paths: SessionPaths) -> _Described | None:
    try:
        return msgspec.json.decode(paths.snapshot.read_bytes(), type=_Described)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def prune(home: Home, before: float, now: float) -> list[str]:
    """
    Remove old sessions, but for their audit logs.

    :param before: seconds since the epoch, like ``now``.
    :returns: a sentence for each.
    """
    told = []
    for session in old_sessions(home, before, with_audit=False):
        try:
            remove_session(home, session, now, with_audit=False)
        except (Unavailable, OSError) as e:
            told.append(str(e))
        else:
            told.append(f"removed the files of session {session.number}, {session.size} bytes, but for its audit log")
    return told


def prune_on_start(services: Services) -> None:
    """Remove old sessions as the settings say, in a thread that nobody waits for."""
    now = services.now()
    before = now - services.settings.session.prune_days * 86400

    def work() -> None:
        for sentence in prune(services.home, before, now):
            _log.info("{sentence}", sentence=sentence)

    services.in_thread(work).addErrback(lambda failure: _log.failure("old sessions stay", failure))
