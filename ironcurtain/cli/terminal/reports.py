"""The commands that only query the session, and their output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from ironcurtain.cli.terminal.printer import Printer
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.operations.api import SessionApi
from ironcurtain.session.model import Turn
from ironcurtain.text.columns import Line, Span, cut
from ironcurtain.text.display import shorten
from ironcurtain.view.commands import CONVERSATION, Command, help_lines
from ironcurtain.view.escalations import WIDE, permission_rows
from ironcurtain.view.events import TEXT_LIMIT
from ironcurtain.view.look import Signs
from ironcurtain.view.sessions import fact_lines, session_lines, used
from ironcurtain.view.speech import shown

LOG_LINES = 10
"""Number of the log's last lines that ``/logs`` shows."""

TAIL_BYTES = 32768
"""Bytes read from a log's end; enough for :data:`LOG_LINES` lines."""


async def inspect(
    command: Command, api: SessionApi, number: int, paths: SessionPaths, printer: Printer
) -> Sequence[Line]:
    """
    :param number: number of the session.
    :param printer: for its surface and its clock.
    :returns: the output of a command.
    :raises IronCurtainError: the session cannot be queried.
    """
    width, now = printer.surface.width(), printer.now()
    match command.word:
        case "history":
            return history_lines(await api.history(number), width, printer.surface.signs)
        case "status":
            [info] = [info for info in await api.sessions() if info.number == number]
            known = replace(info, model=info.model or "the agent's default")
            agent = fact_lines((("agent", info.kind),))
            return [*agent, *session_lines(known, await api.history(number), WIDE, now)]
        case "budget":
            turns = await api.history(number)
            tokens, cost = used(turns)
            return fact_lines((("messages", str(len(turns))), ("tokens", tokens), ("cost", cost)))
        case "permissions":
            return permission_rows([each for each in await api.permissions() if each.session == number], width, now)
        case "logs":
            logs = fact_lines((("log", str(paths.log)), ("audit log", str(paths.audit))))
            return [*logs, *((Span(f"  {shown(line)}", "dim"),) for line in _tail(paths.log))]
        case _:
            others = "Other lines are sent to the agent. Ctrl-C cancels the message, twice it leaves."
            return [*help_lines(CONVERSATION, width), (Span(others, "dim"),)]


def _tail(path: Path) -> list[str]:
    """:returns: the last lines of a file; the error if it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - TAIL_BYTES, 0))
            data = file.read(TAIL_BYTES)
    except OSError as e:
        return [f"it cannot be read: {e.strerror}"]
    return data.decode("utf-8", "replace").splitlines()[-LOG_LINES:]


def history_lines(turns: Sequence[Turn], width: int, signs: Signs) -> list[Line]:
    """:returns: the turns, each message and each answer cut to one line."""
    if not turns:
        return [(Span("no messages yet", "dim"),)]
    room = max(width - 6, 10)
    lines: list[Line] = []
    for turn in turns:
        answer = turn.answer
        if turn.error:
            answer = f"incomplete: {turn.answer}" if turn.answer else f"no answer: {turn.error}"
        lines.append((Span(f"{turn.number:>4}  ", "dim"), Span(_short(turn.message, room, signs), "bold")))
        lines.append((Span("      "), Span(_short(answer, room, signs), "bad" if turn.error else "")))
    return lines


def _short(text: str, room: int, signs: Signs) -> str:
    return cut(shorten(text[:TEXT_LIMIT], TEXT_LIMIT), room, signs.rest)
