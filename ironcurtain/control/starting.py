"""The answer to a request for a session, as both clients read it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ironcurtain.control.wire import read_error
from ironcurtain.http.sse import EventParser
from ironcurtain.session.events import Stamped
from ironcurtain.session.model import SessionInfo


class StartReader:
    """Reads it in any slicing."""

    def __init__(self) -> None:
        self._parser = EventParser()

    def feed(self, data: bytes) -> Iterator[Stamped | SessionInfo]:
        """
        :returns: the session's events, and in the end the session, which has started.
        :raises RemoteError: it does not start.
        """
        for event in self._parser.feed(data):
            if event.name == "failed":
                raise read_error(event.data.encode())
            if event.name == "started":
                yield msgspec.json.decode(event.data, type=SessionInfo)
            else:
                yield msgspec.json.decode(event.data, type=Stamped)
