"""What a tunnel needs of those who decide on its requests: one for providers, and others for all other hosts."""

from __future__ import annotations

import typing
from collections.abc import Callable

from twisted.internet.defer import Deferred

from ironcurtain.http.head import HttpRequest
from ironcurtain.mitm_proxy.exchange import ActiveRequest, ExchangeClient
from ironcurtain.mitm_proxy.judgement import ForwardedRequest
from ironcurtain.providers.provider import RequestRefusal

Judged = ForwardedRequest | RequestRefusal
"""What to send, or why nothing is sent."""


class WithBody(typing.NamedTuple):
    """
    A request that is judged together with its body.

    :ivar limit: maximum size of the body in bytes.
    :ivar judge: decides, given the body as it will be sent; cancelling the decision withdraws a question.
    """

    limit: int
    judge: Callable[[bytes], Deferred[Judged]]


class Admission(typing.Protocol):
    """Decides on the requests of one tunnel, and starts them."""

    def take(self, head: bytes) -> tuple[HttpRequest, Judged | Deferred[Judged | WithBody]]:
        """
        Parse a request's head, and decide on it; cancelling the decision withdraws a question.

        :raises ProtocolViolation: it cannot be parsed unambiguously; answer 400.
        """

    def denied(self, request: HttpRequest | None, refusal: RequestRefusal) -> RequestRefusal:
        """
        Record a refusal.

        :param request: ``None`` if it could not be parsed.
        :returns: the response.
        """

    def start(
        self,
        client: ExchangeClient,
        request: HttpRequest,
        forward: ForwardedRequest,
        length: int | None,
        fields: tuple[str, ...] = (),
    ) -> ActiveRequest | RequestRefusal:
        """
        Start an allowed request.

        :param length: size of the body in bytes; ``None`` if it is chunked.
        :param fields: names of fields of the body that are not sent.
        """

    def response(self, refusal: RequestRefusal, request: HttpRequest | None, close: bool) -> bytes:
        """
        :param close: whether the connection ends after it.
        :returns: the complete response to a refused request, head and body.
        """

    def check(self, now: float) -> None:
        """Enforce time limits; time in seconds of the clock."""

    def close(self) -> None:
        """The tunnel ended."""
