"""The screen of this desktop: the one of X11, or that of sway."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Protocol

from ironcurtain.servers.desktop.keys import Chord
from ironcurtain.servers.desktop.model import Bounds, Unsupported, Window
from ironcurtain.servers.desktop.sway import Sway
from ironcurtain.servers.desktop.x11 import connected


class Screen(Protocol):
    """What both can do; see :class:`~ironcurtain.servers.desktop.x11.X11` for each."""

    @property
    def size(self) -> Bounds: ...
    @property
    def is_known_to_applications(self) -> bool: ...
    def windows(self, app_of: Callable[[int], str]) -> list[Window]: ...
    def covering(self, window: Window, windows: Sequence[Window]) -> list[Bounds]: ...
    def owner_at(self, x: int, y: int) -> tuple[int, str]: ...
    def focused_process(self) -> int: ...
    def is_taken(self, pid: int) -> bool: ...
    def alone(self) -> AbstractContextManager[None]: ...
    def pointer(self, x: int, y: int) -> None: ...
    def button(self, number: int, down: bool) -> None: ...
    def chord(self, chord: Chord) -> None: ...
    def missing(self, text: str) -> str: ...
    def type(self, text: str) -> None: ...
    def picture(self) -> bytes: ...
    def control(self, window: Window, action: str, bounds: Bounds | None) -> None: ...


@contextmanager
def screen(environ: Mapping[str, str]) -> Iterator[Screen]:
    """:raises Unsupported: there is none, or none that is supported."""
    if environ.get("SWAYSOCK"):
        with closing(Sway()) as sway:
            yield sway
    elif environ.get("WAYLAND_DISPLAY"):
        raise Unsupported(
            "of the compositors of Wayland, only sway lets others see and operate its windows; tree, press,"
            " set_value and select work"
        )
    elif environ.get("DISPLAY"):
        with connected(environ["DISPLAY"]) as found:
            yield found
    else:
        raise Unsupported("there is no desktop: neither DISPLAY nor WAYLAND_DISPLAY is set")
