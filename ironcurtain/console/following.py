"""The activity of the session that is chosen in a console."""

from __future__ import annotations

from collections.abc import Callable

from ironcurtain.operations.home_source import ConsoleSource
from ironcurtain.session.events import Stamped
from ironcurtain.view.chronicle import Chronicle


class Following:
    """
    The activity of the session that is chosen.

    :param changed: called when there is more of it.
    :ivar activity: ``None``: no session is chosen.
    """

    def __init__(self, source: ConsoleSource, changed: Callable[[], None]) -> None:
        self._source, self._changed = source, changed
        self._session = 0
        self._unfollow: Callable[[], None] = lambda: None
        self.activity: Chronicle | None = None

    def follow(self, session: int) -> None:
        """:param session: its number; 0: none."""
        if session == self._session:
            return
        self._unfollow()
        self._session, self._unfollow = session, lambda: None
        activity = self.activity = Chronicle() if session else None

        def heard(stamped: Stamped) -> None:
            if activity is not None and activity is self.activity:
                activity.add(stamped)
                self._changed()

        if session:
            self._unfollow = self._source.activity(session, heard)
