"""Where the recording of a session's terminal goes, and how much of it is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ironcurtain.home.layout import SessionPaths
from ironcurtain.session.parts import Services
from ironcurtain.terminal.recording import Recording
from ironcurtain.terminal.recording_file import RecordingFile

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
