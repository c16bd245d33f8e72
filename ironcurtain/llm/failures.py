"""Explain failed requests to a provider, and decide when to retry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from OpenSSL import SSL
from service_identity import CertificateError, VerificationError
from twisted.internet.defer import CancelledError
from twisted.internet.error import (
    ConnectError,
    ConnectingCancelledError,
    ConnectionClosed,
    ConnectionRefusedError,
    DNSLookupError,
    NoRouteError,
    TCPTimedOutError,
)
from twisted.internet.error import TimeoutError as ConnectTimeout
from twisted.web.client import RequestGenerationFailed, RequestTransmissionFailed, ResponseFailed

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.trust import InvalidCertificate
from ironcurtain.llm.model import ModelError

_WORDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (DNSLookupError, "the address of {host} cannot be found; check the network and base_url"),
    (ConnectTimeout, "{host} cannot be reached: no answer in time"),
    (TCPTimedOutError, "{host} cannot be reached: no answer in time"),
    (ConnectionRefusedError, "{host} cannot be reached: nothing listens there"),
    (NoRouteError, "{host} cannot be reached: there is no route to it"),
    (ConnectError, "{host} cannot be reached: check the network and base_url"),
    (SSL.Error, "no TLS connection with {host}: it may speak another protocol there, or only an old version of TLS"),
    (ConnectionClosed, "{host} closed the connection before its answer was whole"),
)
_WRAPPERS = (ResponseFailed, RequestTransmissionFailed, RequestGenerationFailed)
_NETWORK = (*_WRAPPERS, ConnectError, ConnectionClosed, DNSLookupError, SSL.Error, VerificationError, CertificateError)


def network_error(error: Exception, host: str, ca_file: str = "ca_file in the provider's settings") -> Exception:
    """
    Convert an exception of Twisted to one for the provider's caller.

    :param host: the server.
    :param ca_file: the setting for further certificate authorities, in words.
    :returns: a :class:`ModelError`; a ``CancelledError`` if the request was cancelled; unchanged if it is unrelated to
        the network.
    """
    causes = list(_causes(error))
    if any(isinstance(cause, (CancelledError, ConnectingCancelledError)) for cause in causes):
        return CancelledError()
    if isinstance(error, ProtocolViolation):
        return ModelError("network", f"the answer of {host} could not be understood: {error.detail}")
    if any(isinstance(cause, (VerificationError, CertificateError)) for cause in causes):
        return _untrusted(host, "it is for another name", ca_file)
    for cause in causes:
        if isinstance(cause, InvalidCertificate):
            return _untrusted(host, cause.reason, ca_file)
    if not isinstance(error, _NETWORK):
        return error
    return ModelError("network", _words(causes, host), retryable=True)


def _causes(error: BaseException) -> Iterator[BaseException]:
    yield error
    if isinstance(error, _WRAPPERS):
        for reason in error.reasons:
            yield from _causes(reason.value)


def _untrusted(host: str, why: str, ca_file: str) -> ModelError:
    return ModelError(
        "network",
        f"the certificate of {host} is not valid: {why}. Nothing was sent. If your network replaces certificates, name "
        f"the file of its certificate authority as {ca_file}.",
    )


def _words(causes: Sequence[BaseException], host: str) -> str:
    """:returns: an explanation for known causes, since messages of libraries are not for people."""
    for kind, words in _WORDS:
        if any(isinstance(cause, kind) for cause in causes):
            return words.format(host=host)
    return f"the answer of {host} could not be understood"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """
    Limits of retries.

    :ivar attempts: maximum number of attempts, including the first.
    :ivar first_delay: seconds before the second attempt; each further delay is doubled.
    :ivar longest_delay: maximum seconds of a delay that the client chooses.
    :ivar longest_asked: maximum seconds of a delay that the server requests; if it requests more, the request fails at
        once.
    """

    attempts: int = 5
    first_delay: float = 1.0
    longest_delay: float = 30.0
    longest_asked: float = 120.0

    def delay(self, failed: int, asked: float | None, random: Callable[[], float]) -> float | None:
        """
        Choose the delay before the next attempt.

        :param failed: number of failed attempts, at least 1.
        :param asked: seconds that the server requested, if any.
        :param random: returns numbers from 0 to 1. It spreads delays over the upper half of their length, so that many
            clients do not retry at the same moment.
        :returns: seconds, or ``None`` to give up.
        """
        if failed >= self.attempts:
            return None
        if asked is not None:
            return asked if asked <= self.longest_asked else None
        longest = min(self.first_delay * 2.0 ** (failed - 1), self.longest_delay)
        return longest * (1 + random()) / 2


def asked_delay(retry_after: str | None, date: str | None) -> float | None:
    """
    Parse a Retry-After header (RFC 9110 section 10.2.3).

    A date in it is compared with the response's own Date header, so that this machine's clock may be wrong.

    :param retry_after: the header's value: seconds, or a date.
    :param date: the Date header's value.
    :returns: seconds, at least 0; ``None`` if there is no valid value.
    """
    if retry_after is None:
        return None
    value = retry_after.strip()
    if value.isascii() and value.replace(".", "", 1).isdigit():
        return float(value)
    until, now = _moment(value), _moment(date or "")
    return None if until is None or now is None else max(0.0, (until - now).total_seconds())


def _moment(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
