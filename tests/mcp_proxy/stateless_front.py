"""MCP over HTTP as revision 2026-07-28 has it, in front of a UNIX socket: one connection for each request."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from tests.mcp_proxy.support import the_reactor

NAMED = ("tools/call", "prompts/get")
STATUSES = {-32601: 404, -32602: 400, -32600: 400, -32022: 400, -32700: 400}
"""The HTTP status of an error, by its code ("Response status codes" of the revision)."""


class StatelessFront(Resource):
    """:param prefix: of the names of tools and prompts; HTTP clients do not see it."""

    isLeaf = True

    def __init__(self, socket: str, prefix: str) -> None:
        super().__init__()
        self.socket, self.prefix = socket, prefix
        self.port: Any = the_reactor.listenTCP(0, Site(self), interface="127.0.0.1")
        self.url = f"http://localhost:{self.port.getHost().port}/mcp"

    def render(self, request: Request) -> bytes | int:
        assert request.content is not None
        if request.method != b"POST":
            request.setResponseCode(405)
            return b""
        message = json.loads(request.content.read())
        if "id" not in message:
            request.setResponseCode(202)
            return b""
        params = message.get("params", {})
        named = params.get("ref", {}) if message["method"] == "completion/complete" else params
        if message["method"] in (*NAMED, "completion/complete") and "name" in named:
            named["name"] = self.prefix + named["name"]
        relay = _Relay(self, request, message)
        Deferred.fromCoroutine(relay.run()).addErrback(lambda _: request.finish())
        return NOT_DONE_YET


class _Relay(Protocol):
    def __init__(self, front: StatelessFront, request: Request, message: dict[str, Any]) -> None:
        self._front, self._request, self._message, self._rest = front, request, message, b""
        self._streaming = self._over = False
        request.notifyFinish().addErrback(self._left)

    async def run(self) -> None:
        await connectProtocol(UNIXClientEndpoint(the_reactor, self._front.socket), self)
        assert self.transport is not None
        self.transport.write(json.dumps(self._message).encode() + b"\n")

    def dataReceived(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not self._over:
                self._take(json.loads(line))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if not self._over:
            self._over = True
            self._request.finish()

    def _take(self, message: dict[str, Any]) -> None:
        last = "method" not in message
        result = message.get("result", {})
        for each in [*result.get("tools", ()), *result.get("prompts", ())]:
            each["name"] = each["name"].removeprefix(self._front.prefix)
        if not self._streaming:
            self._streaming = not last
            kind = "application/json" if last else "text/event-stream"
            self._request.setHeader("content-type", kind)
            self._request.setResponseCode(STATUSES.get(message.get("error", {}).get("code"), 200))
        text = json.dumps(message).encode()
        self._request.write(b"data: " + text + b"\n\n" if self._streaming else text)
        if last:
            self._over = True
            self._request.finish()
            self._close()

    def _left(self, reason: Failure) -> None:
        self._over = True
        self._close()

    def _close(self) -> None:
        if self.transport is not None:
            self.transport.loseConnection()
