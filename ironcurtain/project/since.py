"""Find what changed in a workspace while its agent did not work: by a person, or another program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

from ironcurtain.errors import NotFound
from ironcurtain.files.removal import is_aside
from ironcurtain.project.restore import DRAFT, WORKSPACE, Restoration
from ironcurtain.project.snapshot import Snapshot, SnapshotHead, SnapshotKind, Snapshots
from ironcurtain.project.tree import Tree, TreeEntry

_Kinds = tuple[str, str]
"""What a path was, and is: the kinds of its entries; empty: there is none."""


def changed_since(snapshots: Snapshots, head: SnapshotHead, tree: Tree) -> tuple[set[str], bool]:
    """
    :param head: a snapshot.
    :param tree: the workspace, open.
    :returns: the paths that changed between the end of a turn or undo after it and the next, or until now, and those
        that changed until an interrupted undo continued, but not by it; and whether the last one has an end on record,
        or was an undo, so that what changed until now is known.
    :raises NotFound: a snapshot is damaged.
    """
    known = {each.number: each for each in snapshots.heads() if each.listing and each.workspace == head.workspace}
    heads = [head, *(each for number, each in known.items() if number > head.number)]
    found = set[str]()
    for before, after in pairwise(heads):
        if before.kind is SnapshotKind.END:
            found |= _changed(snapshots.read(before), snapshots.read(after)).keys()
        elif before.kind is not SnapshotKind.TURN and after.kind is not SnapshotKind.END:
            found.update(_not_restored(snapshots, before, known.get(before.restored), snapshots.read(after)))
    if (last := heads[-1]).kind is SnapshotKind.END:
        found |= _changed(snapshots.read(last), tree).keys()
    elif last.kind is not SnapshotKind.TURN:
        found.update(_not_restored(snapshots, last, known.get(last.restored), tree))
    return {path for path in found if not _is_draft(path)}, last.kind is not SnapshotKind.TURN


def _not_restored(
    snapshots: Snapshots, before: SnapshotHead, restored: SnapshotHead | None, after: Snapshot | Tree
) -> Iterator[str]:
    """
    :param restored: the snapshot that an undo restored until it was interrupted; ``None``: it is not known.
    :returns: the paths that are neither as before that undo nor as it would have restored them.
    """
    changed, missing = _changed(snapshots.read(before), after), dict[str, _Kinds]()
    with suppress(NotFound):
        missing = _changed(snapshots.read(restored), after) if restored is not None else {}
    for path in changed.keys() & missing.keys():
        (was, now), (then, _) = changed[path], missing[path]
        makes_way = not now and was != then and "directory" in (was, then)
        if not makes_way and (now != "directory" or "directory" not in (was, then)):  # whose permissions come last
            yield path


def _changed(before: Snapshot, after: Snapshot | Tree) -> dict[str, _Kinds]:
    """:returns: the paths that differ."""
    if isinstance(after, Snapshot):
        return dict(_differences(before, after))
    now = Restoration(before, after)
    now.compare()
    return {change.path: (_kind(change.before), _kind(change.after)) for change in now.changes}


def _differences(before: Snapshot, after: Snapshot) -> Iterator[tuple[str, _Kinds]]:
    if None not in (before.head.mode, after.head.mode) and before.head.mode != after.head.mode:
        yield WORKSPACE, ("directory", "directory")
    for path in before.entries.keys() | after.entries.keys():
        then, now = before.entries.get(path), after.entries.get(path)
        if then is not None and now is not None:
            differs = _content(then) != _content(now)
        else:
            differs = (before if then is None else after).covers(path)
        if differs:
            yield path, (_kind(then), _kind(now))


def _kind(entry: TreeEntry | None) -> str:
    return entry.kind if entry is not None else ""


def _is_draft(path: str) -> bool:
    """:returns: whether an interrupted undo left it, rather than anybody else."""
    return any(name.startswith(DRAFT) or is_aside(name) for name in path.split("/"))


def _content(entry: TreeEntry) -> tuple[object, ...]:
    if entry.kind == "file" and not entry.digest:
        return entry.kind, entry.mode, entry.size, entry.written
    return entry.kind, entry.mode, entry.digest, entry.target
