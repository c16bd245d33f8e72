"""Where the recording of a session's terminal goes, and how much of it is kept."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ironcurtain.home.layout import SessionPaths
from ironcurtain.session.parts import Services
from ironcurtain.terminal.recording import Recording


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


MB = 1_000_000


def open_recording(
    paths: SessionPaths,
    services: Services,
    size: tuple[int, int],
    title: str,
    echoes: Callable[[], bool] = lambda: False,
) -> Recording | None:
    """
    Begin the recording of a session's terminal. One that is there, from before the session was resumed, is kept under
    another name: ``recording.1.cast`` is the first, ``recording.cast`` always the last.

    :param size: columns and rows of the terminal.
    :param title: for players.
    :param echoes: whether the terminal shows now what is typed.
    :returns: ``None`` if none is wanted.
    :raises OSError: the file cannot be made.
    """
    chosen = services.settings.terminal
    if not chosen.record:
        return None
    if paths.recording.exists():
        paths.recording.rename(_next_name(paths.recording))
    return Recording(
        RecordingFile(paths.recording),
        services.clock.seconds(),
        *size,
        timestamp=services.now(),
        title=title,
        echoes=echoes,
        limit=int(chosen.recording_mb * MB),
    )


def _next_name(path: Path) -> Path:
    number = 1
    while (free := path.with_suffix(f".{number}{path.suffix}")).exists():
        number += 1
    return free
