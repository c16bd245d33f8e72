"""A server on the loopback address that gets heads by HTTPS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet import reactor as the_reactor
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.web.resource import Resource
from twisted.web.server import Site

from tests.model_stub.certificates import Authority

reactor: Any = the_reactor


class HeadServer(Resource):
    """
    :param directory: gets the certificate of its authority, ``ca.pem``.
    :ivar status: of its answers.
    :ivar requests: method, path and Authorization header of each request.
    :ivar bodies: of all requests that were answered with status 200.
    """

    isLeaf = True

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self.status, self.requests, self.bodies = 200, list[tuple[str, str, str]](), list[bytes]()
        authority = Authority.make()
        self.ca_file = directory / "ca.pem"
        self.ca_file.write_bytes(authority.pem)
        site = Site(self)
        site.displayTracebacks = False
        tls = TLSMemoryBIOFactory(authority.server("127.0.0.1"), False, site, reactor)
        self._port = reactor.listenTCP(0, tls, interface="127.0.0.1")
        self.url = f"https://127.0.0.1:{self._port.getHost().port}/heads"

    def render(self, request: Any) -> bytes:
        """Keep a request."""
        given = request.getHeader("authorization") or ""
        self.requests.append((request.method.decode(), request.uri.decode(), given))
        if 200 <= self.status < 300:
            self.bodies.append(request.content.read())
        request.setResponseCode(self.status)
        if 300 <= self.status < 400:
            request.setHeader("location", "/elsewhere")
        return b""

    def stop(self) -> Any:
        """:returns: fires when it no longer listens."""
        return self._port.stopListening()
