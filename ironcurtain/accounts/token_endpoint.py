"""Send the request that renews a login."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from twisted.internet.defer import CancelledError, Deferred
from twisted.web.http_headers import Headers

from ironcurtain.accounts.renewing import ANSWER_LIMIT, RenewalRequest
from ironcurtain.errors import Unavailable
from ironcurtain.http.connections import RequestConnectionPool
from ironcurtain.http.failures import in_words
from ironcurtain.http.outbound import Outbound
from ironcurtain.http.streaming import deliver
from ironcurtain.http.trust import VerifyingPolicy
from ironcurtain.http.upstream_proxies import UpstreamProxies

ANSWER_SECONDS: Final = 30.0
"""Time limit in seconds for a renewal."""


class TokenEndpoint:
    """
    :param reactor: for time limits.
    :param outbound: sends the requests.
    """

    def __init__(self, reactor: Any, outbound: Outbound) -> None:
        self._reactor, self._outbound = reactor, outbound

    async def post(self, request: RenewalRequest) -> tuple[int, bytes]:
        """
        :returns: status and body of the answer, whatever they are.
        :raises Unavailable: there was no answer.
        """
        host = urlsplit(request.url).hostname or request.url
        body, connections = bytearray(), RequestConnectionPool(self._reactor)
        try:
            asking = Deferred.fromCoroutine(self._post(connections, request, body))
            status = await asking.addTimeout(ANSWER_SECONDS, self._reactor)
        except Exception as e:
            if isinstance(e, CancelledError):
                raise
            ca_file = "SSL_CERT_FILE, a variable of the environment"
            why = in_words(e, host, setting="network.proxy", ca_file=ca_file)
            raise Unavailable(f"the login was not renewed: {why}") from None
        finally:
            connections.drop()
        return status, bytes(body)

    async def _post(self, connections: RequestConnectionPool, request: RenewalRequest, body: bytearray) -> int:
        headers = Headers({"content-type": [request.content_type], "accept": ["application/json"]})
        headers.setRawHeaders("user-agent", ["ironcurtain"])
        sent = request.body.reveal().encode()
        response = await self._outbound.request(connections, "POST", request.url, headers, sent)

        def take(data: bytes) -> bool:
            body.extend(data[: ANSWER_LIMIT - len(body)])
            return len(body) >= ANSWER_LIMIT

        await deliver(self._reactor, response, take)
        return int(response.code)


def verified_endpoint(reactor: Any, proxies: UpstreamProxies) -> TokenEndpoint:
    """:returns: one whose servers have certificates that this system trusts."""
    return TokenEndpoint(reactor, Outbound(reactor, VerifyingPolicy(""), proxies))
