"""``ironcurtain shell --usage``."""

from __future__ import annotations

from collections.abc import Iterator

from ironcurtain.cli.output import print_table
from ironcurtain.home.layout import Home
from ironcurtain.session.elsewhere import described
from ironcurtain.session.history import read_turns
from ironcurtain.session.model import SessionInfo

RECENT = 20
"""Most sessions that are listed."""


def print_usage(home: Home) -> None:
    """Print what the newest sessions of shells used, the newest first."""
    found = sorted(_shells(home), key=lambda info: info.number, reverse=True)[:RECENT]
    print_table(
        ("SESSION", "STARTED", "INSTRUCTIONS", "TOKENS IN", "TOKENS OUT", "COST"), [_row(home, i) for i in found]
    )


def _shells(home: Home) -> Iterator[SessionInfo]:
    return (info for info in described(home) if info.kind == "shell")


def _row(home: Home, info: SessionInfo) -> tuple[str, ...]:
    turns = read_turns(home.session(info.id).history)
    costs = [turn.usage.cost for turn in turns if turn.usage.cost is not None]
    known = all(turn.usage.token_tracking_available for turn in turns)
    return (
        str(info.number),
        info.started_at[:19],
        str(len(turns)),
        _tokens([turn.usage.input_tokens for turn in turns], known),
        _tokens([turn.usage.output_tokens for turn in turns], known),
        f"${sum(costs):.4f}" if costs else "-",
    )


def _tokens(used: list[int], known: bool) -> str:
    """:param known: whether the model has always said what it used."""
    total = sum(used)
    return str(total) if known else f"over {total}" if total else "unknown"
