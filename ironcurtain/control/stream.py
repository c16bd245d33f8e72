"""A session's events as Server-Sent Events, as fast as the reader reads."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from twisted.internet.interfaces import IPushProducer
from twisted.web.server import Request
from zope.interface import implementer

from ironcurtain.operations import Principal
from ironcurtain.operations.api import Follower
from ironcurtain.operations.operations import Operations
from ironcurtain.session.events import Stamped

_encoder = msgspec.json.Encoder()


@implementer(IPushProducer)
class EventStream:
    """
    One reader of a session's events.

    While the connection is full, nothing is read from the session's log. Lost events are reported as missed when the
    reader continues.

    :param name: number or id of the session.
    :param after: number of the last event that the reader has.
    """

    def __init__(self, operations: Operations, who: Principal, name: str, after: int) -> None:
        self._watch = lambda: operations.watch(who, name, self._more)
        self._follower = Follower(operations, who, name, after, self._write)
        self._unwatch: Callable[[], None] = lambda: None
        self._request: Request | None = None
        self._paused = False

    def begin(self, request: Request) -> None:
        """Write the response's head and the existing events."""
        self._request = request
        request.setHeader("content-type", "text/event-stream")
        request.setHeader("cache-control", "no-store")
        request.write(b": events\n\n")
        request.registerProducer(self, True)
        request.notifyFinish().addBoth(lambda _: self.stopProducing())
        self._unwatch = self._watch()
        self._more()

    def end(self, name: str, body: bytes, stay: bool = False) -> None:
        """
        Send a final event that is not the session's, and end the response.

        :param stay: leave the connection open until the client goes.
        """
        request, self._request = self._request, None
        if request is not None:
            self._unwatch()
            request.write(b"event: %b\ndata: %b\n\n" % (name.encode(), body))
            request.unregisterProducer()
            if not stay:
                request.finish()

    def pauseProducing(self) -> None:
        """The reader is slow."""
        self._paused = True

    def resumeProducing(self) -> None:
        """The reader has caught up."""
        self._paused = False
        self._more()

    def stopProducing(self) -> None:
        """The reader is gone."""
        self._unwatch()
        self._request = None

    def _more(self) -> None:
        if self._request is not None and not self._paused:
            self._follower.more()

    def _write(self, stamped: Stamped) -> None:
        if self._request is not None:
            self._request.write(b"id: %d\ndata: %b\n\n" % (stamped.sequence, _encoder.encode(stamped)))
