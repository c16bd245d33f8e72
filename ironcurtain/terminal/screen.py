"""Which screen model there is on this machine."""

from __future__ import annotations

from ironcurtain.terminal.model import ScreenModel
from ironcurtain.terminal.ring import RingScreen

HISTORY_LINES = 1000
"""Most lines that are usually kept once they have scrolled off (our choice: a redraw takes a few milliseconds then)."""


def open_screen(columns: int, rows: int, history: int = HISTORY_LINES) -> ScreenModel:
    """
    Make the exact model where its library is installed and fits this machine, else the one that only remembers.

    :param history: most lines that are kept once they have scrolled off.
    """
    try:
        from ironcurtain.terminal.ghostty_screen import GhosttyScreen
    except (ImportError, OSError):
        return RingScreen()
    return GhosttyScreen(columns, rows, history)
