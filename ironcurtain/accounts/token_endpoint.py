"""Send the request that renews a login."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from treq.client import HTTPClient
from twisted.internet.defer import Deferred, TimeoutError
from twisted.web.client import Agent, HTTPConnectionPool
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent

from ironcurtain.accounts.renewing import ANSWER_LIMIT, RenewalRequest
from ironcurtain.errors import Unavailable
from ironcurtain.http.connections import RequestConnectionPool
from ironcurtain.http.failures import explain, is_cancelled
from ironcurtain.http.streaming import deliver
from ironcurtain.http.trust import VerifyingPolicy

ANSWER_SECONDS: Final = 30.0
"""Time limit in seconds for a renewal."""

CONNECT_SECONDS: Final = 10.0
"""Time limit in seconds for a connection to one address."""


class TokenEndpoint:
    """
    :param reactor: for connections and time limits.
    :param make_agent: makes the agent for one request over a pool's connections; it verifies servers.
    """

    def __init__(self, reactor: Any, make_agent: Callable[[HTTPConnectionPool], IAgent]) -> None:
        self._reactor, self._make_agent = reactor, make_agent

    async def post(self, request: RenewalRequest) -> tuple[int, bytes]:
        """
        :returns: status and body of the answer, whatever they are.
        :raises Unavailable: there was no answer.
        """
        host = urlsplit(request.url).hostname or request.url
        body, connections = bytearray(), RequestConnectionPool(self._reactor)
        client = HTTPClient(self._make_agent(connections))
        try:
            asking = Deferred.fromCoroutine(self._post(client, request, body))
            status = await asking.addTimeout(ANSWER_SECONDS, self._reactor)
        except Exception as e:
            if is_cancelled(e):
                raise
            raise Unavailable(f"the login was not renewed: {_reason(e, host)}") from None
        finally:
            connections.drop()
        return status, bytes(body)

    async def _post(self, client: HTTPClient, request: RenewalRequest, body: bytearray) -> int:
        headers = Headers({"content-type": [request.content_type], "accept": ["application/json"]})
        headers.setRawHeaders("user-agent", ["ironcurtain"])
        response: Any = await client.request(
            "POST",
            request.url,
            headers=headers,
            data=request.body.reveal().encode(),
            allow_redirects=False,
            unbuffered=True,
            reactor=self._reactor,
        )

        def take(data: bytes) -> bool:
            body.extend(data[: ANSWER_LIMIT - len(body)])
            return len(body) >= ANSWER_LIMIT

        await deliver(self._reactor, response, take)
        return int(response.code)


def _reason(error: Exception, host: str) -> str:
    if isinstance(error, TimeoutError):
        return f"{host} cannot be reached: no answer in time"
    known = explain(error, host, setting="network.proxy", ca_file="SSL_CERT_FILE, a variable of the environment")
    return known.message if known is not None else f"the request to {host} failed: {type(error).__name__}"


def verified_endpoint(reactor: Any) -> TokenEndpoint:
    """:returns: one whose servers have certificates that this system trusts."""
    policy = VerifyingPolicy("")
    return TokenEndpoint(reactor, lambda pool: Agent(reactor, policy, connectTimeout=CONNECT_SECONDS, pool=pool))
