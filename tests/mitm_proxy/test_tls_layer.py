"""Between encrypted bytes and decrypted ones: an agent whose every byte a test moves."""

from __future__ import annotations

import contextlib
import ssl
import sys
import time
from typing import Any

from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st
from OpenSSL import SSL
from OpenSSL.crypto import X509
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.protocol import connectionDone
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mitm_proxy.authority import Authority
from ironcurtain.mitm_proxy.flow import FlowSignal
from ironcurtain.mitm_proxy.tls import ServerSide
from ironcurtain.mitm_proxy.tls_layer import PIECE, TLSLayer
from tests.mitm_proxy.test_tls import HOST, Peer, directory

ALERT, HANDSHAKE, DATA = 21, 22, 23
"""Types of records as TLS 1.2 shows them (RFC 8446 section 5.1)."""


class Inside(Peer):
    """The protocol inside, which counts its deliveries."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.transport: Any = None

    def dataReceived(self, data: bytes) -> None:
        super().dataReceived(data)
        self.pieces.append(data)


class Sized(StringTransport):
    """Remembers how much it got at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def write(self, data: bytes) -> None:
        self.sizes.append(len(data))
        super().write(data)


class Agent:
    """The other side, which says what it is told."""

    def __init__(self, authority: Authority, most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> None:
        context = ssl.create_default_context(cadata=authority.certificate_pem.decode())
        context.maximum_version = most
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=HOST)
        self.got = bytearray()
        self.parted = False

    def hear(self, data: bytes) -> None:
        """Take encrypted bytes."""
        self._incoming.write(data)
        try:
            while piece := self.tls.read(65536):
                self.got += piece
            self.parted = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.parted = True

    def said(self) -> bytes:
        """:returns: encrypted bytes."""
        return self._outgoing.read()

    def encrypted(self, data: bytes) -> bytes:
        """:returns: the records that hold this."""
        self.tls.write(data)
        return self.said()

    def goodbye(self) -> bytes:
        """:returns: the record that says it."""
        with contextlib.suppress(ssl.SSLError):
            self.tls.unwrap()
        return self.said()


class Case(SynchronousTestCase):
    """Our side, with an agent at the other end of no socket at all."""

    def setUp(self) -> None:
        self.authority = Authority.load_or_make(directory(self), time.time)
        self.side = ServerSide(lambda: self.authority.leaf(HOST))
        self.begin()

    def begin(self) -> None:
        """Our side anew."""
        self.inside, self.transport = Inside(), Sized()
        self.layer: TLSLayer = self.side.wrap(self.inside)
        self.layer.makeConnection(self.transport)

    def shake(self, most: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3, size: int = 1 << 20) -> Agent:
        """:returns: an agent, after the handshake, whose bytes came in slices of this size."""
        agent = Agent(self.authority, most)
        for _ in range(3):
            agent.hear(self.written())
            self.come(agent.said(), size)
        agent.hear(self.written())
        self.assertTrue(self.inside.shaken)
        return agent

    def come(self, data: bytes, size: int = 1 << 20) -> None:
        """Encrypted bytes come from the transport."""
        for start in range(0, len(data), size):
            self.layer.dataReceived(data[start : start + size])

    def written(self) -> bytes:
        """:returns: what was sent since the last time."""
        data: bytes = self.transport.value()
        self.transport.clear()
        return data

    def lost(self) -> type[BaseException]:
        """:returns: how the connection of the protocol inside ended, now that the transport's has."""
        self.assertIsNone(self.inside.lost)
        self.layer.connectionLost(connectionDone)
        lost: Failure | None = self.inside.lost
        assert lost is not None and lost.value is not None
        return type(lost.value)


