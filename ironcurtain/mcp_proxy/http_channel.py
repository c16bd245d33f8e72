"""
The channel to a server that is reached by HTTP: MCP's streamable HTTP, using the official SDK. It begins a session if
the server's revision has them.

Limits around the SDK's client apply to all answers of the server.

Only sessions with such a server import this module: the import takes 0.4 s and 30 MiB.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterator, Mapping
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.inbound import MCP_METHOD_HEADER
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import PARSE_ERROR, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as Late
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.jsonrpc import codec
from ironcurtain.jsonrpc.framing import OUTBOUND_LIMIT
from ironcurtain.mcp_proxy.channel import UNSENT_LIMIT, ChannelOwner
from ironcurtain.mcp_proxy.envelope import DISCOVER
from ironcurtain.mcp_proxy.http_headers import RequestHeaders
from ironcurtain.mcp_proxy.http_messages import MessageReader
from ironcurtain.mcp_proxy.http_outbound import NoWayThrough, ProxyingTransport, causes
from ironcurtain.mcp_proxy.http_transport import AUTHORIZING, BoundedTransport, UnwantedAnswer
from ironcurtain.platform.sockets import keep_alive
from ironcurtain.secrets.redaction import Secret
from ironcurtain.services.asyncio_bridge import from_asyncio

ANSWER_SECONDS = 30.0
"""Time limit in seconds for connecting and for sending."""

SDK_UNREAD = "Failed to parse "
"""The beginning of the SDK's message about an answer that it refuses; the rest quotes the answer."""

POLITE_SECONDS = 2.0
"""Time limit in seconds for the DELETE request that ends the session."""

# A silent server is detected after 90 s; an answer may take any time.
_ALIVE = keep_alive(60, 10, 3)

# The SDK logs what servers send, and Python prints unhandled log records to the terminal. This module logs what
# matters.
logging.getLogger("mcp").addHandler(logging.NullHandler())


