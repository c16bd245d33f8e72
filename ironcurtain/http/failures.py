"""Explain why a server could not be reached, or why its answer could not be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from OpenSSL import SSL
from service_identity import CertificateError, VerificationError
from twisted.internet.defer import CancelledError, TimeoutError
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

from ironcurtain.errors import ProtocolViolation
from ironcurtain.http.trust import InvalidCertificate
from ironcurtain.http.upstream_proxies import ProxyFailed

if TYPE_CHECKING:
    from twisted.web.client import RequestGenerationFailed, RequestTransmissionFailed, ResponseFailed

_WORDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (DNSLookupError, "the address of {host} cannot be found; check the network and {setting}"),
    (ConnectTimeout, "{host} cannot be reached: no answer in time"),
    (TCPTimedOutError, "{host} cannot be reached: no answer in time"),
    (ConnectionRefusedError, "{host} cannot be reached: nothing listens there"),
    (NoRouteError, "{host} cannot be reached: there is no route to it"),
    (ConnectError, "{host} cannot be reached: check the network and {setting}"),
    (SSL.Error, "no TLS connection with {host}: it may speak another protocol there, or only an old version of TLS"),
    (ConnectionClosed, "{host} closed the connection before its answer was whole"),
)
_NETWORK = (ConnectError, ConnectionClosed, DNSLookupError, SSL.Error, VerificationError, CertificateError)


class NetworkFailure(NamedTuple):
    """
    A failure in words.

    :ivar lasting: whether trying again is in vain until somebody changes something.
    """

    message: str
    lasting: bool


def explain(error: Exception, host: str, *, setting: str, ca_file: str) -> NetworkFailure | None:
    """
    :param host: the server.
    :param setting: the setting with its address, in words.
    :param ca_file: the setting for further certificate authorities, in words.
    :returns: what happened; ``None`` if the error is unrelated to the network.
    """
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ProxyFailed):
            return NetworkFailure(cause.message, cause.lasting)
    if isinstance(error, ProtocolViolation):
        return NetworkFailure(f"the answer of {host} could not be understood: {error.detail}", True)
    if any(isinstance(cause, (VerificationError, CertificateError)) for cause in causes):
        return _untrusted(host, "it is for another name", ca_file)
    for cause in causes:
        if isinstance(cause, InvalidCertificate):
            return _untrusted(host, cause.reason, ca_file)
    if not isinstance(error, (*_NETWORK, *_wrappers())):
        return None
    return NetworkFailure(_words(causes, host, setting), False)


def in_words(error: Exception, host: str, *, setting: str, ca_file: str) -> str:
    """
    See :func:`explain`.

    :returns: what happened, also if it is unrelated to the network, or took too long.
    """
    if isinstance(error, TimeoutError) or is_cancelled(error):
        return f"{host} cannot be reached: no answer in time"
    known = explain(error, host, setting=setting, ca_file=ca_file)
    return str(error) if known is None else known.message


def is_cancelled(error: Exception) -> bool:
    """:returns: whether an error means that the request was cancelled."""
    return any(isinstance(cause, (CancelledError, ConnectingCancelledError)) for cause in _causes(error))


def _wrappers() -> tuple[type[ResponseFailed | RequestTransmissionFailed | RequestGenerationFailed], ...]:
    # Slow to import: only what sends requests has it already.
    from twisted.web.client import RequestGenerationFailed, RequestTransmissionFailed, ResponseFailed

    return ResponseFailed, RequestTransmissionFailed, RequestGenerationFailed


def _causes(error: BaseException) -> Iterator[BaseException]:
    yield error
    if isinstance(error, _wrappers()):
        for reason in error.reasons:
            yield from _causes(reason.value)


def _untrusted(host: str, why: str, ca_file: str) -> NetworkFailure:
    return NetworkFailure(
        f"the certificate of {host} is not valid: {why}. Nothing was sent. If your network replaces certificates, name "
        f"the file of its certificate authority as {ca_file}.",
        True,
    )


def _words(causes: Sequence[BaseException], host: str, setting: str) -> str:
    """:returns: an explanation for known causes, since messages of libraries are not for people."""
    for kind, words in _WORDS:
        if any(isinstance(cause, kind) for cause in causes):
            return words.format(host=host, setting=setting)
    return f"the answer of {host} could not be understood"