class BytesTests(Case):
    """What is said on one side comes out on the other."""

    def test_a_byte_at_a_time(self) -> None:
        for most in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            self.begin()
            agent = self.shake(most, size=1)
            self.come(agent.encrypted(b"hello"), size=1)
            self.assertEqual(self.inside.pieces, [b"hello"])
            for byte in b"good day":
                self.layer.write(bytes([byte]))
            agent.hear(self.written())
            self.assertEqual(agent.got, b"good day")

    @settings(deadline=None, max_examples=30)
    @given(st.lists(st.binary(max_size=40_000), max_size=5), st.integers(1, 50_000))
    def test_any_slicing_of_any_records(self, messages: list[bytes], size: int) -> None:
        self.begin()
        agent = self.shake()
        self.come(b"".join(agent.encrypted(message) for message in messages if message), size)
        for message in messages:
            self.layer.write(message)
        agent.hear(self.written())
        self.assertEqual((self.inside.got, agent.got), (b"".join(messages), b"".join(messages)))

    def test_records_that_come_together_are_given_together(self) -> None:
        agent = self.shake()
        self.come(agent.encrypted(b"one ") + agent.encrypted(b"two ") + agent.encrypted(b"three")[:-1])
        self.assertEqual(self.inside.pieces, [b"one two "])

    def test_what_is_written_is_sent_at_once(self) -> None:
        agent = self.shake()
        self.layer.write(b"now")
        agent.hear(self.written())
        self.assertEqual(agent.got, b"now")

    def test_much_is_encrypted_piece_by_piece(self) -> None:
        agent, body = self.shake(), bytes(range(256)) * 40_000
        self.transport.sizes.clear()
        self.layer.write(body)
        self.assertLess(max(self.transport.sizes), PIECE * 1.01)
        agent.hear(self.written())
        self.assertEqual(agent.got, body)

    def test_nothing_is_sent_before_the_handshake_is_over(self) -> None:
        self.layer.write(b"too early")
        self.assertEqual(self.written(), b"")

    def test_flow_control_is_the_transports(self) -> None:
        self.shake()
        heard: list[bool] = []
        self.layer.registerProducer(FlowSignal(heard.append), True)
        assert self.transport.producer is not None
        self.transport.producer.pauseProducing()
        self.transport.producer.resumeProducing()
        self.assertEqual(heard, [True, False])
        self.layer.unregisterProducer()
        self.assertIsNone(self.transport.producer)
        self.layer.pauseProducing()
        self.assertEqual(self.transport.producerState, "paused")
        self.layer.resumeProducing()
        self.assertEqual(self.transport.producerState, "producing")


class EndTests(Case):
    """How connections end."""

    def test_the_agent_says_goodbye(self) -> None:
        agent = self.shake()
        self.come(agent.encrypted(b"last words") + agent.goodbye())
        self.assertEqual(self.inside.got, b"last words")
        self.assertTrue(self.transport.disconnecting)
        agent.hear(self.written())
        self.assertTrue(agent.parted, "we said it too")
        self.layer.write(b"too late")
        self.assertEqual(self.written(), b"")
        self.assertIs(self.lost(), ConnectionDone)

    def test_an_end_without_goodbye_may_be_anybodys_doing(self) -> None:
        for more in (b"", b"half"):
            self.begin()
            agent = self.shake()
            self.come(agent.encrypted(b"whole"))
            self.come(agent.encrypted(more)[:-1] if more else b"")
            self.assertIs(self.lost(), ConnectionLost)
            self.assertEqual(self.inside.got, b"whole")

    def test_we_say_goodbye_and_wait_for_theirs(self) -> None:
        agent = self.shake()
        self.layer.write(b"last words")
        self.layer.loseConnection()
        self.layer.loseConnection()
        agent.hear(self.written())
        self.assertEqual((agent.got, agent.parted), (b"last words", True))
        self.assertFalse(self.transport.disconnecting)
        self.come(agent.encrypted(b"one more thing"))
        self.assertEqual(self.inside.got, b"")
        self.come(agent.goodbye())
        self.assertTrue(self.transport.disconnecting)
        self.assertIs(self.lost(), ConnectionDone)

    def test_goodbye_before_the_handshake_is_over(self) -> None:
        self.layer.loseConnection()
        self.assertTrue(self.transport.disconnecting)
        self.assertEqual(self.written(), b"")

    def test_nothing_is_said_by_a_connection_that_is_aborted(self) -> None:
        self.shake()
        self.layer.abortConnection()
        self.layer.write(b"more")
        self.layer.loseConnection()
        self.assertEqual(self.written(), b"")
        self.assertTrue(self.transport.disconnected)

    def test_an_agent_that_leaves_during_the_handshake(self) -> None:
        self.come(Agent(self.authority).said())
        self.assertIs(self.lost(), ConnectionLost)
        self.assertFalse(self.inside.shaken)


