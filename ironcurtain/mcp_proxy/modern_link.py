"""
The client side of revision 2026-07-28: requests to a server that has no handshake.

Such a server asks its questions by results that require input. They are answered as the requests of other servers are,
and the request is sent again with the answers, so that agents never see them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.jsonrpc import codec
from ironcurtain.mcp_proxy import envelope
from ironcurtain.mcp_proxy.backend import BackendFailed, OnProgress, RpcError
from ironcurtain.mcp_proxy.envelope import DISCOVER, LISTEN, MODERN_VERSION, ChangeFilter
from ironcurtain.mcp_proxy.link import Link
from ironcurtain.mcp_proxy.session import VERSIONS
from ironcurtain.text.display import json_line

ROUNDS = 10
"""Maximum number of times that a server may require input for one request."""

VERSION_LIMIT = 60
"""Maximum number of characters shown of an unknown version."""

CONNECTION_CLOSED = -32000
"""JSON-RPC error code of the SDK for an HTTP stream that ended without an answer."""

CONFIRMED = "notifications/subscriptions/acknowledged"

_CHANGES = frozenset(f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources"))

_SUBSCRIBE, _UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"

Ask = Callable[[str, bytes | None], Awaitable[bytes]]
"""Answers a question: takes method and raw parameters, returns the raw result, or raises :class:`RpcError`."""


class ModernLink:
    """
    Requests on one run of a server without a handshake.

    :param capabilities: those to announce: only for questions that will be answered.
    :param ask: answers the server's questions.
    """

    log = Logger()

    def __init__(self, link: Link, capabilities: Mapping[str, Any], ask: Ask) -> None:
        self._link, self._capabilities, self._ask = link, capabilities, ask
        self._uris: frozenset[str] = frozenset()
        self._listening: Deferred[Any] | None = None

    async def discover(self) -> dict[str, Any]:
        """
        :returns: what the server sends about itself.
        :raises BackendFailed: it does not support the revision.
        """
        found = codec.decode(await self.request(DISCOVER))
        versions = found.get("supportedVersions") if isinstance(found, dict) else None
        if not isinstance(versions, list) or MODERN_VERSION not in versions:
            raise unknown_version(self._link.name, versions)
        return dict(found)

    async def request(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: OnProgress | None = None
    ) -> bytes:
        """
        Send a request, and answer the server's questions until it is complete.

        :returns: the raw JSON result.
        :raises BackendFailed: there is no answer, or the server requires input again and again.
        :raises RpcError: the answer is an error, or a question was refused.
        """
        if method in (_SUBSCRIBE, _UNSUBSCRIBE):
            uri = frozenset((str((params or {}).get("uri")),))
            self.listen(self._uris | uri if method == _SUBSCRIBE else self._uris - uri)
            return b"{}"
        sent = envelope.enveloped(params, self._capabilities)
        for _ in range(ROUNDS):
            result = await self._link.request(method, sent, on_progress)
            try:
                needed = envelope.input_required(result)
            except codec.InvalidMessage as e:
                raise BackendFailed(f"MCP server {self._link.name} sent an invalid result: {e.detail}") from None
            if needed is None:
                return result
            answers = {key: codec.decode(await self._ask(*each)) for key, each in needed.questions.items()}
            sent = {**sent, "inputResponses": answers}
            sent |= {"requestState": needed.state} if needed.state is not None else {}
        raise BackendFailed(f"MCP server {self._link.name} required input more than {ROUNDS} times for one request")

    def listen(self, uris: frozenset[str] = frozenset()) -> None:
        """
        Ask for notifications of changed lists, and of these resources, in place of those asked for before.

        :param uris: the server's own.
        """
        self._uris, earlier = uris, self._listening
        wanted = envelope.written_filter(ChangeFilter(_CHANGES, uris))
        params = envelope.enveloped({"notifications": wanted}, self._capabilities)
        self._listening = self._link.request(LISTEN, params, endless=True)
        self._listening.addCallbacks(self._closed, self._listened)
        if earlier is not None:
            earlier.cancel()

    def _closed(self, result: object = None) -> None:
        """A stream of HTTP ends now and then; the channel limits how often a new one is opened."""
        if self._link.opening == DISCOVER:
            with suppress(BackendFailed):
                self.listen(self._uris)

    def _listened(self, failure: Failure) -> None:
        error = failure.value
        if not isinstance(error, RpcError):
            failure.trap(CancelledError, BackendFailed)
        elif error_code(error) == CONNECTION_CLOSED:
            self._closed()
        else:
            self.log.info("MCP server {name} refused {method}", name=self._link.name, method=LISTEN)


def error_code(error: RpcError) -> Any:
    """:returns: the code of a server's error; ``None`` if it has none."""
    value = codec.decode(error.raw)
    return value.get("code") if isinstance(value, dict) else None


def unknown_version(server: str, said: Any) -> BackendFailed:
    """:param said: what a server answered for a version of the protocol, or for a list of them; ``None``: nothing."""
    shown = json_line(said, VERSION_LIMIT)
    named = "names no protocol version" if said is None else f"speaks protocol version {shown}"
    return BackendFailed(f"MCP server {server} {named}; supported are {', '.join((*VERSIONS, MODERN_VERSION))}")
