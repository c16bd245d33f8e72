"""
Restore a workspace from a snapshot.

What differs is found first, then restored path by path, each atomically. Every directory is opened relative to its
parent without following links, since the agent may have planted some. Doing it again continues after an interruption.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress

import msgspec

from ironcurtain.errors import NotFound
from ironcurtain.files.removal import remove_at
from ironcurtain.project.access import CHANGE, Access
from ironcurtain.project.changes import Change, Comparison
from ironcurtain.project.manifest import read_digest
from ironcurtain.project.snapshot import Snapshot
from ironcurtain.project.tree import Tree, TreeEntry, above, look
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import SAFE, Place, enter, open_regular, parent

DRAFT = ".ironcurtain-undo-"
"""The beginning of the name of a file that is being restored; an interrupted undo leaves it for the next."""

WORKSPACE = "."
"""The path of the workspace itself, of which only the permissions are restored."""


class Restored(msgspec.Struct):
    """
    :param changed: number of files, directories and links that are as they were.
    :param removed: number of those that did not exist.
    :param left: paths that could not be restored, with the reason.
    """

    changed: int = 0
    removed: int = 0
    left: list[tuple[str, str]] = msgspec.field(default_factory=list)


class Restoration(msgspec.Struct):
    """
    A workspace compared with a snapshot of it.

    :param tree: the workspace, open.
    """

    snapshot: Snapshot
    tree: Tree
    changes: list[Change] = msgspec.field(default_factory=list)
    """What would be restored, directories too, by path; set by :meth:`compare`."""
    kept: list[Change] = msgspec.field(default_factory=list)
    """What would be restored, but has changed since by others than the agent; set by :meth:`keep`."""
    known: bool = False
    """Whether it is on record what others than the agent have changed since."""
    unlisted: list[str] = msgspec.field(default_factory=list)
    """Directories that cannot be listed now, which are left as they are."""
    files: int = 0
    """Number of files and directories now."""
    size: int = 0
    """Total size in bytes of the files now."""

    @property
    def shown(self) -> list[Change]:
        """The changes without directories, for people."""
        found = [_without_directory(change) for change in self.changes]
        return [change for change in found if change.before is not None or change.after is not None]

    @property
    def comparison(self) -> Comparison:
        """For contents before and after a change."""
        return Comparison(self.snapshot, self.tree)

    def compare(self) -> None:
        """Find all changes."""
        gone = dict(self.snapshot.entries)
        if (mode := self.snapshot.head.mode) is not None and mode != self.tree.mode:
            before, after = (TreeEntry(kind="directory", mode=each) for each in (mode, self.tree.mode))
            self.changes.append(Change(WORKSPACE, "mode", before, after))
        for place, now in self.tree.everything():
            path = "/".join(place.parts)
            self.files, self.size = self.files + 1, self.size + now.size
            if now.kind == "directory" and not now.listed:
                self.unlisted.append(path)
                gone.pop(path, None)
            elif change := self._change(path, place, gone.pop(path, None), now):
                self.changes.append(change)
        unlisted = set(self.unlisted)
        for path, then in gone.items():
            if unlisted.isdisjoint(above(path)):
                self.changes.append(Change(path, "removed", then, None))
        self.changes.sort(key=lambda change: change.path)

    def keep(self, since: Collection[str]) -> None:
        """
        Leave paths as they are, and what they depend on.

        :param since: the paths that others than the agent have changed.
        """
        inside = {directory for path in since for directory in above(path)}
        files = {change.path for change in self.changes if change.path in since and _kind(change.after) != "directory"}
        restored = list[Change]()
        for change in self.changes:
            holds = change.path in inside and _kind(change.after) == "directory" != _kind(change.before)
            covered = not files.isdisjoint(above(change.path))
            if change.path in since or covered or (holds and change.before is not None):
                self.kept.append(change)
            elif not holds:
                restored.append(change)
        self.changes = restored

    def restore(self) -> Restored:
        """
        Restore what differs, until the tree is stopped; doing it again continues.

        :returns: what was done. What cannot be restored is left as it is.
        """
        recorded: Sequence[Change] = ()
        restorer = _Restorer(self.snapshot, self.tree, dict.fromkeys(self.unlisted, "the directory cannot be listed"))
        try:
            for step, change in _steps(self.changes):
                if self.tree.stopped():
                    break
                restorer.take(step, change)
            else:
                recorded = self.changes
        finally:
            restorer.set_modes(recorded)
        return restorer.done

    def _change(self, path: str, place: Place, then: TreeEntry | None, now: TreeEntry) -> Change | None:
        if then is None:
            return Change(path, "added", None, now) if self.snapshot.covers(path) else None
        if then.kind != now.kind:
            return Change(path, "changed", then, now)
        if then.kind == "directory":
            return Change(path, "mode", then, now) if then.mode != now.mode else None
        if then.kind == "other":
            return None
        if then.same_object(now) and (then.kind == "link" or self.snapshot.settled(then) or not then.digest):
            return None
        if not self._same_content(place, then, now):
            return Change(path, "changed", then, now)
        return Change(path, "mode", then, now) if then.mode != now.mode else None

    def _same_content(self, place: Place, then: TreeEntry, now: TreeEntry) -> bool:
        if (then.size, then.target) != (now.size, now.target):
            return False
        if then.kind == "link":
            return True
        with suppress(FileError, OSError):
            return read_digest(place) == then.digest
        return False


class _Restorer:
    """:param left: the paths that stay as they are, with the reason."""

    def __init__(self, snapshot: Snapshot, tree: Tree, left: dict[str, str]) -> None:
        self._snapshot, self._root, self._left = snapshot, tree.root, left
        self._access = tree.access or Access(tree.root)
        self._changed = self._removed = 0

    @property
    def done(self) -> Restored:
        """What was done."""
        return Restored(self._changed, self._removed, list(self._left.items()))

    def take(self, step: _Step, change: Change) -> None:
        """Take one step, unless an earlier one failed."""
        if change.path in self._left:
            return
        place = Place(self._root, _parts(change.path))
        self._access.give(place.parts[:-1], CHANGE)
        try:
            if step(self._snapshot, place, change):
                self._removed += change.before is None
                self._changed += change.before is not None
        except (FileError, NotFound) as e:
            self._left[change.path] = str(e)
        except OSError as e:
            self._left[change.path] = e.strerror or str(e)

    def set_modes(self, changes: Sequence[Change]) -> None:
        """Set the permissions of directories: the recorded ones, and the former ones of those made accessible."""
        modes = {
            change.path: change.before.mode
            for change in changes
            if change.before is not None and change.before.kind == "directory" and change.path not in self._left
        }
        for path, why in self._access.take_back({_parts(path): mode for path, mode in modes.items()}):
            self._left["/".join(path) or WORKSPACE] = why
        self._changed += sum(_is_mode(change) and change.path not in self._left for change in changes)


def _steps(changes: Sequence[Change]) -> Iterator[tuple[_Step, Change]]:
    """:returns: what to do, in order, without the permissions of directories."""
    others = [change for change in changes if not _is_mode(change)]
    for step in (_clear, _make_directory, _put):
        for change in others:
            yield step, change
    replaced = {
        change.path
        for change in others
        if _kind(change.after) == "directory" and _kind(change.before) not in ("", "directory")
    }
    for change in reversed(others):
        if replaced.isdisjoint(above(change.path)):  # else it went with the directory that had a file's place
            yield _remove_directory, change


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")) if path != WORKSPACE else ()


def _is_mode(change: Change) -> bool:
    """:returns: whether only the permissions of a directory changed."""
    return change.what == "mode" and _kind(change.before) == "directory"


def _without_directory(change: Change) -> Change:
    before, after = (
        entry if entry is not None and entry.kind != "directory" else None for entry in (change.before, change.after)
    )
    if change.before == before and change.after == after:
        return change
    return Change(change.path, "removed" if after is None else "added", before, after)


def _kind(entry: TreeEntry | None) -> str:
    return entry.kind if entry is not None else ""


_Step = Callable[[Snapshot, Place, Change], bool]
"""Does a part of what restoring a path takes; returns whether the path is as it was because of it."""


def _clear(snapshot: Snapshot, place: Place, change: Change) -> bool:
    """Remove what is no directory where there was nothing, or a directory; restored files replace others at once."""
    now, then = _kind(change.after), _kind(change.before)
    if now in ("", "directory") or then not in ("", "directory"):
        return False
    with parent(place) as (directory, name):
        if look(directory, name).kind == "directory":
            raise FileError("it is a directory now")
        os.unlink(name, dir_fd=directory)
    return not then


def _make_directory(snapshot: Snapshot, place: Place, change: Change) -> bool:
    if _kind(change.before) != "directory" or _kind(change.after) == "directory":
        return False
    with parent(place) as (directory, name):
        os.mkdir(name, 0o700, dir_fd=directory)
        made = enter(directory, place)
        try:
            _give_to_owner(made, directory)
        finally:
            os.close(made)
    return True


def _put(snapshot: Snapshot, place: Place, change: Change) -> bool:
    """Put a file or link in its place, or only set a file's mode."""
    then = change.before
    if then is None or then.kind == "directory":
        return False
    if then.kind == "other":
        raise FileError("it was a socket, pipe or device, which are in no snapshot")
    if then.kind == "file" and not then.digest:
        raise FileError("it could not be read when the snapshot was taken")
    with parent(place) as (directory, name):
        if change.what == "mode":
            _set_mode(directory, name, place, then.mode)
            return True
        draft = f"{DRAFT}{secrets.token_hex(8)}"
        try:
            if then.kind == "link":
                os.symlink(then.target, draft, dir_fd=directory)
            else:
                _write(snapshot, directory, draft, then)
            with suppress(FileNotFoundError):
                if look(directory, name).kind == "directory":
                    remove_at(directory, name)
            os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=directory)
            raise
    return True


def _write(snapshot: Snapshot, directory: int, name: str, then: TreeEntry) -> None:
    descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | SAFE, 0o600, dir_fd=directory)
    try:
        snapshot.contents.copy(then.digest, descriptor)
        _give_to_owner(descriptor, directory)
        os.fchmod(descriptor, then.mode)
        os.utime(descriptor, ns=(then.written, then.written))
    finally:
        os.close(descriptor)


def _set_mode(directory: int, name: str, place: Place, mode: int) -> None:
    descriptor = open_regular(directory, place, os.O_RDONLY)
    try:
        os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def _remove_directory(snapshot: Snapshot, place: Place, change: Change) -> bool:
    if change.before is not None or _kind(change.after) != "directory":
        return False
    with parent(place) as (directory, name):
        os.rmdir(name, dir_fd=directory)
    return True


def _give_to_owner(descriptor: int, directory: int) -> None:
    """Give what root restores to the owner of the directory that it is in, as whom the session's programs run."""
    if os.geteuid() == 0:
        owner = os.fstat(directory)
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
