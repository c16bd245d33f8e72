"""Receive the browser that an authorization server sends back, on a loopback address (RFC 8252, section 7.3)."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

PATH = b"callback"
"""The path of the redirect address."""


class RedirectListener(Resource):
    """
    Listens on 127.0.0.1, at a port that the system selects, for one redirect.

    :ivar received: fires with the address to which the browser was sent, or with one that a person entered.
    """

    isLeaf = True

    def __init__(self, reactor: Any) -> None:
        super().__init__()
        self.received: Deferred[str] = Deferred()
        self._port: Any = reactor.listenTCP(0, Site(self), interface="127.0.0.1")

    @property
    def uri(self) -> str:
        """The redirect address."""
        return f"http://127.0.0.1:{self._port.getHost().port}/{PATH.decode()}"

    def render_GET(self, request: Request) -> bytes:
        """Take the redirect."""
        request.setHeader(b"content-type", b"text/plain; charset=utf-8")
        if request.path != b"/" + PATH or not request.args:
            request.setResponseCode(404)
            return b"Not found.\n"
        self.enter(f"{self.uri}?{request.uri.partition(b'?')[2].decode('ascii', 'replace')}")
        return b"The terminal shows the result of the login. You can close this page.\n"

    def enter(self, address: str) -> None:
        """Take an address; only the first one counts."""
        if not self.received.called:
            self.received.callback(address)

    async def stop(self) -> None:
        """Stop listening."""
        await self._port.stopListening()
