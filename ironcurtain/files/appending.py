"""Files of lines that only grow: each line is written at once, and an incomplete one damages no other."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path


class LineFile:
    """
    A file of lines, readable by its owner only.

    :param path: created with the first line, continued if it exists.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._torn: bool | None = None
        """Whether the last line is incomplete; ``None``: not known yet."""

    def append(self, line: bytes) -> None:
        """
        Add a line, given without its end.

        :raises OSError: it is not completely in the file.
        """
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self._path, flags, 0o600)
        try:
            whole = (b"\n" if self._is_torn(fd) else b"") + line + b"\n"
            self._torn = True  # until the line is complete
            if os.write(fd, whole) < len(whole):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
            self._torn = False
        finally:
            os.close(fd)

    def lines(self) -> Iterator[bytes]:
        """:returns: the lines so far, without their ends; the last may be incomplete. Nothing if there is no file."""
        if self._path.exists():
            with self._path.open("rb") as file:
                for line in file:
                    yield line.removesuffix(b"\n")

    def _is_torn(self, fd: int) -> bool:
        if self._torn is None:
            size = os.fstat(fd).st_size
            self._torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        return self._torn
