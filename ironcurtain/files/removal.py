"""
Remove files that an agent created, in any state.

They can lack permissions, or be nested deeper than the stack or the limit of descriptors. So the top is first renamed,
which frees its name; then as much as possible is removed. Links are never followed.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ironcurtain.errors import Unavailable
from ironcurtain.platform.files import make_accessible

_ASIDE = re.compile(r"\.[0-9a-f]{16}\.old\Z")

_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def remove(path: Path) -> None:
    """
    Remove whatever is at a path; no effect if there is nothing.

    :raises Unavailable: it cannot be renamed.
    """
    try:
        directory = os.open(path.parent, _READ)
        try:
            remove_at(directory, path.name)
        finally:
            os.close(directory)
    except FileNotFoundError:
        return
    except OSError as e:
        raise Unavailable(f"{path} cannot be renamed: {e.strerror}") from None


def remove_at(directory: int, name: str) -> None:
    """
    The same in an open directory.

    :raises OSError: it cannot be renamed.
    """
    aside = f".{secrets.token_hex(8)}.old"
    os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)
    with suppress(OSError):
        if not _dropped(directory, aside):
            with _opened(directory, aside) as top:
                _empty(top)
            os.rmdir(aside, dir_fd=directory)


def is_aside(name: str) -> bool:
    """:returns: whether it is the name of what could not be removed, or not yet."""
    return _ASIDE.match(name) is not None


def _empty(top: int) -> None:
    """Move directories to the top before emptying them, so that nothing is deeply nested."""
    waiting = _swept(top, top)
    while waiting:
        name = waiting.pop()
        with suppress(OSError):
            with _opened(top, name) as directory:
                waiting += _swept(directory, top)
            os.rmdir(name, dir_fd=top)


def _swept(directory: int, top: int) -> list[str]:
    """
    :returns: the names at the top that were moved out of the directory because they could not be removed directly.
    """
    moved = []
    for name in os.listdir(directory):
        with suppress(OSError):
            if not _dropped(directory, name):
                with _opened(directory, name):  # moving a directory requires permission to write it
                    at_top = secrets.token_hex(8)
                    os.rename(name, at_top, src_dir_fd=directory, dst_dir_fd=top)
                moved.append(at_top)
    return moved


def _dropped(directory: int, name: str) -> bool:
    """:returns: whether it could be removed directly: a file, or an empty directory."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=directory)
        return True
    try:
        os.rmdir(name, dir_fd=directory)
    except OSError:
        return False
    return True


@contextmanager
def _opened(directory: int, name: str) -> Iterator[int]:
    """Open a directory, after giving its owner all permissions on it."""
    opened = make_accessible(directory, name)
    try:
        yield opened
    finally:
        os.close(opened)
