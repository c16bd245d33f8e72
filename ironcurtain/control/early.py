"""Ask a daemon for a session before there is an event loop, whose import takes as long as the daemon's part."""

from __future__ import annotations

import socket
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ironcurtain.control import wire
from ironcurtain.errors import Unavailable

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home
    from ironcurtain.operations.api import OnEvent
    from ironcurtain.session.model import SessionInfo, SessionRequest

PIECE = 65536
"""Maximum number of bytes that are read at once."""


def asked_early(home: Home, request: SessionRequest, hold: bool) -> EarlyStart | None:
    """
    :param hold: as for :class:`EarlyStart`.
    :returns: a session of the daemon that was asked for; ``None``: no daemon runs.
    """
    try:
        return EarlyStart(str(home.daemon_socket), request, hold)
    except OSError:
        return None


class EarlyStart:
    """
    A session that was asked for. Until it has started, it ends with this process.

    :param path: path of the other process's control socket.
    :param hold: whether it ends with this process also after that, unless it is released.
    :raises OSError: nobody accepts the request.
    """

    def __init__(self, path: str, request: SessionRequest, hold: bool) -> None:
        body = msgspec.json.encode(wire.start_body(request))
        head = f"POST /v1/sessions?follow=1&hold={int(hold)} HTTP/1.1\r\nHost: ironcurtain\r\n"
        self._hold, self._socket = hold, socket.socket(socket.AF_UNIX)
        try:
            self._socket.connect(path)
            self._socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        except BaseException:
            self._socket.close()
            raise

    async def started(self, reactor: Any, on_event: OnEvent) -> SessionInfo:
        """
        Wait until the session has started. Cancelling ends it.

        :param on_event: called with its events.
        :raises RemoteError: it does not start.
        :raises Unavailable: the other process is gone.
        """
        from twisted.internet.threads import deferToThreadPool

        heard = partial(reactor.callFromThread, on_event)
        is_held = False
        try:
            info = await deferToThreadPool(reactor, reactor.getThreadPool(), self._answer, heard)
            is_held = self._hold
            return info
        finally:
            if not is_held:
                self.leave()

    def leave(self) -> None:
        """End the request, and with it a session that does not go on without this process."""
        with suppress(OSError):  # the other process is gone
            self._socket.shutdown(socket.SHUT_RDWR)  # which ends the thread's reading, if it still reads
        self._socket.close()

    def _answer(self, on_event: OnEvent) -> SessionInfo:
        from http.client import HTTPException, HTTPResponse  # slow to import, which would delay the request

        from ironcurtain.control.starting import StartReader
        from ironcurtain.session.model import SessionInfo

        response = HTTPResponse(self._socket, method="POST")
        try:
            response.begin()
            if response.status != 200:
                raise wire.read_error(response.read())
            reader = StartReader()
            while data := response.read1(PIECE):
                for heard in reader.feed(data):
                    if isinstance(heard, SessionInfo):
                        return heard
                    on_event(heard)
        except (OSError, HTTPException) as e:
            raise Unavailable(f"the session did not start: {e}") from None
        finally:
            response.close()  # the connection stays open
        raise Unavailable("the session did not start: the process that was asked for it is gone")
