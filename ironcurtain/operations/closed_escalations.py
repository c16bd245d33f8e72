"""The closed escalations of a process, fetched once."""

from __future__ import annotations

from collections.abc import Sequence

from ironcurtain.operations.model import EscalationView

REMEMBERED = 1000
"""Number of closed escalations kept per process (a session keeps as many)."""


class ClosedEscalations:
    """
    The closed escalations of one process, which never change, as far as they were fetched.

    :ivar last: the highest ``closing`` number among them.
    """

    def __init__(self) -> None:
        self._views: dict[int, EscalationView] = {}
        self.last = 0

    def joined(self, views: Sequence[EscalationView]) -> list[EscalationView]:
        """
        :param views: the pending escalations, and those closed after :attr:`last`.
        :returns: the pending and all closed escalations.
        """
        for view in sorted(views, key=lambda view: view.closing):
            if view.outcome:
                self._views[view.number], self.last = view, max(self.last, view.closing)
        for number in list(self._views)[:-REMEMBERED]:
            del self._views[number]
        return [*(view for view in views if not view.outcome), *self._views.values()]
