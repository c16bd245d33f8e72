"""Watchers, and a trigger that fires when the test says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ironcurtain.watchers.model import Event, Kind, Watcher

NOW = 1.7e9


def make_watcher(**fields: Any) -> Watcher:
    """:returns: a watcher of standard input."""
    known: dict[str, Any] = {"name": "tests", "trigger": Kind.STDIN, "instruction": "look"}
    return Watcher(**(known | fields))


def event(text: str = "x", digest: str = "") -> Event:
    """:returns: an event with a line."""
    return Event({"line": text}, digest)


class ToldTrigger:
    """A trigger that the test fires."""

    def __init__(self) -> None:
        self.fire: Callable[[Event], None] = lambda event: None
        self.calls: list[str] = []

    def start(self, fire: Callable[[Event], None]) -> None:
        """Begin."""
        self.fire = fire
        self.calls.append("start")

    def settle(self) -> None:
        """A run is over."""
        self.calls.append("settle")

    def stop(self) -> None:
        """End."""
        self.calls.append("stop")
