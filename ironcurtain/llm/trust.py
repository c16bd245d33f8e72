"""Whom a provider's TLS connections believe, and a hold on those connections."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from typing import Any

from OpenSSL.SSL import Connection
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IStreamClientEndpoint
from twisted.internet.ssl import Certificate, optionsForClientTLS, platformTrust
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.web.client import HTTPConnectionPool, _HTTP11ClientFactory
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

from ironcurtain.errors import ConfigurationError

_BEGIN = b"-----BEGIN CERTIFICATE-----"


@implementer(IPolicyForHTTPS)
class VerifyingPolicy:
    """
    Verify servers by the system's certificate authorities, and by those of a file if one is named.

    :param ca_file: path of a PEM file with one or more certificates; empty for none.
    :raises ConfigurationError: the file cannot be read or holds no certificate.
    """

    def __init__(self, ca_file: str) -> None:
        self._extra = _certificates(ca_file) if ca_file else ()

    def creatorForNetloc(self, hostname: bytes, port: int) -> IOpenSSLClientConnectionCreator:
        creator = optionsForClientTLS(hostname.decode("ascii"), trustRoot=platformTrust())
        return _AlsoTrusting(creator, self._extra) if self._extra else creator


@implementer(IOpenSSLClientConnectionCreator)
class _AlsoTrusting:
    def __init__(self, creator: Any, extra: Sequence[Certificate]) -> None:
        self._creator, self._extra = creator, extra

    def clientConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> Connection:
        connection: Connection = self._creator.clientConnectionForTLS(tlsProtocol)
        store = connection.get_context().get_cert_store()
        assert store is not None  # a context always has one
        for certificate in self._extra:
            store.add_cert(certificate.original)
        return connection


def _certificates(path: str) -> Sequence[Certificate]:
    try:
        with open(os.path.expanduser(path), "rb") as file:
            _, *found = file.read().split(_BEGIN)
        certificates = [Certificate.loadPEM(_BEGIN + pem) for pem in found]
    except OSError as e:
        raise ConfigurationError(path, f"cannot be read: {e.strerror}", field="ca_file") from None
    except Exception as e:  # what OpenSSL raises here has no public base class
        raise ConfigurationError(path, f"holds a certificate that is not PEM: {e}", field="ca_file") from None
    if not certificates:
        raise ConfigurationError(path, "holds no PEM certificate", field="ca_file")
    return certificates


class _QuietFactory(_HTTP11ClientFactory):
    noisy = False


class QuietPool(HTTPConnectionPool):
    """Connections of which the log does not tell each time that a factory starts and stops."""

    _factory = _QuietFactory


class Connections(QuietPool):
    """
    The connections of one attempt, none of them kept for later.

    An ``Agent`` gives no way to close its connection at once: a polite TLS goodbye waits for the other side, which may
    have stalled. So this remembers them.
    """

    def __init__(self, reactor: Any) -> None:
        super().__init__(reactor, persistent=False)
        self._opened: list[Any] = []

    def getConnection(self, key: Hashable, endpoint: IStreamClientEndpoint) -> Deferred[Any]:
        return super().getConnection(key, endpoint).addCallback(self._remember)

    def _remember(self, connection: Any) -> Any:
        self._opened.append(connection)
        return connection

    def drop(self) -> None:
        """Close every connection at once."""
        for connection in self._opened:
            # Twisted's TLS cannot be told to abort once the connection is gone.
            if connection.state != "CONNECTION_LOST":
                connection.transport.abortConnection()
        self._opened.clear()
