"""
Where on the screen the elements of an application are.

Applications tell the place of an element as it is on the screen, or, under Wayland and with GTK 4, in its window. The
display knows where the windows are. Only where both agree on a window is the place of its elements known.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ironcurtain.servers.desktop.model import Bounds, Window, shown

RIM = 32
"""Most pixels of a frame beside or below a window, and of the rim that an application draws itself around its own."""

TITLE_BAR = 100
"""Most pixels of a frame above a window."""

Shift = tuple[int, int]
"""Pixels by which what an application tells differs from the screen."""


class Frame(msgspec.Struct, frozen=True):
    """What an application tells of one of its windows: where it is, and what it is called."""

    bounds: Bounds
    name: str


def shifts(frames: Sequence[Frame], windows: Sequence[Window], on_screen: bool) -> list[Shift | None]:
    """
    :param frames: of one application.
    :param windows: of its processes, as the display knows them.
    :param on_screen: whether applications can know where on the screen their windows are.
    :returns: for each frame, how far to move what is in it; ``None``: nobody tells where it is.
    """
    found = [_shift(frame, windows, on_screen) for frame in frames]
    if on_screen and (0, 0) in found:  # it tells places on the screen: those of its menus, too, which are no windows
        return [each if each is not None else (0, 0) for each in found]
    return found


def _shift(frame: Frame, windows: Sequence[Window], on_screen: bool) -> Shift | None:
    told = frame.bounds
    if on_screen and any(_frames(told, each.bounds) or told == each.content for each in windows):
        return 0, 0
    fitting = [(each, corner) for each in windows if (corner := _corner(told, each)) is not None]
    if len(fitting) > 1:
        fitting = [each for each in fitting if shown(each[0].title, 300) == shown(frame.name, 300)]
    if len(fitting) != 1:
        return None
    _, (x, y) = fitting[0]
    return x - told.x, y - told.y


def _frames(told: Bounds, window: Bounds) -> bool:
    """Whether one rectangle is another, maybe with the frame of a window manager around it."""
    left, top = window.x - told.x, window.y - told.y
    right, bottom = told.width - window.width - left, told.height - window.height - top
    return all(0 <= each <= RIM for each in (left, right, bottom)) and 0 <= top <= TITLE_BAR


def _corner(told: Bounds, window: Window) -> tuple[int, int] | None:
    """:returns: where the corner is of what is told, if its size is that of the window, maybe without an even rim."""
    known = window.content or window.bounds
    wider, higher = known.width - told.width, known.height - told.height
    even = wider == higher and 0 <= wider <= 2 * RIM and wider % 2 == 0
    return (known.x + wider // 2, known.y + wider // 2) if even else None
