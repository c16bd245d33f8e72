"""MCP servers in words."""

from __future__ import annotations

from collections.abc import Mapping

from ironcurtain.text.display import elapsed, one_line, time_of_day
from ironcurtain.text.quantities import noun
from ironcurtain.view.escalations import NAME_LIMIT


def starting_words(servers: Mapping[str, float], now: float | None = None) -> str:
    """
    :param servers: since when MCP servers start.
    :param now: seconds since the epoch; ``None`` for a line that is not drawn again.
    :returns: which of them are still starting, and how long they have been, or since when, escaped; empty for none.
    """
    if not servers:
        return ""
    names = ", ".join(one_line(name, NAME_LIMIT) for name in servers)
    what = f"MCP {noun(len(servers), 'server')} {names} {noun(len(servers), 'is', 'are')} still starting"
    first = min(servers.values())
    return f"{what}, {f'since {time_of_day(first)}' if now is None else elapsed(now - first)}"