class AttackTests(Case):
    """What is no TLS, or not as we want it."""

    def assert_refused(self, got: bytes = b"", told: bool = True) -> None:
        """The connection ends, and the other side is told why if it speaks TLS at all."""
        self.assertTrue(self.transport.disconnecting)
        self.assertEqual(self.written() != b"", told)
        self.come(b"anything more")
        self.assertEqual(self.inside.got, got)
        self.assertTrue(issubclass(self.lost(), ssl.SSLError))

    def test_what_is_no_tls(self) -> None:
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, b"\x16\x03\x01\x00\x05hello"):
            self.begin()
            self.come(data)
            self.assert_refused(told=data[:1] == bytes((HANDSHAKE,)))

    def test_a_record_that_was_changed(self) -> None:
        agent = self.shake()
        good, bad = agent.encrypted(b"good"), bytearray(agent.encrypted(b"changed"))
        bad[-1] ^= 1
        self.come(good + bytes(bad))
        self.assert_refused(b"good")

    def test_a_record_that_is_repeated(self) -> None:
        agent = self.shake()
        record = agent.encrypted(b"pay")
        self.come(record + record)
        self.assert_refused(b"pay")

    def test_a_record_that_is_too_long(self) -> None:
        self.shake()
        self.come(bytes((DATA, 3, 3)) + (20_000).to_bytes(2, "big") + bytes(20_000))
        self.assert_refused()

    def test_bytes_that_are_not_encrypted(self) -> None:
        self.shake()
        self.come(bytes((DATA, 3, 3, 0, 5)) + b"plain")
        self.assert_refused()

    def test_a_handshake_message_that_never_ends(self) -> None:
        self.come(bytes((HANDSHAKE, 3, 1, 64, 0, 1, 255, 255, 255)) + bytes(16_380))
        self.assert_refused()

    def test_a_name_that_is_none(self) -> None:
        """The standard library takes names of ASCII only, and says so on standard error."""
        complaints: list[object] = []
        self.patch(sys, "unraisablehook", complaints.append)
        context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        agent = SSL.Connection(context, None)
        agent.set_tlsext_host_name(b"api\xff.example.com")
        agent.set_connect_state()
        self._talk(agent)
        self.assertFalse(self.inside.shaken)
        self.assertEqual(len(complaints), 1)
        self.assertTrue(issubclass(self.lost(), ssl.SSLError))

    def test_a_second_handshake_is_refused(self) -> None:
        """Renegotiation, which TLS 1.3 does not have any more."""
        context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        context.set_max_proto_version(SSL.TLS1_2_VERSION)
        store = context.get_cert_store()
        assert store is not None
        store.add_cert(X509.from_cryptography(x509.load_pem_x509_certificate(self.authority.certificate_pem)))
        agent = SSL.Connection(context, None)
        agent.set_tlsext_host_name(HOST.encode())
        agent.set_connect_state()
        self.assertEqual(self._talk(agent), "")
        self.assertTrue(self.inside.shaken)
        self.assertTrue(agent.renegotiate())
        self.assertIn("no renegotiation", self._talk(agent))
        self.assertEqual(self.inside.got, b"")

    def _talk(self, agent: SSL.Connection) -> str:
        """:returns: why there is no handshake; empty if there is one."""
        for _ in range(4):
            try:
                agent.do_handshake()
            except SSL.WantReadError:
                pass
            except SSL.Error as e:
                return str(e)
            with contextlib.suppress(SSL.WantReadError):
                self.come(agent.bio_read(65536))
            if data := self.written():
                agent.bio_write(data)
        return ""
