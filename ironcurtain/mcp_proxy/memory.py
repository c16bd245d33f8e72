"""The history of a session's calls, kept while the session runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from ironcurtain.policy.history import NO_HISTORY, CallHistory
from ironcurtain.policy.verdict import Verdict


class FileChanges(NamedTuple):
    """
    What a call does to files if it succeeds.

    :param creates: real paths that it would write and that did not exist when the call was judged; ``None`` if the
        call writes nothing.
    :param deletes: real paths that it would remove.
    """

    creates: tuple[str, ...] | None
    deletes: tuple[str, ...]


class CallMemory:
    """
    :param seconds: returns the time, in seconds.
    :param history: what happened before the session was resumed, with times of the same clock.
    """

    def __init__(self, seconds: Callable[[], float], history: CallHistory = NO_HISTORY) -> None:
        self._seconds, self._history = seconds, history

    def now(self) -> CallHistory:
        """:returns: the history for a call that is judged now."""
        return self._history.at(self._seconds())

    def made(self, server: str, tool: str) -> None:
        """Remember that a call is made."""
        self._history = self._history.made(server, tool, self._seconds())

    def succeeded(self, changes: FileChanges) -> None:
        """Remember what a call did to files."""
        self._history = self._history.changed(changes.creates or (), changes.deletes)


def file_changes(verdict: Verdict) -> FileChanges:
    """:returns: what the call of a verdict does to files if it succeeds, as far as its arguments say so."""
    writes = [each.value for each in verdict.resources if each.role == "write-path"]
    deletes = tuple(each.value for each in verdict.resources if each.role == "delete-path")
    return FileChanges(tuple(path for path in writes if not os.path.lexists(path)) if writes else None, deletes)
