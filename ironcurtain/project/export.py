"""Copy what is in a workspace to a fresh directory, without what could harm there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ironcurtain.errors import UsageError
from ironcurtain.project.changes import Change, Comparison
from ironcurtain.project.planted import findings, in_repository, leads_out
from ironcurtain.project.tree import Entry, look
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import DIRECTORY, SAFE, Place, Root, directory, open_regular, parent

_BLOCK = 1024 * 1024


@dataclass(slots=True)
class Exported:
    """
    What was done.

    :param left_out: paths that are not in the copy, with the reason.
    :param restored: files that are in the copy as they were before the session.
    """

    files: int = 0
    bytes: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)


def destination(path: Path, workspace: str) -> Path:
    """
    Make the directory that a copy goes to.

    :param path: it must not exist, or be an empty directory.
    :raises UsageError: it cannot be used.
    """
    real = Path(os.path.realpath(path.expanduser()))
    if real.is_relative_to(workspace) or Path(workspace).is_relative_to(real):
        raise UsageError(f"{real} and the workspace {workspace} must lie apart: choose another place")
    try:
        real.mkdir(parents=True, exist_ok=True)
        if any(real.iterdir()):
            raise UsageError(f"{real} is not empty: choose a new directory")
    except OSError as e:
        raise UsageError(f"{real} cannot be used: {e.strerror}") from None
    return real


def export(comparison: Comparison, to: Path) -> Exported:
    """
    Copy a workspace. Links are copied as links where they stay inside, and never followed; of files only the contents
    and the permissions are copied, and set-user-id and the like are not. What git would run in the copy without being
    asked (hooks and settings that are new) is left out, or is as it was before.

    :param to: an empty directory.
    :raises OSError: something cannot be written there.
    """
    done = Exported()
    changes = {change.path: change for change in comparison.changes()}
    told = findings(changes.values(), comparison.before, comparison.after)
    held_back = {f.path for f in told if in_repository(f.path) or f.path.lower().rpartition("/")[2] == ".git"}
    root = Root(str(to), (str(to),), os.open(to, DIRECTORY))
    try:
        for place, entry in comparison.tree.everything():
            path = "/".join(place.parts)
            if path in held_back:
                _restore(comparison, changes[path], Place(root, place.parts), done)
            else:
                _copy(place, entry, Place(root, place.parts), done)
    finally:
        os.close(root.descriptor)
    return done


def _copy(source: Place, entry: Entry, target: Place, done: Exported) -> None:
    path = "/".join(source.parts)
    try:
        if entry.kind == "file":
            done.bytes += _copy_file(source, target)
            done.files += 1
        elif entry.kind == "directory":
            _make_directory(target)
        elif entry.kind == "link" and not leads_out(path, entry.target):
            with _parent(target) as (descriptor, name):
                os.symlink(entry.target, name, dir_fd=descriptor)
        else:
            why = "a link that leads elsewhere" if entry.kind == "link" else "no file, but a FIFO, socket or device"
            done.left_out.append((path, why))
    except FileError as e:
        done.left_out.append((path, str(e)))


def _copy_file(source: Place, target: Place) -> int:
    with parent(source) as (from_descriptor, from_name):
        mode = look(from_descriptor, from_name).mode
        descriptor = open_regular(from_descriptor, from_name, source.path, os.O_RDONLY)
    size = 0
    with (
        open(descriptor, "rb", buffering=0) as data,
        _parent(target) as (to_descriptor, name),
        _new_file(to_descriptor, name, mode) as copy,
    ):
        while block := data.read(_BLOCK):
            size += copy.write(block)
    return size


def _restore(comparison: Comparison, change: Change, target: Place, done: Exported) -> None:
    original = comparison.before(change) if change.before is not None and change.before.kind == "file" else None
    if original is None or change.before is None:
        done.left_out.append((change.path, "git would run or obey it in the copy"))
        return
    with _parent(target) as (descriptor, name), _new_file(descriptor, name, change.before.mode) as copy:
        copy.write(original)
    done.restored.append(change.path)


def _new_file(descriptor: int, name: str, mode: int) -> BinaryIO:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE
    return open(os.open(name, flags, 0o777 & mode | 0o600, dir_fd=descriptor), "wb")


@contextmanager
def _parent(place: Place) -> Iterator[tuple[int, str]]:
    """The directory of a place in the copy, made if it is not there: in the workspace it may come and go."""
    above = Place(place.root, place.parts[:-1])
    if above.parts:
        _make_directory(above)
    with directory(above) as descriptor:
        yield descriptor, place.parts[-1]


def _make_directory(place: Place) -> None:
    with _parent(place) as (descriptor, name):
        try:
            os.mkdir(name, 0o777, dir_fd=descriptor)
        except OSError as e:
            if e.errno != errno.EEXIST:
                raise
