"""The session that this process is part of: in its terminal, an agent works, and not only a person types."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ironcurtain.home.layout import Home
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.process.identity import processes_above


class _Shown(msgspec.Struct):
    terminal: bool = False


def session_above(home: Home) -> SessionEntry | None:
    """:returns: the innermost session whose process is above this one; ``None`` if there is none."""
    entries = {entry.pid: entry for entry in SessionRegistry(home.registry).here()}
    return next((entries[pid] for pid in processes_above() if pid in entries), None) if entries else None


def is_above(home: Home, session_id: str) -> bool:
    """
    :returns: whether this process runs in a session, so that what it shows would be shown to it again, without end. Of
        the daemon's sessions nobody knows in which it runs, unless there is only one.
    """
    above = set(processes_above())
    entries = [entry for entry in SessionRegistry(home.registry).here() if entry.pid in above]
    pids = [entry.pid for entry in entries]
    return any(entry.session_id == session_id and pids.count(entry.pid) == 1 for entry in entries)


def unattended_above(home: Home) -> SessionEntry | None:
    """:returns: the session above this process if it has no terminal that a person could be at; else ``None``."""
    if (entry := session_above(home)) is None:
        return None
    try:
        shown = msgspec.json.decode(_snapshot(home, entry).read_bytes(), type=_Shown)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return entry
    return None if shown.terminal else entry


def _snapshot(home: Home, entry: SessionEntry) -> Path:
    return home.session(entry.session_id).snapshot
