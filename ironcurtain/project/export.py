"""Copy a workspace to a new directory, without files that are dangerous there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from typing import BinaryIO

import msgspec

from ironcurtain.errors import UsageError
from ironcurtain.files import sparse
from ironcurtain.home.user_paths import absolute_path
from ironcurtain.project.changes import Comparison
from ironcurtain.project.gitsettings import Repositories
from ironcurtain.project.planted import leads_out
from ironcurtain.project.tree import TreeEntry, look
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import DIRECTORY, SAFE, OpenRoot, Place, enter, open_regular, parent


class Exported(msgspec.Struct):
    """
    The result.

    :param left_out: paths that were not copied, with the reason.
    :param restored: files that were copied as they were before the session.
    """

    files: int = 0
    bytes: int = 0
    left_out: list[tuple[str, str]] = msgspec.field(default_factory=list)
    restored: list[str] = msgspec.field(default_factory=list)


def destination(path: Path, workspace: str) -> Path:
    """
    Create the target directory of a copy.

    :param path: it must not exist, or be an empty directory.
    :raises UsageError: it cannot be used.
    """
    real = Path(os.path.realpath(absolute_path(path)))
    if real.is_relative_to(workspace) or Path(workspace).is_relative_to(real):
        raise UsageError(f"{real} and the workspace {workspace} must not contain each other: choose another directory")
    try:
        real.mkdir(parents=True, exist_ok=True)
        if any(real.iterdir()):
            raise UsageError(f"{real} is not empty: choose a new directory")
    except OSError as e:
        raise UsageError(f"{real} cannot be used: {e.strerror}") from None
    return real


def export(comparison: Comparison, to: Path) -> Exported:
    """
    Copy a workspace. Links that point inside are copied as links, and no link is followed. Of files, only contents and
    permissions are copied, without set-user-id and similar bits. What is not known as data in a repository (settings,
    hooks, links, the steps of a rebase) is copied as it was before the session, or left out if that is unknown or it
    did not exist.

    :param to: an empty directory.
    :raises OSError: something cannot be written there.
    """
    done, repositories = Exported(), Repositories()
    root = OpenRoot(str(to), (str(to),), os.open(to, DIRECTORY))
    try:
        for above, listing in groupby(comparison.tree.everything(), lambda seen: seen[0].parts[:-1]):
            entries = list(listing)
            repositories.listed(above, [place.parts[-1] for place, _ in entries])
            for place, entry in entries:
                _export(comparison, repositories, place, entry, Place(root, place.parts), done)
    finally:
        os.close(root.descriptor)
    return done


def _export(
    comparison: Comparison, repositories: Repositories, source: Place, entry: TreeEntry, target: Place, done: Exported
) -> None:
    path = "/".join(source.parts)
    try:
        if _goes(repositories, source.parts, comparison.manifest.entries.get(path), entry):
            _copy(source, entry, target, done)
        else:
            _restore(comparison, path, entry, target, done)
    except FileError as e:
        done.left_out.append((path, str(e)))


def _goes(repositories: Repositories, path: tuple[str, ...], then: TreeEntry | None, now: TreeEntry) -> bool:
    """:returns: whether the path may be copied, since it does not affect what git runs."""
    if now.kind == "directory" or not repositories.contain(path):
        return True
    if now.kind == "link":
        return not repositories.decides(path) and _same_link(then, now)
    return not repositories.may_decide(path) and path[-1].lower() != ".git"


def _same_link(then: TreeEntry | None, now: TreeEntry) -> bool:
    return then is not None and (then.kind, now.kind) == ("link", "link") and then.target == now.target


def _copy(source: Place, entry: TreeEntry, target: Place, done: Exported) -> None:
    path = "/".join(source.parts)
    if entry.kind == "file":
        done.bytes += _copy_file(source, target)
        done.files += 1
    elif entry.kind == "directory":
        os.close(_made(target))
        if not entry.listed:
            done.left_out.append((path, "cannot be listed"))
    elif entry.kind == "link" and not leads_out(path, entry.target):
        with _parent(target) as (descriptor, name):
            os.symlink(entry.target, name, dir_fd=descriptor)
    else:
        why = "a link that points outside" if entry.kind == "link" else "no file, but a FIFO, socket or device"
        done.left_out.append((path, why))


def _copy_file(source: Place, target: Place) -> int:
    with parent(source) as (from_descriptor, from_name):
        mode = look(from_descriptor, from_name).mode
        descriptor = open_regular(from_descriptor, source, os.O_RDONLY)
    with (
        open(descriptor, "rb", buffering=0) as data,
        _parent(target) as (to_descriptor, name),
        _new_file(to_descriptor, name, mode) as copy,
    ):
        return sparse.copy(data.fileno(), copy.fileno())


def _restore(comparison: Comparison, path: str, now: TreeEntry, target: Place, done: Exported) -> None:
    """Write the stored original of a file, so that nothing the agent wrote gets into the copy."""
    then = comparison.manifest.entries.get(path)
    at = _led_to(path, then) if then is not None and then.kind == "link" else path
    kept, original = comparison.manifest.entries.get(at), comparison.manifest.original(at)
    if then is None or kept is None or original is None:
        done.left_out.append((path, "git would run or use it in the copy"))
        return
    with _parent(target) as (descriptor, name), _new_file(descriptor, name, kept.mode) as copy:
        copy.write(original)
    done.files += 1
    done.bytes += len(original)
    same = _same_link(then, now) if then.kind == "link" else (now.kind, now.mode) == (then.kind, then.mode)
    if not same or comparison.content(at) != original:
        done.restored.append(path)


def _led_to(path: str, link: TreeEntry) -> str:
    """:returns: the target of a link; the manifest has no entry there if a component was itself a link."""
    return "" if leads_out(path, link.target) else os.path.normpath(os.path.join(os.path.dirname(path), link.target))


def _new_file(descriptor: int, name: str, mode: int) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE
    return open(os.open(name, flags, 0o777 & mode | 0o600, dir_fd=descriptor), "wb")


@contextmanager
def _parent(place: Place) -> Iterator[tuple[int, str]]:
    """The directory of a path in the copy, created if missing: the agent can still change the workspace."""
    descriptor = _made(Place(place.root, place.parts[:-1]))
    try:
        yield descriptor, place.parts[-1]
    finally:
        os.close(descriptor)


def _made(place: Place) -> int:
    """Create a directory of the copy with its parents, and open it."""
    current = os.dup(place.root.descriptor)
    for index, name in enumerate(place.parts):
        try:
            with suppress(FileExistsError):
                os.mkdir(name, 0o777, dir_fd=current)
            following = enter(current, Place(place.root, place.parts[: index + 1]))
        finally:
            os.close(current)
        current = following
    return current
