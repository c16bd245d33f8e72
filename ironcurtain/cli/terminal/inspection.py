"""The commands that only query the session."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ironcurtain.cli.terminal.commands import Simple
from ironcurtain.cli.terminal.reports import (
    LOG_LINES,
    budget_lines,
    help_lines,
    history_lines,
    log_lines,
    status_lines,
)
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.operations.api import SessionApi
from ironcurtain.text.columns import Line
from ironcurtain.view.escalations import permission_rows
from ironcurtain.view.signs import Signs

TAIL_BYTES = 32768
"""Bytes read from a log's end; enough for :data:`~ironcurtain.cli.terminal.reports.LOG_LINES` lines."""


async def inspect(
    command: Simple, api: SessionApi, number: int, paths: SessionPaths, width: int, signs: Signs, now: float
) -> Sequence[Line]:
    """
    :param number: number of the session.
    :param now: seconds since the epoch.
    :returns: the output of a command.
    :raises IronCurtainError: the session cannot be queried.
    """
    match command:
        case Simple.HISTORY:
            return history_lines(await api.history(number), width, signs)
        case Simple.STATUS:
            [info] = [info for info in await api.sessions() if info.number == number]
            return [*status_lines(info), *budget_lines(await api.history(number))]
        case Simple.BUDGET:
            return budget_lines(await api.history(number))
        case Simple.PERMISSIONS:
            kept = [each for each in await api.permissions() if each.session == number]
            return permission_rows(kept, width, now)
        case Simple.LOGS:
            return log_lines(str(paths.log), str(paths.audit), tail(paths.log))
        case _:
            return help_lines()


def tail(path: Path) -> list[str]:
    """:returns: the last lines of a file; the error if it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - TAIL_BYTES, 0))
            data = file.read(TAIL_BYTES)
    except OSError as e:
        return [f"it cannot be read: {e.strerror}"]
    return data.decode("utf-8", "replace").splitlines()[-LOG_LINES:]
