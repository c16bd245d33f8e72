"""
Hold the settings of a worktree or submodule while an agent can write next to them.

git changes settings by putting a new file in their place, on which no read-only mount is left. A lock of git's own
keeps it from doing that. In a submodule's repository git would also obey a file ``commondir``, so one is put there, to
be mounted read-only like the settings themselves.

What a crash leaves is taken over, and then removed, by the next session in the same place.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from contextlib import suppress

from ironcurtain.errors import Unavailable
from ironcurtain.sandbox.repository_files import content_at, make_file, opened

NOTE = (
    b"An agent of IronCurtain works here, and git's settings cannot be changed until its session has ended.\n"
    b"If none runs, remove this file.\n"
)

WORKTREE = {"config.worktree.lock": NOTE}
"""The files that hold the settings of a worktree, in its own directory, by name."""

SUBMODULE = {"config.lock": NOTE, **WORKTREE, "commondir": b".\n"}
"""
Those of a submodule, whose repository is its own common directory then. Its work tree is where its ``.git`` is, since
git ignores ``core.worktree`` there (git-config(1)).
"""


def are_held(directory: int, placed: Mapping[str, bytes]) -> bool:
    """
    :param directory: an open directory.
    :returns: whether all files are in place.
    """
    try:
        return all(content_at(directory, name) == content for name, content in placed.items())
    except (OSError, ValueError):
        return False


class HeldSettings:
    """
    The files in one directory, shared by all that hold them.

    :param directory: real path of a directory of git.
    :param placed: one of the tables above.
    :raises Unavailable: something else has such a name, as while git changes settings.
    :raises OSError: they cannot be made.
    """

    def __init__(self, directory: str, placed: Mapping[str, bytes]) -> None:
        self._directory, self._placed = directory, placed
        first = next(iter(placed))
        with opened(directory) as top:
            _place(top, first, placed[first], directory)
            self._lock = os.open(first, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(self._lock)
                raise Unavailable(f"another session ends, and removes {directory}/{first}") from None
            except OSError:  # the file system has no such locks, so that nobody else can hold it
                os.close(self._lock)
                os.unlink(first, dir_fd=top)
                raise
            try:
                if not os.fstat(self._lock).st_nlink:
                    raise Unavailable(f"another session ended, and removed {directory}/{first}")
                for name, content in placed.items():
                    _place(top, name, content, directory)
            except BaseException:
                self.release()
                raise

    def release(self) -> None:
        """Remove the files, unless others hold them, or the directory is gone."""
        try:
            with suppress(BlockingIOError, FileNotFoundError), opened(self._directory) as top:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_replaced(top):
                    return
                for name in reversed([*self._placed]):  # the locked one last
                    if are_held(top, {name: self._placed[name]}):
                        os.unlink(name, dir_fd=top)
        finally:
            os.close(self._lock)

    def _is_replaced(self, top: int) -> bool:
        """:returns: whether somebody removed the locked file, and another session made it anew."""
        try:
            now = os.stat(next(iter(self._placed)), dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return not os.path.samestat(now, os.fstat(self._lock))


def _place(top: int, name: str, content: bytes, directory: str) -> None:
    try:
        make_file(top, name, content)
    except FileExistsError:
        if not are_held(top, {name: content}):
            raise Unavailable(f"{directory}/{name} exists, as while git changes settings") from None
