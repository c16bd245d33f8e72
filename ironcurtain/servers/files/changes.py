"""Create, move and delete files and directories relative to the descriptors of their parents."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from ironcurtain.servers.files.failures import FileError, explain, shown
from ironcurtain.servers.files.walk import Place, enter, parent, require_regular, status


def make_directories(place: Place) -> bool:
    """
    Create a directory, with missing parents.

    :returns: whether it was created; ``False`` if it existed.
    :raises FileError: a component is a file or a link, or creating failed.
    """
    current, made = os.dup(place.root.descriptor), False
    try:
        for index, name in enumerate(place.parts):
            here = Place(place.root, place.parts[: index + 1])
            try:
                os.mkdir(name, dir_fd=current)
                made = True
            except FileExistsError:
                pass
            except OSError as e:
                raise explain(e, here.path) from e
            following = enter(current, here)
            os.close(current)
            current = following
    finally:
        os.close(current)
    return made


def move(source: Place, destination: Place) -> None:
    """
    Rename a file or directory, without ever replacing an existing one.

    A plain rename would replace it. So a file is linked to its new name, which fails if the name is taken, and then
    unlinked; a directory is renamed over a newly created empty one, the only thing that renaming a directory replaces.
    Both are portable and need no call that Python lacks (``renameat2``, which many network file systems refuse).

    :raises FileError: the source is missing or a link, the destination exists, they are on different file systems, or
        one of them contains a protected path, which would get another name.
    """
    if destination.root == source.root and destination.parts[: len(source.parts)] == source.parts:
        raise FileError(f"cannot move {shown(source.path)} to itself or into itself")
    for place in (source, destination):
        if place.contains_hidden:
            raise FileError(f"{shown(place.path)} is protected, or contains protected paths")
    with parent(source) as (from_directory, from_name), parent(destination) as (to_directory, to_name):
        found = status(from_directory, source)
        if found is None:
            raise FileError(f"no such file or directory: {shown(source.path)}")
        is_directory = stat.S_ISDIR(found.st_mode)
        if not is_directory:
            require_regular(found, source.path)
        try:
            (_move_directory if is_directory else _move_file)(from_directory, from_name, to_directory, to_name)
        except FileExistsError as e:
            raise FileError(f"destination exists already: {shown(destination.path)}") from e
        except OSError as e:
            raise explain(e, f"{source.path} -> {destination.path}") from e


def _move_file(from_directory: int, from_name: str, to_directory: int, to_name: str) -> None:
    os.link(from_name, to_name, src_dir_fd=from_directory, dst_dir_fd=to_directory, follow_symlinks=False)
    os.unlink(from_name, dir_fd=from_directory)


def _move_directory(from_directory: int, from_name: str, to_directory: int, to_name: str) -> None:
    os.mkdir(to_name, dir_fd=to_directory)
    try:
        os.rename(from_name, to_name, src_dir_fd=from_directory, dst_dir_fd=to_directory)
    except OSError:
        with suppress(OSError):
            os.rmdir(to_name, dir_fd=to_directory)
        raise


def delete_file(place: Place) -> None:
    """
    Delete a regular file.

    :raises FileError: it does not exist, or is something else.
    """
    with parent(place) as (directory, name):
        found = status(directory, place)
        if found is None:
            raise FileError(f"no such file: {shown(place.path)}")
        require_regular(found, place.path)
        try:
            os.unlink(name, dir_fd=directory)
        except OSError as e:
            raise explain(e, place.path) from e


def delete_directory(place: Place) -> None:
    """
    Delete an empty directory.

    :raises FileError: it does not exist, is something else, or is not empty.
    """
    with parent(place) as (directory, name):
        found = status(directory, place)
        if found is not None and not stat.S_ISDIR(found.st_mode):
            raise FileError(f"is not a directory: {shown(place.path)}; delete_file deletes files")
        try:
            os.rmdir(name, dir_fd=directory)
        except OSError as e:
            raise explain(e, place.path) from e
