"""The file of a recording."""

from __future__ import annotations

import os
from pathlib import Path


class RecordingFile:
    """
    A file that is made for this, with mode 0600.

    :raises FileExistsError: it is there already.
    :raises OSError: it cannot be made.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0)

    def write(self, data: bytes) -> None:
        """:raises OSError: it cannot be written, or only in part."""
        if self._file.write(data) != len(data):
            raise OSError("the disk is full")

    def close(self) -> None:
        """No more will come."""
        self._file.close()
