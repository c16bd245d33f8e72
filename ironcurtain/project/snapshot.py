"""
Snapshots of a workspace: all of its files as they were before a turn of its session.

A snapshot is a small file with a head, which names a list of all paths; the list and the contents of the files are in a
:class:`~ironcurtain.project.contents.ContentStore`, which all snapshots of a session share. An unchanged file is not
read again. Everything is in the session's directory, which the agent cannot access.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from ironcurtain.errors import NotFound, Unavailable
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.layout import private_directory
from ironcurtain.project.contents import ContentStore
from ironcurtain.project.manifest import KEPT_FILE, covers, decode_line, encode_line
from ironcurtain.project.tree import Tree, TreeEntry, file_entry
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import Place, open_regular, parent

FORMAT_VERSION = 1
"""Format version of a head; newer ones are not used."""

SETTLED = 2_000_000_000
"""
Nanoseconds before a snapshot within which a file's change makes its times useless: file systems count time in steps of
up to two seconds, so that the file can change again without another time.
"""

_DIGEST = re.compile(rb'"digest":"([0-9a-f]{64})"')


class SnapshotFailed(Unavailable):
    """There is no snapshot; the message says why."""

    code = "NO_SNAPSHOT"


class SnapshotKind(StrEnum):
    """When a snapshot was taken: before a turn, an undo, or the rest of one that was interrupted; after one of them."""

    TURN = "turn"
    UNDO = "undo"
    CONTINUED = "continued"
    END = "end"


class SnapshotLimits(msgspec.Struct, frozen=True):
    """
    :param snapshots: how many are kept.
    :param files: maximum number of files and directories in a workspace.
    :param size: maximum total size in bytes of its files, and of all contents that are kept.
    """

    snapshots: int
    files: int
    size: int


class SnapshotHead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    :param number: increases with each snapshot of the session.
    :param turn: the turn that followed; of one before an undo, the turn that was undone; of kind ``end``, that ended.
    :param taken_at: when it began, in nanoseconds since the epoch.
    :param workspace: real path of the directory.
    :param hidden: protected paths in it, which are in no snapshot.
    :param restored: of one before an undo, the number of the snapshot that it restores; 0: an earlier version took it.
    :param mode: permission bits of the directory; ``None``: an earlier version took it.
    :param listing: digest of the list; empty if there is no snapshot, and ``failed`` says why.
    """

    version: int = FORMAT_VERSION
    number: int
    turn: int
    kind: SnapshotKind
    taken_at: int
    workspace: str
    hidden: tuple[str, ...] = ()
    restored: int = 0
    mode: int | None = None
    listing: str = ""
    files: int = 0
    size: int = 0
    failed: str = ""


class Restoring(msgspec.Struct, frozen=True, kw_only=True):
    """
    An undo that began.

    :param number: of the snapshot that is restored.
    :param kept: of the one that was taken before; 0 if that failed, ``None`` if it is not taken yet.
    """

    number: int
    kept: int | None = None


class Snapshot(msgspec.Struct, frozen=True):
    """:param entries: by path within the workspace; a file without a digest could not be read."""

    head: SnapshotHead
    entries: Mapping[str, TreeEntry]
    contents: ContentStore

    def original(self, path: str) -> bytes | None:
        """:returns: a file's content; ``None`` if it is too large to be shown, or was not kept."""
        entry = self.entries.get(path)
        return self.contents.read(entry.digest, KEPT_FILE) if entry is not None and entry.digest else None

    def covers(self, path: str) -> bool:
        """:returns: whether a path's directory was listed, so that an unlisted path did not exist."""
        return covers(self.entries, path)

    def settled(self, entry: TreeEntry) -> bool:
        """:returns: whether an entry's times say that its file is unchanged, if they are the same now."""
        return entry.changed < self.head.taken_at - SETTLED


class SnapshotTaken(msgspec.Struct, frozen=True):
    """
    :param left_out: what is not in it, with the reason.
    """

    head: SnapshotHead
    left_out: tuple[tuple[str, str], ...] = ()


