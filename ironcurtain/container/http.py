"""HTTP with the Engine over its UNIX socket: calls within a time limit, uploads, and connections handed over."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, BinaryIO
from urllib.parse import urlencode

import msgspec
from twisted.internet.defer import CancelledError, Deferred, TimeoutError
from twisted.internet.endpoints import UNIXClientEndpoint
from twisted.internet.error import ConnectError, ConnectingCancelledError, ConnectionClosed
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.task import Cooperator
from twisted.logger import Logger
from twisted.web.client import (
    URI,
    Agent,
    FileBodyProducer,
    RequestGenerationFailed,
    RequestTransmissionFailed,
    ResponseFailed,
)
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory, IResponse
from zope.interface import implementer

from ironcurtain.container.errors import EngineError, EngineUnavailable
from ironcurtain.container.streams import Receiver, Stream
from ironcurtain.container.wire import error_message, hijack_request
from ironcurtain.http.connections import RequestConnectionPool
from ironcurtain.http.streaming import Watch, deliver
from ironcurtain.services.stream import connect

OLDEST, NEWEST = (1, 41), (1, 47)
"""Versions of the API: what is needed (Docker 20.10: private cgroup namespaces), and the newest that was looked at."""

CONNECT_SECONDS = 5.0
"""How long the Engine may take to accept a connection (it is on this machine)."""

CALL_SECONDS = 60.0
"""How long it may be silent in the middle of a call (creating a container on a busy disk takes seconds)."""

FIRST_SECONDS = 10.0
"""How long it may take for its first answer, which costs it nothing; people wait for it."""

NOTICE_SECONDS = 3.0
"""After how long a person is told that it is waited for."""

Query = Mapping[str, str | bytes]
"""The parameters of a call; those that are no text are bytes."""

_NETWORK = (
    ConnectError,
    ConnectingCancelledError,
    ConnectionClosed,
    RequestGenerationFailed,
    RequestTransmissionFailed,
    ResponseFailed,
)


@implementer(IAgentEndpointFactory)
class _Socket:
    def __init__(self, reactor: Any, path: str) -> None:
        self._reactor, self._path = reactor, path

    def endpointForURI(self, uri: URI) -> IStreamClientEndpoint:
        return UNIXClientEndpoint(self._reactor, self._path, timeout=CONNECT_SECONDS)


class EngineHttp:
    """
    One Engine.

    Every method raises :class:`EngineUnavailable` if it does not answer, and :class:`EngineError` for what it refuses.

    :param socket: path of its socket.
    """

    log = Logger()

    def __init__(self, reactor: Any, socket: str) -> None:
        self._reactor, self._socket = reactor, socket
        self._version = ""
        self.address = f"unix://{socket}"

    async def call(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        *,
        patience: float | None = CALL_SECONDS,
    ) -> bytes:
        """
        Make one call.

        :param patience: seconds of silence after which it is given up; ``None``: never.
        :returns: the body of the answer.
        """
        content = bytearray()
        upload = None if body is None else BytesIO(msgspec.json.encode(body))
        target = await self._target(path, query)
        response = await self._exchange(method, target, upload, "application/json", content.extend, patience)
        if response.code >= 400:
            raise EngineError(response.code, error_message(bytes(content)))
        return bytes(content)

    async def upload(
        self, path: str, query: Query, file: BinaryIO, take: Callable[[bytes], None], patience: float
    ) -> None:
        """
        Send a tar archive.

        :param file: is closed in the end.
        :param take: gets the answer, piece by piece as it comes.
        """
        refused = bytearray()

        def taken(data: bytes) -> None:
            refused.extend(data[: 4096 - len(refused)])
            take(data)

        target = await self._target(path, query)
        response = await self._exchange("POST", target, file, "application/x-tar", taken, patience)
        if response.code >= 400:
            raise EngineError(response.code, error_message(bytes(refused)))

    async def hijack(self, path: str, query: Query, body: Mapping[str, Any], receive: Receiver) -> Stream:
        """:returns: a connection that is open; whoever gets it has to :meth:`Stream.abort` it."""
        request = hijack_request(await self._target(path, query), msgspec.json.encode(body))
        stream = Stream(request, receive, self.address)
        patience = CONNECT_SECONDS
        try:
            await Deferred.fromCoroutine(connect(self._socket, stream)).addTimeout(patience, self._reactor)
            patience = CALL_SECONDS
            await stream.opened.addTimeout(patience, self._reactor)
        except TimeoutError:
            raise self._silent(patience) from None
        except OSError as e:
            raise EngineUnavailable(self.address, e.strerror or str(e)) from None
        return stream

    async def negotiate(self) -> None:
        """
        Make sure that the Engine answers, and agree on a version.

        :raises EngineUnavailable: it is too old, besides.
        """
        notice = self._reactor.callLater(NOTICE_SECONDS, self._tell_that_it_waits)
        try:
            response = await self._exchange("GET", "/_ping", None, "text/plain", lambda _: None, FIRST_SECONDS)
        finally:
            if notice.active():
                notice.cancel()
        spoken = response.headers.getRawHeaders("api-version") or [""]
        version = _version(spoken[0])
        if response.code != 200 or version < OLDEST:
            needed = ".".join(map(str, OLDEST))
            raise EngineUnavailable(self.address, f"its API is {spoken[0] or 'unknown'}, and {needed} is needed")
        self._version = ".".join(map(str, min(version, NEWEST)))

    async def _target(self, path: str, query: Query | None) -> str:
        if not self._version:
            await self.negotiate()
        return f"/v{self._version}{path}" + (f"?{urlencode(query)}" if query else "")

    async def _exchange(
        self,
        method: str,
        target: str,
        upload: BinaryIO | None,
        content_type: str,
        take: Callable[[bytes], None],
        patience: float | None,
    ) -> IResponse:
        connections = RequestConnectionPool(self._reactor)
        watch = Watch(self._reactor, patience or 0)
        over = watch.over if patience else lambda awaited: awaited
        agent = Agent.usingEndpointFactory(self._reactor, _Socket(self._reactor, self._socket), pool=connections)
        producer = None if upload is None else FileBodyProducer(upload, self._cooperator())
        headers = Headers({"host": ["docker"], "content-type": [content_type], "user-agent": ["ironcurtain"]})

        def taken(data: bytes) -> bool:
            take(data)
            if patience:
                watch.alive()
            return False

        try:
            response: IResponse = await over(
                agent.request(method.encode(), f"http://docker{target}".encode(), headers, producer)
            )
            await over(deliver(self._reactor, response, taken))
        except CancelledError:
            raise self._silent(patience or 0) if watch.expired else CancelledError() from None
        except _NETWORK as e:
            raise self._silent(patience or 0) if watch.expired else self._unreachable(e) from None
        finally:
            watch.stop()
            connections.drop()
        return response

    def _tell_that_it_waits(self) -> None:
        text = "waiting for the Docker Engine at {address}, up to {seconds:.0f} s"
        self.log.info(text, address=self.address, seconds=FIRST_SECONDS, for_person=True)

    def _cooperator(self) -> Cooperator:
        return Cooperator(scheduler=lambda work: self._reactor.callLater(0, work))

    def _silent(self, seconds: float) -> EngineUnavailable:
        return EngineUnavailable(self.address, f"silent for {seconds:.0f} seconds")

    def _unreachable(self, error: Exception) -> Exception:
        """:returns: what to raise: a ``CancelledError`` if the caller did not want to wait any longer."""
        causes = [error, *(reason.value for reason in getattr(error, "reasons", ()))]
        if any(isinstance(cause, CancelledError | ConnectingCancelledError) for cause in causes):
            return CancelledError()
        number = getattr(causes[-1], "osError", None)
        return EngineUnavailable(self.address, os.strerror(number) if isinstance(number, int) else str(causes[-1]))


def _version(text: str) -> tuple[int, ...]:
    parts = text.split(".")
    return tuple(map(int, parts)) if all(part.isdigit() for part in parts) else ()
