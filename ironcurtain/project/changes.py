"""Compare a workspace with its manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Literal, Protocol

import msgspec

from ironcurtain.project.manifest import KEPT_FILE, READ_FILE, read
from ironcurtain.project.tree import Tree, TreeEntry, above, is_opaque
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import Place

What = Literal["added", "removed", "changed", "mode"]


class Change(msgspec.Struct, frozen=True):
    """
    One changed path.

    :param what: ``mode``: only its permissions changed.
    :param before: the entry before; ``None`` if there was none.
    :param after: the entry now; ``None`` if there is none.
    """

    path: str
    what: What
    before: TreeEntry | None
    after: TreeEntry | None


class Earlier(Protocol):
    """A workspace as it was: a manifest, or a snapshot."""

    @property
    def entries(self) -> Mapping[str, TreeEntry]:
        """The entries by path."""

    def original(self, path: str) -> bytes | None:
        """:returns: a file's content; ``None`` if it was not kept, or cannot be shown."""

    def covers(self, path: str) -> bool:
        """:returns: whether a path's directory was listed, so that an unlisted path did not exist."""


class Comparison(msgspec.Struct):
    """
    A workspace compared with an earlier state.

    :param tree: the workspace, open.
    """

    manifest: Earlier
    tree: Tree
    uncovered: list[str] = msgspec.field(default_factory=list)
    """Directories without a result: not listed then, or not listed now."""

    @property
    def unseen(self) -> list[str]:
        """Those in which there could be files that programs run: all except git's objects."""
        return [path for path in self.uncovered if not is_opaque(tuple(path.split("/")))]

    def changes(self) -> list[Change]:
        """:returns: all changes, by path, without directories, whose contents are listed."""
        return sorted(self._changes(), key=lambda change: change.path)

    def before(self, change: Change) -> bytes | None:
        """:returns: the earlier content of a file or link; empty if it did not exist, ``None`` if it was not kept."""
        if change.before is None:
            return b""
        if change.before.kind == "link":
            return change.before.target.encode("utf-8", "surrogateescape")
        return self.manifest.original(change.path)

    def after(self, change: Change) -> bytes | None:
        """
        :returns: the current content of a file or link; empty if it does not exist, ``None`` if it cannot be shown.
        """
        if change.after is None:
            return b""
        if change.after.kind == "link":
            return change.after.target.encode("utf-8", "surrogateescape")
        return self.content(change.path)

    def content(self, path: str) -> bytes | None:
        """:returns: a file's current content; ``None`` if it is not a regular file, too large or unreadable."""
        with suppress(FileError, OSError):
            entry, _, data = read(Place(self.tree.root, tuple(path.split("/"))), KEPT_FILE + 1)
            return data if entry.kind == "file" and len(data) <= KEPT_FILE else None
        return None

    def _changes(self) -> Iterator[Change]:
        gone = {path for path, entry in self.manifest.entries.items() if entry.kind != "directory"}
        for place, now in self.tree.entries():
            path = "/".join(place.parts)
            gone.discard(path)
            then = self.manifest.entries.get(path)
            if now.kind == "directory":
                self._directory(path, then, now)
            if change := self._change(path, then, now):
                yield change
        unlisted = set(self.uncovered)
        for path in gone:
            if unlisted.isdisjoint(above(path)):
                yield Change(path, "removed", self.manifest.entries[path], None)

    def _directory(self, path: str, then: TreeEntry | None, now: TreeEntry) -> None:
        if not now.listed or (then is not None and not then.listed):
            self.uncovered.append(path)

    def _change(self, path: str, then: TreeEntry | None, now: TreeEntry) -> Change | None:
        was = then if then is not None and then.kind != "directory" else None
        now_is = now if now.kind != "directory" else None
        if was is None and now_is is None:
            return None
        if was is None:
            return Change(path, "added", None, now_is) if self.manifest.covers(path) else None
        if now_is is None:
            return Change(path, "removed", was, None)
        if was.same_object(now_is):
            return None
        if self._same_content(path, was, now_is):
            return Change(path, "mode", was, now_is) if was.mode != now_is.mode else None
        return Change(path, "changed", was, now_is)

    def _same_content(self, path: str, then: TreeEntry, now: TreeEntry) -> bool:
        if (then.kind, then.size, then.target) != (now.kind, now.size, now.target):
            return False
        if then.kind != "file":
            return True
        if not then.digest or now.size > READ_FILE:
            return then.written == now.written
        with suppress(FileError, OSError):
            return read(Place(self.tree.root, tuple(path.split("/"))), 0)[1] == then.digest
        return False
