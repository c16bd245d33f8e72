"""What sets watchers off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet.defer import Deferred

from ironcurtain.watchers.model import Event


class Trigger(Protocol):
    """
    A source of events. It reports each change of what it watches once, compared by content and not by time.

    What it cannot watch is reported by an exception of :meth:`start`: an
    :class:`~ironcurtain.errors.IronCurtainError` with advice.
    """

    def start(self, fire: Callable[[Event], None]) -> None:
        """
        Begin to watch. What is there now is known, and no event.

        :param fire: called in the reactor's thread for each event. It does not block, and raises nothing.
        """

    def settle(self) -> Deferred[None] | None:
        """
        Take what is there now as known, because the watcher's own run has just ended: what it changed is no event.

        :returns: fires when it is known; ``None``: it is already.
        """

    def stop(self) -> Deferred[None] | None:
        """:returns: fires when nothing is watched any more; ``None``: nothing is already. Can be called twice."""
