"""Send the request that renews a login."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from twisted.internet.defer import CancelledError

from ironcurtain.accounts.renewing import ANSWER_LIMIT, RenewalRequest
from ironcurtain.errors import Unavailable
from ironcurtain.http.failures import in_words
from ironcurtain.http.outbound import Outbound
from ironcurtain.http.trust import VerifyingPolicy
from ironcurtain.http.upstream_proxies import UpstreamProxies

ANSWER_SECONDS: Final = 30.0
"""Time limit in seconds for a renewal."""


class TokenEndpoint:
    """:param outbound: sends the requests."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    async def post(self, request: RenewalRequest) -> tuple[int, bytes]:
        """
        :returns: status and body of the answer, whatever they are.
        :raises Unavailable: there was no answer.
        """
        headers = {"content-type": request.content_type, "accept": "application/json"}
        body = request.body.reveal().encode()
        try:
            return await self._outbound.exchange("POST", request.url, headers, body, ANSWER_SECONDS, ANSWER_LIMIT)
        except CancelledError:
            raise
        except Exception as e:
            ca_file = "SSL_CERT_FILE, a variable of the environment"
            why = in_words(e, urlsplit(request.url).hostname or request.url, setting="network.proxy", ca_file=ca_file)
            raise Unavailable(f"the login was not renewed: {why}") from None


def verified_endpoint(reactor: Any, proxies: UpstreamProxies) -> TokenEndpoint:
    """:returns: one whose servers have certificates that this system trusts."""
    return TokenEndpoint(Outbound(reactor, VerifyingPolicy(""), proxies))
