"""Say in words why a connection to a provider failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    (NoRouteError, "{host} cannot be reached: there is no way to it from here"),
    (ConnectError, "{host} cannot be reached: check the network and base_url"),
    (SSL.Error, "no TLS connection with {host}: it may speak another protocol there, or only an old version of TLS"),
    (ConnectionClosed, "{host} closed the connection before its answer was whole"),
)
_WRAPPERS = (ResponseFailed, RequestTransmissionFailed, RequestGenerationFailed)
_NETWORK = (*_WRAPPERS, ConnectError, ConnectionClosed, DNSLookupError, SSL.Error, VerificationError, CertificateError)


def network_error(error: Exception, host: str) -> Exception:
    """
    Turn what Twisted raises into what the caller of a provider is to see.

    :param host: whom we talked to.
    :returns: a :class:`ModelError`; a ``CancelledError`` if the request was cancelled; anything that has nothing to do
        with the network as it came.
    """
    causes = list(_causes(error))
    if any(isinstance(cause, (CancelledError, ConnectingCancelledError)) for cause in causes):
        return CancelledError()
    if isinstance(error, ProtocolViolation):
        return ModelError("network", f"the answer of {host} could not be understood: {error.detail}")
    if any(isinstance(cause, (VerificationError, CertificateError)) for cause in causes):
        return _untrusted(host, "it is for another name")
    for cause in causes:
        if isinstance(cause, InvalidCertificate):
            return _untrusted(host, cause.reason)
    if not isinstance(error, _NETWORK):
        return error
    return ModelError("network", _words(causes, host), retryable=True)


def _causes(error: BaseException) -> Iterator[BaseException]:
    yield error
    if isinstance(error, _WRAPPERS):
        for reason in error.reasons:
            yield from _causes(reason.value)


def _untrusted(host: str, why: str) -> ModelError:
    return ModelError(
        "network",
        f"the certificate of {host} is not valid: {why}. Nothing was sent. If your network replaces certificates, name "
        "the file of its certificate authority as ca_file in the provider's settings.",
    )


def _words(causes: Sequence[BaseException], host: str) -> str:
    """:returns: our own words for what is known; those of libraries mean nothing to a person."""
    for kind, words in _WORDS:
        if any(isinstance(cause, kind) for cause in causes):
            return words.format(host=host)
    return f"the answer of {host} could not be understood"
