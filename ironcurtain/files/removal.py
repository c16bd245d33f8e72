"""
Remove what an agent made, whatever it made of it.

It may be without permissions, or nested deeper than a stack or a table of descriptors goes. So it first gets another
name, whereby its own is free; then it is removed as far as that goes. Links are never followed.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ironcurtain.errors import Unavailable
from ironcurtain.process.portability import make_accessible

_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def remove(path: Path) -> None:
    """
    Have nothing there any more; harmless if there is nothing.

    :raises Unavailable: its name cannot be made free.
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
        raise Unavailable(f"{path} cannot be put aside: {e.strerror}") from None


def remove_at(directory: int, name: str) -> None:
    """
    Likewise, in an open directory.

    :raises OSError: its name cannot be made free.
    """
    aside = f".{secrets.token_hex(8)}.old"
    os.rename(name, aside, src_dir_fd=directory, dst_dir_fd=directory)
    with suppress(OSError):
        if not _dropped(directory, aside):
            with _opened(directory, aside) as top:
                _empty(top)
            os.rmdir(aside, dir_fd=directory)


def _empty(top: int) -> None:
    """Directories are moved to the top before they are emptied: nothing is deep, then."""
    waiting = _swept(top, top)
    while waiting:
        name = waiting.pop()
        with suppress(OSError):
            with _opened(top, name) as directory:
                waiting += _swept(directory, top)
            os.rmdir(name, dir_fd=top)


def _swept(directory: int, top: int) -> list[str]:
    """:returns: the names at the top of what in the directory could not be removed as it is."""
    moved = []
    for name in os.listdir(directory):
        with suppress(OSError):
            if not _dropped(directory, name):
                with _opened(directory, name):  # it cannot be moved unless it may be written to
                    at_top = secrets.token_hex(8)
                    os.rename(name, at_top, src_dir_fd=directory, dst_dir_fd=top)
                moved.append(at_top)
    return moved


def _dropped(directory: int, name: str) -> bool:
    """:returns: whether it could be removed as it is: no directory, or an empty one."""
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
    """Open a directory; its owner may do everything with it then."""
    opened = make_accessible(directory, name)
    try:
        yield opened
    finally:
        os.close(opened)
