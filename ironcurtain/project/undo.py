"""Choose a snapshot and restore it, so that this can be undone, too, and continues if it is interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from ironcurtain.errors import NotFound
from ironcurtain.project.access import Access
from ironcurtain.project.restore import Restoration, Restored
from ironcurtain.project.since import changed_since
from ironcurtain.project.snapshot import Restoring, SnapshotHead, SnapshotKind, SnapshotLimits, Snapshots
from ironcurtain.project.tree import Tree, close, open_tree
from ironcurtain.text.quantities import noun


class Undone(msgspec.Struct, frozen=True):
    """
    :param kept: number of the snapshot from before the undo; 0 if there is none, and ``not_kept`` says why.
    :param since: paths that were left, since others than the agent have changed them.
    :param interrupted: whether it was stopped; another one continues it.
    """

    restored: Restored
    kept: int
    not_kept: str = ""
    since: tuple[str, ...] = ()
    interrupted: bool = False


def choose(snapshots: Snapshots, turn: int | None, back: bool = False, word: str = "turn") -> SnapshotHead:
    """
    :param turn: ``None``: the undo that was interrupted, else the last turn.
    :param back: take back the last undo, whatever the turn.
    :param word: what people call a turn.
    :returns: the snapshot to restore.
    :raises NotFound: there is none; the message says why, and what can be undone.
    """
    heads = snapshots.heads()
    if turn is None and not back and (restoring := snapshots.interrupted()) is not None:
        return _only(heads, restoring.number)
    kind = SnapshotKind.UNDO if back else SnapshotKind.TURN
    found = [head for head in heads if head.kind is kind and (turn is None or back or head.turn == turn)]
    usable = sorted({head.turn for head in heads if head.kind is SnapshotKind.TURN and head.listing})
    others = f"; there are snapshots before {noun(len(usable), word)} {', '.join(map(str, usable))}" if usable else ""
    if not found and back:
        raise NotFound("there is no undo to take back")
    if not found:
        what = f"{word} {turn}" if turn is not None else f"any {word}"
        raise NotFound(f"there is no snapshot from before {what}{others}")
    if not found[-1].listing:
        raise NotFound(f"there is no snapshot from before {word} {found[-1].turn}: {found[-1].failed}{others}")
    return found[-1]


@contextmanager
def restoration(snapshots: Snapshots, head: SnapshotHead, everything: bool = False) -> Iterator[Restoration]:
    """
    :param everything: whether to restore also what others than the agent have changed since.
    :returns: the workspace compared with a snapshot.
    :raises NotFound: the snapshot is damaged.
    :raises UsageError: the workspace cannot be read.
    """
    tree = open_tree(head.workspace, hidden=head.hidden)
    try:
        yield _compared(snapshots, head, tree, everything)
    finally:
        close(tree)


def _compared(snapshots: Snapshots, head: SnapshotHead, tree: Tree, everything: bool) -> Restoration:
    found = Restoration(snapshots.read(head), tree)
    found.compare()
    since, found.known = changed_since(snapshots, head, tree)
    if not everything:
        found.keep(since)
    return found


def undo(
    snapshots: Snapshots,
    number: int,
    limits: SnapshotLimits,
    now: int,
    everything: bool = False,
    stopped: Callable[[], bool] = lambda: False,
) -> Undone:
    """
    Restore a snapshot, after taking one of the workspace as it is. If that is impossible because of the limits, the
    undo cannot be taken back. One that was interrupted is continued, without what others have changed meanwhile.

    :param number: of the snapshot to restore.
    :param now: nanoseconds since the epoch.
    :param everything: whether to restore also what others than the agent have changed since.
    :param stopped: called between two paths; once true, the undo ends, and is one that was interrupted.
    :raises NotFound: there is no such snapshot, or it is damaged.
    :raises UsageError: the workspace cannot be read.
    :raises OSError: the undo cannot be recorded; nothing was restored.
    """
    head = _only(snapshots.heads(), number)
    snapshots.read(head)
    restoring = snapshots.interrupted()
    if restoring is None or restoring.number != number:
        restoring = Restoring(number=number)
        snapshots.begin_restoring(restoring)
    not_kept, tree = "", open_tree(head.workspace, stopped, head.hidden)
    tree.access = Access(tree.root)
    try:
        if restoring.kept is None:
            taken = snapshots.take(tree, head.turn, SnapshotKind.UNDO, head.hidden, limits, now, number).head
            if stopped():
                return Undone(Restored(), 0, interrupted=True)
            not_kept = taken.failed
            restoring = msgspec.structs.replace(restoring, kept=taken.number if taken.listing else 0)
            snapshots.begin_restoring(restoring)
        elif restoring.kept:
            snapshots.take(tree, head.turn, SnapshotKind.CONTINUED, head.hidden, limits, now, number)
        found = _compared(snapshots, head, tree, everything)
        if stopped():  # not all changes were found
            return Undone(Restored(), restoring.kept or 0, not_kept, interrupted=True)
        restored, since = found.restore(), tuple(change.path for change in found.kept)
    finally:
        tree.access.close()
        close(tree)
    if not stopped():
        tree = open_tree(head.workspace, stopped, head.hidden)
        try:
            snapshots.take(tree, head.turn, SnapshotKind.END, head.hidden, limits, now)
        finally:
            close(tree)
    if not (interrupted := stopped()):
        snapshots.end_restoring()
    return Undone(restored, restoring.kept or 0, not_kept, since, interrupted)


def _only(heads: list[SnapshotHead], number: int) -> SnapshotHead:
    for head in heads:
        if head.number == number:
            return head
    raise NotFound(f"there is no snapshot {number}: it was removed meanwhile")
