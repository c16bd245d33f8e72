"""What is on a desktop: windows and elements, and the refusals of this server."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import msgspec

from ironcurtain.errors import IronCurtainError
from ironcurtain.text.display import one_line

SCREEN = "screen"
"""The name that stands for the whole screen where an application can be named."""

TEXT_LIMIT = 2000
"""Most characters of one text from the screen."""


class DesktopError(IronCurtainError):
    """A call that cannot be carried out. The message is the tool's answer for the agent; nothing was done."""

    code = "DESKTOP"


class Unsupported(DesktopError):
    """What a call needs is not there. The message says what is missing."""


class PermissionMissing(DesktopError):
    """What a call needs is there, but not for this account. The message says where to grant it."""


def extra(name: str) -> Any:
    """
    :returns: a module of the extra ``desktop``.
    :raises Unsupported: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise Unsupported("the extra is not installed: pip install 'ironcurtain[desktop]'") from None


class Bounds(msgspec.Struct, frozen=True):
    """A rectangle on the screen, in its pixels; ``x`` and ``y`` are the upper left corner."""

    x: int
    y: int
    width: int
    height: int

    @classmethod
    def of(cls, given: Sequence[float]) -> Bounds:
        """:raises DesktopError: these are not four numbers."""
        if len(given) != 4:
            raise DesktopError("a rectangle is [x, y, width, height], in pixels of the screen")
        return cls(*map(int, given))

    def holds(self, x: int, y: int) -> bool:
        """Whether a point is inside."""
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height

    def within(self, other: Bounds) -> Bounds | None:
        """:returns: the common part, relative to ``other``; ``None`` if there is none."""
        left, top = max(self.x, other.x), max(self.y, other.y)
        right = min(self.x + self.width, other.x + other.width)
        bottom = min(self.y + self.height, other.y + other.height)
        if right <= left or bottom <= top:
            return None
        return Bounds(left - other.x, top - other.y, right - left, bottom - top)

    @property
    def list(self) -> list[int]:
        """As in arguments and results."""
        return [self.x, self.y, self.width, self.height]


class Window(msgspec.Struct, frozen=True):
    """
    A window that the window manager knows.

    :param app: name of the application: see :func:`~ironcurtain.servers.desktop.processes.app_name`.
    :param title: as its program chose it; it may say anything.
    :param content: its bounds without a shadow that its program draws in it; ``None``: it says nothing of one.
    """

    id: str
    app: str
    pid: int
    title: str
    bounds: Bounds
    focused: bool
    content: Bounds | None = None


def shown(text: str, limit: int = TEXT_LIMIT) -> str:
    """:returns: a text from the screen in one line; what could confuse its readers is escaped."""
    return one_line(text, limit)
