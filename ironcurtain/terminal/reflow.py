"""How many rows a terminal makes of what is on it when it becomes narrower."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def reflows(environ: Mapping[str, str]) -> bool:
    """
    :param environ: of whoever sits at the terminal.
    :returns: whether the terminal is known to break rows anew when its width changes, with the cursor where its
        character is: tmux does. Others cut rows off, put the cursor elsewhere, or do not say which they are.
    """
    return bool(environ.get("TMUX")) and not environ.get("STY")  # screen, in or around tmux, cuts them off


def rows_of(widths: Iterable[int], columns: int) -> int:
    """
    :param widths: columns that the characters of one row take. One of two does not stand across a border.
    :returns: the rows that it takes in a terminal of so many columns.
    """
    rows, used = 1, 0
    for width in widths:
        if used + width > columns:
            rows, used = rows + 1, 0
        used += width
    return rows
