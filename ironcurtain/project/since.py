"""Find what changed in a workspace while its agent did not work: by a person, or another program."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ironcurtain.project.restore import WORKSPACE, Restoration
from ironcurtain.project.snapshot import Snapshot, SnapshotHead, SnapshotKind, Snapshots
from ironcurtain.project.tree import Tree, TreeEntry


def changed_since(snapshots: Snapshots, head: SnapshotHead, tree: Tree) -> tuple[set[str], bool]:
    """
    :param head: a snapshot.
    :param tree: the workspace, open.
    :returns: the paths that changed between the end of a turn or undo after it and the next, or until now; and whether
        the last one has an end on record, so that what changed until now is known.
    :raises NotFound: a snapshot is damaged.
    """
    heads = [each for each in snapshots.heads() if each.number > head.number and each.listing]
    heads = [each for each in heads if each.workspace == head.workspace]
    if (restoring := snapshots.interrupted()) is not None and restoring.number == head.number and restoring.kept:
        heads = [each for each in heads if each.number <= restoring.kept]  # what follows is the undo's own work
    found = set[str]()
    for ended, begun in pairwise(heads):
        if ended.kind is SnapshotKind.END:
            found |= set(_differences(snapshots.read(ended), snapshots.read(begun)))
    if not heads or heads[-1].kind is SnapshotKind.TURN:
        return found, False
    if heads[-1].kind is SnapshotKind.END:
        now = Restoration(snapshots.read(heads[-1]), tree)
        now.compare()
        found |= {change.path for change in now.changes}
    return found, True


def _differences(before: Snapshot, after: Snapshot) -> Iterator[str]:
    if None not in (before.head.mode, after.head.mode) and before.head.mode != after.head.mode:
        yield WORKSPACE
    for path in before.entries.keys() | after.entries.keys():
        then, now = before.entries.get(path), after.entries.get(path)
        if then is not None and now is not None:
            differs = _content(then) != _content(now)
        else:
            differs = (before if then is None else after).covers(path)
        if differs:
            yield path


def _content(entry: TreeEntry) -> tuple[object, ...]:
    if entry.kind == "file" and not entry.digest:
        return entry.kind, entry.mode, entry.size, entry.written
    return entry.kind, entry.mode, entry.digest, entry.target
