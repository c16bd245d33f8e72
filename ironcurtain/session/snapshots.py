"""Snapshots of a session's workspace before each turn, and the undo of turns: in threads, recorded, one at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime

from ironcurtain.audit.log import AuditLog
from ironcurtain.audit.syncing import InThread
from ironcurtain.home.sections import UndoSettings
from ironcurtain.project.snapshot import SnapshotKind, SnapshotLimits, Snapshots, SnapshotTaken
from ironcurtain.project.tree import close, open_tree
from ironcurtain.project.undo import Undone, undo
from ironcurtain.sandbox.pieces import all_names, names_in
from ironcurtain.session import events
from ironcurtain.text.display import readable_path
from ironcurtain.text.quantities import noun

SLOW_SECONDS = 2.0
"""Seconds after which people are told that a snapshot is being taken (the first of a large workspace)."""

NAMED_LIMIT = 5
"""Maximum number of paths named of those that a snapshot leaves out."""


class LeftPath(msgspec.Struct, frozen=True):
    """A path that an undo left as it is."""

    path: str
    reason: str


class UndoReport(msgspec.Struct, frozen=True, kw_only=True):
    """
    What an undo did.

    :param changed: number of files, directories and links that are as they were; ``removed``: that did not exist.
    :param left: paths that could not be restored.
    :param since: paths that were left, since others than the agent have changed them after it worked.
    :param kept: whether the undo can be taken back; if not, ``not_kept`` says why.
    :param interrupted: whether it was stopped; another one continues it.
    """

    changed: int
    removed: int
    left: tuple[LeftPath, ...]
    kept: bool
    not_kept: str = ""
    since: tuple[str, ...] = ()
    interrupted: bool = False


class WorkspaceSnapshots:
    """
    The snapshots of one session.

    :param directory: where they are.
    :param now: returns seconds since the epoch.
    :ivar ready: whether there is a snapshot from before what the agent does now, so that it can be undone; not between
        turns.
    """

    def __init__(
        self,
        directory: Path,
        settings: UndoSettings,
        audit: AuditLog,
        clock: IReactorTime,
        now: Callable[[], float],
        in_thread: InThread,
        emit: Callable[[events.SessionEvent], None],
    ) -> None:
        self._snapshots, self._settings, self._audit = Snapshots(directory), settings, audit
        self._clock, self._now, self._in_thread, self._emit = clock, now, in_thread, emit
        self._limits = SnapshotLimits(2 * settings.turns, settings.max_files, settings.max_mb * 1_000_000)
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._told = ""
        self._begun: Callable[[], SnapshotTaken] | None = None
        """Takes the snapshot of the end of the turn that is under way."""
        self.ready = False

    def bound(self, files: int, size: int) -> None:
        """:param files: take none of workspaces with more files and directories; ``size`` is of all files, in bytes."""
        limits = self._limits
        self._limits = SnapshotLimits(limits.snapshots, min(limits.files, files), min(limits.size, size))

    async def take(self, workspace: Path, protected: Sequence[str], turn: int | None) -> None:
        """
        Take a snapshot, unless the settings say that there are none. A failure is told, and does not stop the turn.

        :param protected: absolute paths that are in no snapshot.
        :param turn: number of the turn that follows; ``None``: the one after the last that has a snapshot.
        :raises AuditUnavailable: it cannot be recorded.
        """
        self.ready, self._begun = False, None
        if self._settings.turns == 0:
            return
        done: list[SnapshotTaken] = []
        slow = self._clock.callLater(
            SLOW_SECONDS, self._emit, events.Progress(text="taking a snapshot of the workspace, for undo")
        )
        self._stopping.clear()
        try:
            await self._in_thread(lambda: done.append(self._take(workspace, protected, turn)))
        except CancelledError:
            self._stopping.set()
            raise
        except Exception as e:  # whatever the workspace is, the turn goes on without a snapshot
            self._tell(f"no snapshot: {e}: what this turn changes cannot be undone")
            return
        finally:
            if slow.active():
                slow.cancel()
        head = done[0].head
        fields = {"failed": head.failed} if head.failed else {"files": head.files, "size": head.size}
        self._audit.append("snapshot", number=head.number, turn=head.turn, **fields)
        self.ready = not head.failed
        if self.ready:
            self._begun = lambda: self._take(workspace, protected, head.turn, SnapshotKind.END)
        if head.failed:
            self._tell(f"no snapshot: {head.failed}: what this turn changes cannot be undone")
        elif done[0].left_out:
            self._tell(_left_out(done[0].left_out))

    @property
    def problem(self) -> str:
        """What people were told last: why there is no snapshot, or what it leaves out."""
        return self._told

    async def end(self) -> None:
        """
        Take a snapshot of how the turn leaves the workspace, so that an undo can tell what was changed after it. A
        failure is told.
        """
        self.ready = False
        if (take := self._begun) is None:
            return
        self._begun, failed, done = None, "", list[SnapshotTaken]()
        self._stopping.clear()
        try:
            await self._in_thread(lambda: done.append(take()))
            failed = done[0].head.failed
        except CancelledError:
            self._stopping.set()
            failed = "it was cancelled"
        except Exception as e:  # as before the turn
            failed = str(e)
        if failed:
            self._tell(f"no snapshot after this turn: {failed}: an undo cannot tell what you change after it")

    async def undo(self, number: int, by: str, everything: bool = False) -> UndoReport:
        """
        Restore a snapshot, until :meth:`interrupt` or :meth:`stop`.

        :param number: its number.
        :param by: who wants it.
        :param everything: whether to restore also what others than the agent have changed since.
        :raises NotFound: there is none, or it is damaged.
        :raises UsageError: the workspace cannot be read.
        :raises AuditUnavailable: it cannot be recorded.
        """
        heads = {head.number: head for head in self._snapshots.heads()}
        turn = heads[number].turn if number in heads else 0
        self._stopping.clear()
        self._audit.append("undo", number=number, turn=turn, by=by)
        done: list[Undone] = []
        await self._in_thread(lambda: done.append(self._undo(number, everything)))
        found = done[0].restored
        report = UndoReport(
            changed=found.changed,
            removed=found.removed,
            left=tuple(LeftPath(readable_path(path), why) for path, why in found.left),
            kept=bool(done[0].kept),
            not_kept=done[0].not_kept,
            since=tuple(map(readable_path, done[0].since)),
            interrupted=done[0].interrupted,
        )
        fields = msgspec.structs.asdict(report) | {"left": [f"{each.path}: {each.reason}" for each in report.left]}
        self._audit.append("undo-end", number=number, **fields)
        return report

    def interrupt(self) -> None:
        """Stop an undo before its next path."""
        self._stopping.set()

    async def start(self) -> None:
        """Say whether an undo was interrupted."""
        if (restoring := self._snapshots.interrupted()) is not None:
            self._tell(f"an undo was interrupted (snapshot {restoring.number}): 'ironcurtain undo' continues it")

    async def stop(self) -> None:
        """Wait until nothing is being done any more. An agent that works to the end leaves its last snapshot."""
        await self.end()
        self._stopping.set()
        await self._in_thread(self._wait)

    def _wait(self) -> None:
        with self._lock:
            pass

    def _take(
        self, workspace: Path, protected: Sequence[str], turn: int | None, kind: SnapshotKind = SnapshotKind.TURN
    ) -> SnapshotTaken:
        with self._lock:
            tree = open_tree(str(workspace.resolve()), self._stopping.is_set, inside(workspace, protected))
            try:
                if turn is None:
                    turn = max((head.turn for head in self._snapshots.heads()), default=0) + 1
                hidden = ("/".join(parts) for parts in sorted(tree.root.hidden))
                return self._snapshots.take(tree, turn, kind, hidden, self._limits, self._now_ns())
            finally:
                close(tree)

    def _undo(self, number: int, everything: bool) -> Undone:
        with self._lock:
            return undo(self._snapshots, number, self._limits, self._now_ns(), everything, self._stopping.is_set)

    def _now_ns(self) -> int:
        return int(self._now() * 1e9)

    def _tell(self, sentence: str) -> None:
        if sentence != self._told or not self.ready:
            self._emit(events.Notice(text=sentence))
        self._told = sentence


def inside(workspace: Path, protected: Sequence[str]) -> list[str]:
    """:returns: the protected paths in a workspace, relative to it, whether they exist or not."""
    top = os.path.realpath(workspace)
    return [os.path.relpath(name, top) for name in names_in(top, all_names(protected))]


def _left_out(paths: Sequence[tuple[str, str]]) -> str:
    named = ", ".join(f"{readable_path(path)} ({why})" for path, why in paths[:NAMED_LIMIT])
    more = f", and {len(paths) - NAMED_LIMIT} more" if len(paths) > NAMED_LIMIT else ""
    return f"the snapshot leaves out {named}{more}: undo cannot restore {noun(len(paths), 'it', 'them')}"
