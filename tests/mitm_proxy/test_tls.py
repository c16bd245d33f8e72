"""TLS, in memory: both sides, certificates and all."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from OpenSSL import SSL
from OpenSSL.crypto import X509
from service_identity import CertificateError, VerificationError
from twisted.internet.interfaces import (
    IHandshakeListener,
    IOpenSSLClientConnectionCreator,
    IOpenSSLServerConnectionCreator,
)
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.internet.task import Clock
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from twisted.test.iosim import FakeTransport, IOPump
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from ironcurtain.errors import ConfigurationError
from ironcurtain.llm.failures import network_error
from ironcurtain.mitm_proxy.authority import Authority, Leaf
from ironcurtain.mitm_proxy.tls import ClientSide, ServerSide
from tests.model_stub.certificates import Authority as ProviderAuthority

HOST = "api.example.com"


@implementer(IHandshakeListener)
class Peer(Protocol):
    """One side: what it got, and how it ended."""

    def __init__(self) -> None:
        self.got, self.shaken = b"", False
        self.lost: Failure | None = None

    def handshakeCompleted(self) -> None:
        self.shaken = not getattr(self.transport, "disconnecting", False)

    def dataReceived(self, data: bytes) -> None:
        self.got += data

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.lost = reason


@implementer(IOpenSSLClientConnectionCreator, IOpenSSLServerConnectionCreator)
class Other:
    """The other side, as a test wants it."""

    def __init__(self, context: SSL.Context, name: str = "", session: Any = None) -> None:
        self._context, self._name, self._session = context, name, session

    def clientConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        connection = SSL.Connection(self._context, None)
        if self._name:
            connection.set_tlsext_host_name(self._name.encode())
        if self._session is not None:
            connection.set_session(self._session)
        return connection

    def serverConnectionForTLS(self, tlsProtocol: TLSMemoryBIOProtocol) -> SSL.Connection:
        return SSL.Connection(self._context, None)


def directory(test: SynchronousTestCase) -> Path:
    """:returns: a directory that goes after the test."""
    path = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp")).resolve()
    test.addCleanup(shutil.rmtree, path)
    return path


def wrapped(creator: Any, is_client: bool, peer: Peer) -> TLSMemoryBIOProtocol:
    """:returns: the other side's TLS."""
    factory = TLSMemoryBIOFactory(creator, is_client, Factory(), Clock())
    factory.protocol = TLSMemoryBIOProtocol
    return TLSMemoryBIOProtocol(factory, peer)


def connected(client: Any, server: Any) -> IOPump:
    """:returns: what moves the bytes between two protocols, after all that is to be said first is said."""
    client_transport, server_transport = FakeTransport(client, False), FakeTransport(server, True)
    client.makeConnection(client_transport)
    server.makeConnection(server_transport)
    pump = IOPump(client, server, client_transport, server_transport, False)
    pump.flush()
    return pump


