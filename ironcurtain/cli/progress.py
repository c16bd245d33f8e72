"""The progress of a session's start, shown to the person who waits."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TextIO

from ironcurtain.errors import Unavailable
from ironcurtain.operations.api import OnEvent
from ironcurtain.session.events import Notice, Progress, Stamped
from ironcurtain.session.model import SessionInfo
from ironcurtain.session.server_events import ServersStarting
from ironcurtain.text.display import one_line, shorten
from ironcurtain.view.sessions import starting_words

if TYPE_CHECKING:
    from ironcurtain.session.session import Session

CLEAR = "\r\x1b[K"
"""Clears a terminal's line."""


class ProgressDisplay:
    """
    Shows progress as lines; at a terminal as one line that changes and finally disappears.

    :param stream: standard error.
    :param notices: whether to print also messages for the user as lines that stay, if nothing else shows them.
    """

    def __init__(self, stream: TextIO, notices: bool = False) -> None:
        self._notices = notices
        self._stream, self._terminal = stream, stream.isatty()
        self._seen = 0
        self._stop: Callable[[], object] = lambda: None

    def follow(self, session: Session) -> None:
        """Show the progress of this session from now on."""
        self._stop = session.events.watch(lambda: self._more(session))

    def heard(self, stamped: Stamped) -> None:
        """Show an event if it reports progress."""
        self._seen = stamped.sequence
        if isinstance(stamped.event, Progress):
            self._show(stamped.event.text)
        elif isinstance(stamped.event, ServersStarting):
            self._show(starting_words(stamped.event.servers))
        elif isinstance(stamped.event, Notice) and self._notices:
            self._stream.write(f"{CLEAR if self._terminal else ''}{one_line(stamped.event.text)}\n")
            self._stream.flush()

    @property
    def heard_any(self) -> bool:
        """Whether there was any event, so that the session has begun."""
        return self._seen > 0

    def done(self) -> None:
        """Stop, and clear the line."""
        self._stop()
        if self._terminal and self._seen:
            self._stream.write(CLEAR)
            self._stream.flush()

    def _more(self, session: Session) -> None:
        for stamped in session.events.after(self._seen):
            self.heard(stamped)

    def _show(self, text: str) -> None:
        """:param text: empty: what was shown is over."""
        if self._terminal:
            self._stream.write(f"{CLEAR}{shorten(text, shutil.get_terminal_size().columns - 1)}")
        elif text:
            self._stream.write(f"{one_line(text, 200)}\n")
        self._stream.flush()


async def started_by(start: Callable[[OnEvent], Awaitable[SessionInfo]], notices: bool = False) -> SessionInfo | None:
    """
    Start a session in a daemon, and show its progress.

    :param start: starts it.
    :param notices: as for :class:`ProgressDisplay`.
    :returns: the session; ``None`` if the socket belongs to a daemon that was killed.
    """
    progress = ProgressDisplay(sys.stderr, notices)
    try:
        return await start(progress.heard)
    except Unavailable:
        if progress.heard_any:
            raise
        return None
    finally:
        progress.done()
