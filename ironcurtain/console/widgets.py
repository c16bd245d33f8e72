"""The only widget of the console: it draws frames, and passes keys and clicks on."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import urwid

from ironcurtain.console.layout import Frame
from ironcurtain.text.columns import Line

PALETTE = (
    ("dim", "dark gray", "default", "default", "#888", "default"),
    ("bold", "default,bold", "default", "bold"),
    ("good", "dark green", "default", "default"),
    ("bad", "light red", "default", "bold"),
    ("warn", "brown", "default", "bold"),
    ("key", "dark cyan,bold", "default", "bold"),
    ("title", "white,bold", "dark blue", "standout"),
    ("chosen", "black", "light gray", "standout"),
    ("old", "dark red", "default", "default"),
    ("new", "dark green", "default", "default"),
)
"""urwid's palette for :data:`ironcurtain.console.text.Style`; the fourth member is for monochrome terminals."""


class FrameWidget(urwid.Widget):
    """
    :param make: returns the frame for a size.
    :param pressed: called with each key, as urwid names it.
    :param clicked: called with button, column and row.
    """

    no_cache = ("render",)

    def __init__(
        self,
        make: Callable[[int, int], Frame],
        pressed: Callable[[str], None],
        clicked: Callable[[int, int, int], None],
    ) -> None:
        super().__init__()
        self._make, self._pressed, self._clicked = make, pressed, clicked

    def sizing(self) -> frozenset[urwid.Sizing]:
        """:returns: that it fills a given size."""
        return frozenset((urwid.BOX,))

    def selectable(self) -> bool:
        """:returns: ``True``: it takes keys."""
        return True

    def render(  # type: ignore[override]  # a box has two sizes
        self, size: tuple[int, int], focus: bool = False
    ) -> urwid.Canvas:
        """:returns: the frame, with every line padded to the width of the screen."""
        columns, rows = size
        frame = self._make(columns, rows)
        drawn = [_encoded(line, columns) for line in frame.lines]
        texts, looks = [text for text, _ in drawn], [look for _, look in drawn]
        return urwid.TextCanvas(texts, looks, cursor=frame.cursor, maxcol=columns)

    def keypress(self, size: tuple[int, int], key: str) -> str | None:  # type: ignore[override]  # as above
        """:returns: the key if urwid shall handle it, else ``None``."""
        if key == "ctrl l":
            return key
        self._pressed(key)
        return None

    def mouse_event(  # type: ignore[override]  # as above
        self, size: tuple[int, int], event: str, button: int, col: int, row: int, focus: bool
    ) -> bool:
        """:returns: ``True``: the event is handled."""
        if event == "mouse press":
            self._clicked(button, col, row)
        return True


def _encoded(line: Line, columns: int) -> tuple[bytes, list[tuple[Hashable, int]]]:
    """:returns: the line as urwid takes it: its bytes, and runs of (style, number of bytes)."""
    looks: list[tuple[Hashable, int]] = []
    text, used = b"", 0
    for span in line:
        shown, width = span.text, urwid.calc_width(span.text, 0, len(span.text))
        while used + width > columns:  # urwid counts some characters as wider than we do
            shown = shown[:-1]
            width = urwid.calc_width(shown, 0, len(shown))
        data = shown.encode("utf-8", "replace")
        text, used = text + data, used + width
        looks.append((span.style or None, len(data)))
    return text + b" " * (columns - used), looks