class HttpChannel:
    """
    See :class:`~ironcurtain.mcp_proxy.channel.ServerChannel`.

    :param url: URL of the server's endpoint. Redirects are followed to the same origin only.
    :param headers: sent with each request.
    :param context: the TLS context that verifies the server.
    :param auth: authenticates the requests; ``None`` if the headers do.
    :param unauthorized: the reason for an end by the HTTP status 401.
    """

    log = Logger()
    pid, opening = 0, DISCOVER

    def __init__(
        self,
        url: Secret,
        headers: Mapping[str, Secret],
        context: ssl.SSLContext,
        proxies: UpstreamProxies,
        clock: IReactorTime,
        auth: httpx2.Auth | None,
        unauthorized: str,
        owner: ChannelOwner,
    ) -> None:
        self._auth, self._unauthorized, self._proxies = auth, unauthorized, proxies
        self._url, self._headers, self._context, self._clock, self._owner = url, headers, context, clock, owner
        self._unsent: asyncio.Queue[bytes] = asyncio.Queue()
        self._waiting = 0
        self._readable = asyncio.Event()
        self._readable.set()
        self._scope = anyio.CancelScope()
        self._request_headers = RequestHeaders()
        self._unread: dict[codec.Id, str] = {}
        """Why the answers to requests cannot be read."""
        self._running: Deferred[None] | None = None
        self._over = False
        self._why = "closed the connection"

    @property
    def choked(self) -> bool:
        return self._waiting > UNSENT_LIMIT

    async def connect(self) -> None:
        self._running = from_asyncio(self._run())

    def write(self, line: bytes) -> None:
        self._waiting += len(line)
        self._unsent.put_nowait(line)

    def pause(self) -> None:
        self._readable.clear()

    def resume(self) -> None:
        self._readable.set()

    async def stop(self) -> None:
        self._over = True
        self._scope.cancel()
        running, self._running = self._running, None
        if running is not None:
            running.addTimeout(POLITE_SECONDS, self._clock)
            running.addErrback(lambda failure: failure.trap(CancelledError, Late) and None)
            await running

    def _answered(self, request: httpx2.Request, response: httpx2.Response) -> None:
        status = response.status_code
        if request.extensions.get(AUTHORIZING) and (status == 401 or request.url != self._url.reveal()):
            return
        if status < 400 or (
            status == 405 and request.method != "POST"
        ):  # the server has no notification stream or no DELETE, which is allowed
            return
        if status == 401 or request.headers.get(MCP_METHOD_HEADER) != DISCOVER:  # other servers may refuse that
            self._tell(f"answered {request.method} with HTTP status {status}")
        if status == 401:
            self._end(self._unauthorized)
        elif status == 404 and request.method == "POST" and MCP_SESSION_ID in request.headers:
            self._end("ended the session")

    async def _run(self) -> None:
        try:
            async with (
                self._client() as client,
                streamable_http_client(
                    self._url.reveal(), http_client=client, max_sse_event_size=OUTBOUND_LIMIT
                ) as streams,
            ):
                with self._scope:
                    await self._exchange(*streams)
                self._went()  # the DELETE request may take a while
        except Exception as e:
            self._why = self._words(e)
        self._went()

    def _went(self) -> None:
        if not self._over:
            self._over = True
            self._owner.gone(self._why)

    async def _exchange(self, received: Any, sent: Any) -> None:
        async with anyio.create_task_group() as both:
            both.start_soon(self._send, sent)
            async for message in received:
                await self._readable.wait()
                if isinstance(message, SessionMessage):
                    self._take(message.message)
                else:
                    self._tell("sent an invalid message")
            both.cancel_scope.cancel()

    async def _send(self, sent: Any) -> None:
        while True:
            line = await self._unsent.get()
            self._waiting -= len(line)
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                self._refuse(line)
                continue
            with anyio.move_on_after(
                ANSWER_SECONDS
            ) as sending:  # the SDK waits for the server's answer to what is not a request
                headers = self._request_headers.of(message)
                await sent.send(SessionMessage(message, ClientMessageMetadata(headers=headers)))
            if sending.cancelled_caught:
                self._end("does not accept messages")

    def _refuse(self, line: bytes) -> None:
        # The SDK accepts less nesting than the proxy, and validates answers.
        message = codec.parse(line)
        if isinstance(message, codec.Request):
            why = "these parameters cannot be sent by HTTP"
            self._owner.line_received(codec.error(message.id, codec.INVALID_PARAMS, why))
        elif isinstance(message, codec.Response):
            self.write(codec.error(message.id, codec.INTERNAL_ERROR, "the answer cannot be sent by HTTP"))

    def _take(self, message: JSONRPCMessage) -> None:
        for name in self._request_headers.learn(message):
            self._tell(f"describes invalid headers for its tool {name}, which is left out")
        if self._over:
            return
        if isinstance(message, JSONRPCError) and (why := self._why_unread(message)):
            self._owner.unread(message.id, why)
        else:
            self._owner.line_received(message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    def _why_unread(self, message: JSONRPCError) -> str:
        """:returns: why an answer could not be read; empty if the error is the server's."""
        of_sdk = message.error.code == PARSE_ERROR and message.error.message.startswith(SDK_UNREAD)
        why = self._unread.pop(message.id, "") if message.id is not None else ""
        return why or ("the SDK refuses it; it may be nested too deeply" if of_sdk else "")

    def _client(self) -> httpx2.AsyncClient:
        transport = ProxyingTransport(
            self._context,
            self._proxies,
            limits=httpx2.Limits(max_connections=None),  # a cancelled call may keep its connection
            socket_options=_ALIVE,
        )
        configured = {name: secret.reveal() for name, secret in self._headers.items()}
        return httpx2.AsyncClient(
            # A compressed answer could expand without bounds.
            headers={"user-agent": "ironcurtain", **configured, "accept-encoding": "identity"},
            transport=BoundedTransport(transport, self._clock, self._answered, self._reader),
            auth=self._auth,
            timeout=httpx2.Timeout(ANSWER_SECONDS, read=None),
            trust_env=False,
        )

    def _reader(self, request: codec.Id | None) -> MessageReader:
        return MessageReader(request, self._unread.__setitem__, self._tell)

    def _tell(self, what: str) -> None:
        if not self._over:
            self._owner.error_line(what)

    def _end(self, why: str) -> None:
        self._why = why
        self._scope.cancel()

    def _words(self, error: Exception) -> str:
        cause = next(_leaves(error))
        if isinstance(cause, NoWayThrough):
            return f"cannot be reached: {cause}"
        if isinstance(cause, httpx2.ConnectTimeout):
            return "cannot be reached: no answer in time"
        if isinstance(cause, httpx2.ConnectError):
            if any(isinstance(below, ssl.SSLCertVerificationError) for below in causes(cause)):
                return "cannot be reached: its certificate is not valid; set ca_file to its authority's certificate"
            return "cannot be reached: check its url and the network"
        if isinstance(cause, UnwantedAnswer):
            return f"is gone: {cause}"
        if isinstance(cause, httpx2.HTTPError):
            return "is gone: the connection broke, or its answer was invalid"
        self.log.failure("the connection to an MCP server failed", Failure(cause))
        return "is gone: the connection failed"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
