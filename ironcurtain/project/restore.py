"""
Restore a workspace from a snapshot.

What differs is found first, then restored path by path, each atomically. Every directory is opened relative to its
parent without following links, since the agent may have planted some. Doing it again continues after an interruption.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection
from contextlib import suppress

import msgspec

from ironcurtain.errors import NotFound
from ironcurtain.files.removal import remove_at
from ironcurtain.project.changes import Change, Comparison
from ironcurtain.project.manifest import read_digest
from ironcurtain.project.snapshot import Snapshot
from ironcurtain.project.tree import Tree, TreeEntry, look
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import SAFE, Place, enter, open_regular, parent

DRAFT = ".ironcurtain-undo-"
"""The beginning of the name of a file that is being restored; an interrupted undo leaves it for the next."""


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
        for place, now in self.tree.everything():
            path = "/".join(place.parts)
            self.files, self.size = self.files + 1, self.size + now.size
            if now.kind == "directory" and not now.listed:
                self.unlisted.append(path)
                gone.pop(path, None)
            elif change := self._change(path, place, gone.pop(path, None), now):
                self.changes.append(change)
        below = tuple(f"{path}/" if path else "" for path in self.unlisted)
        for path, then in gone.items():
            if not below or not path.startswith(below):
                self.changes.append(Change(path, "removed", then, None))
        self.changes.sort(key=lambda change: change.path)

    def keep(self, since: Collection[str]) -> None:
        """
        Leave paths as they are, and what they depend on.

        :param since: the paths that others than the agent have changed.
        """
        inside = {path[:at] for path in since for at, letter in enumerate(path) if letter == "/"}
        files = {change.path for change in self.changes if change.path in since and _kind(change.after) != "directory"}
        restored = list[Change]()
        for change in self.changes:
            parents = {change.path[:at] for at, letter in enumerate(change.path) if letter == "/"}
            holds = change.path in inside and _kind(change.after) == "directory" != _kind(change.before)
            if change.path in since or parents & files or (holds and change.before is not None):
                self.kept.append(change)
            elif not holds:
                restored.append(change)
        self.changes = restored

    def restore(self) -> Restored:
        """:returns: what was done. What cannot be restored is left as it is."""
        done = Restored(left=[(path, "the directory cannot be listed") for path in self.unlisted])
        for step in (_clear, _make_directory, _put, _remove_directory, _set_directory_mode):
            backwards = step in (_remove_directory, _set_directory_mode)
            for change in reversed(self.changes) if backwards else self.changes:
                self._do(step, change, done)
        return done

    def _do(self, step: Callable[[Snapshot, Place, Change], bool], change: Change, done: Restored) -> None:
        if change.path in (path for path, _ in done.left) or self._is_replaced(step, change):
            return
        place = Place(self.tree.root, tuple(change.path.split("/")))
        try:
            if step(self.snapshot, place, change):
                done.removed += change.before is None
                done.changed += change.before is not None
        except (FileError, NotFound) as e:
            done.left.append((change.path, str(e)))
        except OSError as e:
            done.left.append((change.path, e.strerror or str(e)))

    def _is_replaced(self, step: Callable[[Snapshot, Place, Change], bool], change: Change) -> bool:
        """:returns: whether a directory went with one that had a file's place."""
        return step is _remove_directory and any(
            change.path.startswith(f"{other.path}/")
            for other in self.changes
            if _kind(other.after) == "directory" and _kind(other.before) not in ("", "directory")
        )

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


def _without_directory(change: Change) -> Change:
    before, after = (
        entry if entry is not None and entry.kind != "directory" else None for entry in (change.before, change.after)
    )
    if change.before == before and change.after == after:
        return change
    return Change(change.path, "removed" if after is None else "added", before, after)


def _kind(entry: TreeEntry | None) -> str:
    return entry.kind if entry is not None else ""


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


def _set_directory_mode(snapshot: Snapshot, place: Place, change: Change) -> bool:
    then = change.before
    if then is None or then.kind != "directory":
        return False
    with parent(place) as (directory, _name):
        opened = enter(directory, place)
        try:
            os.fchmod(opened, then.mode)
        finally:
            os.close(opened)
    return change.what == "mode"


def _give_to_owner(descriptor: int, directory: int) -> None:
    """Give what root restores to the owner of the directory that it is in, as whom the session's programs run."""
    if os.geteuid() == 0:
        owner = os.fstat(directory)
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