def trusting(authority: Authority, *, alpn: Sequence[bytes] = (), most: int = 0) -> SSL.Context:
    """:returns: the context of a client that trusts an authority."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    store = context.get_cert_store()
    assert store is not None
    store.add_cert(X509.from_cryptography(x509.load_pem_x509_certificate(authority.certificate_pem)))
    context.set_verify(SSL.VERIFY_PEER)
    if alpn:
        context.set_alpn_protos(list(alpn))
    if most:
        context.set_max_proto_version(most)
    return context


class ServerTests(SynchronousTestCase):
    """Towards the agent."""

    def setUp(self) -> None:
        self.authority = Authority.load_or_make(directory(self), time.time)
        self.side = ServerSide(lambda: self.authority.leaf(HOST))

    def shake(self, context: SSL.Context, session: Any = None) -> tuple[Peer, Any, Peer, Any, IOPump]:
        """:returns: the client and its TLS, the server and its TLS, and what moves the bytes."""
        client, server = Peer(), Peer()
        client_tls, server_tls = wrapped(Other(context, HOST, session), True, client), self.side.wrap(server)
        return client, client_tls, server, server_tls, connected(client_tls, server_tls)

    def test_bytes_and_the_name_come_through(self) -> None:
        client, client_tls, server, server_tls, pump = self.shake(trusting(self.authority))
        client_tls.write(b"hello")
        server_tls.write(b"good day")
        pump.flush()
        self.assertEqual((server.got, client.got), (b"hello", b"good day"))
        self.assertEqual(server_tls.getHandle().get_servername(), HOST.encode())
        self.assertEqual(client_tls.getHandle().get_protocol_version_name(), "TLSv1.3")

    def test_protocols_that_are_offered(self) -> None:
        offers: list[tuple[list[bytes], bytes]] = [
            ([], b""),
            ([b"http/1.1"], b"http/1.1"),
            ([b"h2", b"http/1.1"], b"http/1.1"),
            ([b"h2"], b""),
        ]
        for offered, chosen in offers:
            _, client_tls, server, _, _ = self.shake(trusting(self.authority, alpn=offered))
            self.assertTrue(server.shaken)
            self.assertEqual(client_tls.getHandle().get_alpn_proto_negotiated(), chosen)

    def test_old_versions_are_refused(self) -> None:
        _, _, server, _, _ = self.shake(trusting(self.authority, most=SSL.TLS1_2_VERSION))
        self.assertTrue(server.shaken)
        context = trusting(self.authority, most=SSL.TLS1_1_VERSION)
        context.set_cipher_list(b"ALL:@SECLEVEL=0")
        client, _, server, _, _ = self.shake(context)
        self.assertFalse(client.shaken or server.shaken)

    def test_a_client_that_comes_back_shortens_its_handshake(self) -> None:
        context = trusting(self.authority)
        _, client_tls, _, _, _ = self.shake(context)
        session = client_tls.getHandle().get_session()
        _, client_tls, server, server_tls, _ = self.shake(context, session)
        self.assertTrue(server.shaken)
        self.assertTrue(SSL._lib.SSL_session_reused(client_tls.getHandle()._ssl))  # type: ignore[attr-defined]
        self.assertEqual(server_tls.getHandle().get_servername(), HOST.encode())

    def test_a_new_certificate_is_used_once_there_is_one(self) -> None:
        first = self.authority.leaf(HOST)
        other = Authority.load_or_make(directory(self), time.time)
        leaves: list[Leaf] = [first]
        self.side = ServerSide(lambda: leaves[-1])
        self.assertTrue(self.shake(trusting(self.authority))[2].shaken)
        leaves.append(other.leaf(HOST))
        self.assertTrue(self.shake(trusting(other))[2].shaken)


class ClientTests(SynchronousTestCase):
    """Towards the provider."""

    def setUp(self) -> None:
        self.provider = ProviderAuthority.make()
        self.ca_file = directory(self) / "ca.pem"
        self.ca_file.write_bytes(self.provider.pem)

    def shake(self, side: ClientSide, server_side: Any) -> tuple[Peer, Peer]:
        """:returns: our side of a handshake, and the other."""
        client, server = Peer(), Peer()
        connected(side.wrap(client), wrapped(server_side, False, server))
        return client, server

    def assert_is_for_another(self, client: Peer, server: Peer) -> None:
        """Nothing was said to who has another name."""
        self.assertFalse(client.shaken)
        assert client.lost is not None
        error = client.lost.value
        assert isinstance(error, (VerificationError, CertificateError)), error
        self.assertEqual(server.got, b"")

    def test_the_right_provider(self) -> None:
        for name in (HOST, "127.0.0.1", "::1"):
            side = ClientSide(name, str(self.ca_file))
            client, server = self.shake(side, self.provider.server(name))
            self.assertTrue(client.shaken and server.shaken, name)

    def test_another_name(self) -> None:
        for name, other in ((HOST, "other.example.com"), (HOST, "127.0.0.1"), ("127.0.0.1", "127.0.0.2")):
            self.assert_is_for_another(*self.shake(ClientSide(name, str(self.ca_file)), self.provider.server(other)))

    def serving(self, *names: str, hours: int = 1) -> Other:
        """:returns: a provider whose certificate ends in so many hours."""
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self.provider.certificate.subject)
        builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=2)).not_valid_after(now + timedelta(hours=hours))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), False)
        context = SSL.Context(SSL.TLS_SERVER_METHOD)
        context.use_certificate(builder.sign(self.provider.key, hashes.SHA256()))
        context.use_privatekey(key)
        return Other(context)

    def test_no_name(self) -> None:
        self.assert_is_for_another(*self.shake(ClientSide(HOST, str(self.ca_file)), self.serving()))

    def test_one_that_has_expired(self) -> None:
        client, _ = self.shake(ClientSide(HOST, str(self.ca_file)), self.serving(HOST, hours=-1))
        assert client.lost is not None and isinstance(client.lost.value, Exception)
        self.assertIn("is not valid: it has expired", str(network_error(client.lost.value, HOST)))

    def test_old_versions_are_refused(self) -> None:
        side = ClientSide(HOST, str(self.ca_file))
        for most, shaken in ((SSL.TLS1_2_VERSION, True), (SSL.TLS1_1_VERSION, False)):
            other = self.provider.server(HOST)
            other._context.set_max_proto_version(most)
            other._context.set_cipher_list(b"ALL:@SECLEVEL=0")
            client, _ = self.shake(side, other)
            self.assertEqual(client.shaken, shaken)

    def test_an_authority_that_nobody_knows(self) -> None:
        for ca_file in ("", str(self.ca_file)):
            client, _ = self.shake(ClientSide(HOST, ca_file), ProviderAuthority.make().server(HOST))
            self.assertFalse(client.shaken)
            assert client.lost is not None
            self.assertIn("certificate verify failed", str(client.lost.value))

    def test_a_file_that_is_no_use(self) -> None:
        empty = self.ca_file.with_name("empty.pem")
        empty.write_text("nothing")
        for path in (empty, self.ca_file.with_name("missing.pem")):
            with self.assertRaises(ConfigurationError) as caught:
                ClientSide(HOST, str(path))
            self.assertIn(str(path), str(caught.exception))
