"""What a session tells while it starts, for a person who waits."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import TextIO

from ironcurtain.display import one_line, shorten
from ironcurtain.session.events import Progress as ProgressEvent
from ironcurtain.session.session import Session


class Progress:
    """
    Shows it as lines; on a terminal as one line that changes, and goes in the end.

    :param stream: standard error.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._terminal = stream, stream.isatty()
        self._seen = 0
        self._stop: Callable[[], object] = lambda: None

    def follow(self, session: Session) -> None:
        """Show what this session tells from now on."""
        self._stop = session.events.watch(lambda: self._more(session))

    def done(self) -> None:
        """Show no more."""
        self._stop()
        if self._terminal and self._seen:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _more(self, session: Session) -> None:
        for stamped in session.events.after(self._seen):
            self._seen = stamped.sequence
            if isinstance(stamped.event, ProgressEvent):
                self._show(stamped.event.text)

    def _show(self, text: str) -> None:
        if self._terminal:
            self._stream.write(f"\r\x1b[K{shorten(text, shutil.get_terminal_size().columns - 1)}")
        else:
            self._stream.write(f"{one_line(text, 200)}\n")
        self._stream.flush()
