"""
Both sides of TLS: towards the agent, who takes us for a provider, and towards the provider, whom we verify.

They are contexts of the standard library's; :mod:`~ironcurtain.mitm_proxy.tls_layer` is what works with them.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from twisted.internet.interfaces import IProtocol

from ironcurtain.mitm_proxy.authority import Leaf
from ironcurtain.mitm_proxy.tls_layer import NamedConnection, TLSLayer
from ironcurtain.verification import believe

HTTP_1_1 = "http/1.1"
"""The one protocol we speak, by its ALPN name; a peer that knows no ALPN is taken to speak it too."""


class ServerSide:
    """
    Our side towards an agent that takes us for one host.

    :param leaf: gives that host's certificate, from our authority; another one once the last begins to be old.
    """

    def __init__(self, leaf: Callable[[], Leaf]) -> None:
        self._leaf, self._used = leaf, leaf()
        self._context = _serving(self._used)

    def wrap(self, protocol: IProtocol) -> TLSLayer:
        """:returns: what takes the encrypted bytes for this protocol, whose transport it becomes."""
        if (leaf := self._leaf()) is not self._used:
            self._context, self._used = _serving(leaf), leaf
        return TLSLayer(self._context, protocol)


class ClientSide:
    """
    Our side towards a provider. The handshake fails unless the provider's certificate is valid, and for this host.

    :param host: a name or an address.
    :param ca_file: certificates (PEM) to trust besides the system's; empty for none.
    :raises ConfigurationError: that file cannot be used.
    """

    def __init__(self, host: str, ca_file: str) -> None:
        self._host, self._context = host, _context(ssl.PROTOCOL_TLS_CLIENT)
        believe(self._context, ca_file)

    def wrap(self, protocol: IProtocol) -> TLSLayer:
        """:returns: what takes the encrypted bytes for this protocol, whose transport it becomes."""
        return TLSLayer(self._context, protocol, self._host)


def _context(side: int) -> ssl.SSLContext:
    # On the client's side, this verifies certificates and names unless it is told not to. On both sides nothing is
    # compressed, idle connections keep no buffers for records, and the client keeps its session, in a ticket.
    context = ssl.SSLContext(side)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    context.sslobject_class = NamedConnection
    context.set_alpn_protocols([HTTP_1_1])
    return context


def _serving(leaf: Leaf) -> ssl.SSLContext:
    context = _context(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = _remember_name
    key = leaf.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    # The module takes files only. A pipe is one that is nowhere on a disk, and empty once it was read.
    with readable(leaf.certificate.public_bytes(Encoding.PEM)) as certificate_path, readable(key) as key_path:
        context.load_cert_chain(certificate_path, key_path)
    return context


def _remember_name(connection: ssl.SSLSocket | ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
    assert isinstance(connection, NamedConnection)
    connection.server_name = (name or "").lower()


@contextmanager
def readable(data: bytes) -> Iterator[str]:
    """:returns: the path of a file that holds this, once."""
    reading, writing = os.pipe()
    try:
        with open(writing, "wb", buffering=0) as file:
            os.set_blocking(writing, False)  # a pipe takes a page at least; rather fail than wait for ever
            file.write(data)
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)