class Snapshots:
    """
    The snapshots of one session. Only one process uses them at a time.

    :param directory: created with the first one.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._contents = ContentStore(directory / "contents")
        self._restoring, self._taking = directory / "restoring.json", directory / "taking"

    def heads(self) -> list[SnapshotHead]:
        """:returns: all of them, oldest first, those that failed among them. Damaged ones are left out."""
        found = []
        for path in self._directory.glob("[0-9]*.json"):
            with suppress(FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                head = msgspec.json.decode(path.read_bytes(), type=SnapshotHead)
                if head.version == FORMAT_VERSION:
                    found.append(head)
        return sorted(found, key=lambda head: head.number)

    def read(self, head: SnapshotHead) -> Snapshot:
        """:raises NotFound: it is damaged, or there is none."""
        listed = self._contents.read(head.listing) if head.listing else None
        if listed is None:
            raise NotFound(f"there is no snapshot {head.number}: {head.failed or 'its list of files is missing'}")
        try:
            return Snapshot(head, dict(map(decode_line, listed.splitlines())), self._contents)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
            raise NotFound(f"snapshot {head.number} is damaged: {e}") from None

    def take(
        self,
        tree: Tree,
        turn: int,
        kind: SnapshotKind,
        hidden: Iterable[str],
        limits: SnapshotLimits,
        now: int,
        restored: int = 0,
    ) -> SnapshotTaken:
        """
        Take a snapshot. It appears once it is complete, and old ones are removed.

        :param turn: see :class:`SnapshotHead`.
        :param now: nanoseconds since the epoch.
        :returns: its head; without a listing if it failed, which is recorded, too.
        :raises OSError: not even that can be recorded.
        """
        self._begin()
        heads = self.heads()
        number = heads[-1].number + 1 if heads else 1
        head = SnapshotHead(
            number=number,
            turn=turn,
            kind=kind,
            taken_at=now,
            workspace=tree.root.path,
            hidden=tuple(hidden),
            restored=restored,
            mode=tree.mode,
        )
        try:
            taken = self._taken(tree, head, limits, self._newest(heads, head))
        except (SnapshotFailed, OSError) as e:
            why = e.strerror or str(e) if isinstance(e, OSError) else str(e)
            taken = SnapshotTaken(msgspec.structs.replace(head, failed=why))
            self._contents.sweep(self._needed(heads))
        write_atomically(self._path(number), msgspec.json.encode(taken.head))
        self._prune([*heads, taken.head], limits)
        self._taking.unlink()
        return taken

    def interrupted(self) -> Restoring | None:
        """:returns: the undo that has not ended."""
        try:
            return msgspec.json.decode(self._restoring.read_bytes(), type=Restoring)
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None

    def begin_restoring(self, restoring: Restoring) -> None:
        """Record that an undo begins."""
        write_atomically(self._restoring, msgspec.json.encode(restoring))

    def end_restoring(self) -> None:
        """Record that it ended."""
        self._restoring.unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:06}.json"

    def _begin(self) -> None:
        """Remove what an interrupted snapshot left, and mark that one is being taken."""
        private_directory(self._directory)
        self._contents.prepare()
        if self._taking.exists():
            for path in self._directory.glob(".*"):
                path.unlink()
            self._contents.sweep(self._needed(self.heads()))
        os.close(os.open(self._taking, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))

    def _newest(self, heads: list[SnapshotHead], head: SnapshotHead) -> Snapshot | None:
        for known in reversed(heads):
            if known.listing and known.workspace == head.workspace:
                with suppress(NotFound):
                    return self.read(known)
        return None

    def _taken(self, tree: Tree, head: SnapshotHead, limits: SnapshotLimits, before: Snapshot | None) -> SnapshotTaken:
        found, size = dict[str, tuple[Place, TreeEntry]](), 0
        for place, entry in tree.everything():
            found["/".join(place.parts)] = place, entry
            size += entry.size
            if len(found) > limits.files:
                raise SnapshotFailed(f"the workspace has more than {limits.files:,} files and directories")
            if size > limits.size:
                raise SnapshotFailed(f"the files of the workspace have more than {limits.size // 1_000_000:,} MB")
        left_out, lines = list[tuple[str, str]](), list[bytes]()
        for path, (place, entry) in found.items():
            if tree.stopped():
                break
            kept, why = self._kept(path, place, entry, before)
            if why:
                left_out.append((path, why))
            lines.append(encode_line(path, kept))
        if tree.stopped():
            raise SnapshotFailed("it was cancelled")
        listing = self._contents.add_bytes(b"".join(lines))
        done = msgspec.structs.replace(head, listing=listing, files=len(found), size=size)
        return SnapshotTaken(done, tuple(left_out))

    def _kept(self, path: str, place: Place, entry: TreeEntry, before: Snapshot | None) -> tuple[TreeEntry, str]:
        """:returns: the entry with the digest of its content; why it is left out, if it is."""
        if entry.kind == "other":
            return entry, "a socket, pipe or device"
        if entry.kind == "directory" and not entry.listed:
            return entry, "it cannot be listed"
        if entry.kind != "file":
            return entry, ""
        was = before.entries.get(path) if before is not None else None
        if before is not None and was is not None and was.digest and was.same_object(entry) and before.settled(was):
            return was, ""
        try:
            return self._stored(place), ""
        except FileError as e:
            return entry, str(e)

    def _stored(self, place: Place) -> TreeEntry:
        with parent(place) as (directory, _name):
            descriptor = open_regular(directory, place, os.O_RDONLY)
        try:
            entry = file_entry(os.fstat(descriptor))
            return msgspec.structs.replace(entry, digest=self._contents.add(descriptor))
        finally:
            os.close(descriptor)

    def _prune(self, heads: list[SnapshotHead], limits: SnapshotLimits) -> None:
        """Remove old snapshots until number and size are within the limits. The newest is always kept."""
        restoring = self.interrupted()
        fixed = {heads[-1].number} | ({restoring.number, restoring.kept} if restoring is not None else set())
        removable = [head for head in heads if head.number not in fixed]
        left, excess = list(heads), len(heads) - limits.snapshots
        while removable and (excess > 0 or self._contents.size() > limits.size):
            for head in removable[: max(excess, 1)]:
                self._path(head.number).unlink()
                left.remove(head)
            del removable[: max(excess, 1)]
            excess = 0
            self._contents.sweep(self._needed(left))

    def _needed(self, heads: Iterable[SnapshotHead]) -> set[str]:
        needed = set[str]()
        for listing in {head.listing for head in heads if head.listing}:
            needed.add(listing)
            needed |= {each.decode() for each in _DIGEST.findall(self._contents.read(listing) or b"")}
        return needed
