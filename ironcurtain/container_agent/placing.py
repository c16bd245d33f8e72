"""
Write files below a directory that an agent wrote to before.

Every directory on the way is opened from the one above it, without following links; what an agent left in the way of a
file or directory of ours is removed.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ironcurtain.errors import Unavailable
from ironcurtain.files.removal import remove_at

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Placer:
    """
    :param top: an existing directory, no link.
    :param uid: whose the files and new directories are, with ``gid``.
    :param writable: whether their owner may change them.
    """

    def __init__(self, top: Path, uid: int, gid: int, *, writable: bool) -> None:
        self._top, self._uid, self._gid = top, uid, gid
        self._mode = 0o600 if writable else 0o400

    def place(self, path: str, data: bytes, *, replace: bool = True) -> None:
        """
        Put a file in place, whole.

        :param path: below the top, with ``/`` between names.
        :param replace: whether a regular file that is there is replaced.
        :raises Unavailable: it cannot be written.
        """
        *above, name = path.split("/")
        if not all(part not in ("", ".", "..") for part in (*above, name)):
            raise ValueError(f"no plain path: {path}")
        try:
            with self._directory(above) as directory:
                found = _mode(directory, name)
                if found is not None and stat.S_ISREG(found) and not replace:
                    return
                if found is not None and not stat.S_ISREG(found):
                    remove_at(directory, name)
                self._write(directory, name, data)
        except OSError as e:
            raise Unavailable(f"{self._top / path} cannot be written: {e.strerror}") from None

    @contextmanager
    def _directory(self, names: list[str]) -> Iterator[int]:
        current = os.open(self._top, _DIRECTORY)
        try:
            for name in names:
                following = self._enter(current, name)
                os.close(current)
                current = following
            yield current
        finally:
            os.close(current)

    def _enter(self, directory: int, name: str) -> int:
        found = _mode(directory, name)
        if found is not None and not stat.S_ISDIR(found):
            os.unlink(name, dir_fd=directory)
            found = None
        if found is None:
            os.mkdir(name, 0o700, dir_fd=directory)
        entered = os.open(name, _DIRECTORY, dir_fd=directory)
        if found is None:
            os.fchown(entered, self._uid, self._gid)
        return entered

    def _write(self, directory: int, name: str, data: bytes) -> None:
        draft = f".{secrets.token_hex(8)}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(draft, flags, 0o600, dir_fd=directory), "wb") as file:
            file.write(data)
            os.fchown(file.fileno(), self._uid, self._gid)
            os.fchmod(file.fileno(), self._mode)
        os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)


def _mode(directory: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
