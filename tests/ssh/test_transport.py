"""Peers that are no OpenSSH: silent ones, loud ones, and ones that do things in the wrong order."""

from __future__ import annotations

import hashlib
import struct

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from twisted.conch.ssh.common import NS
from twisted.conch.ssh.userauth import MSG_USERAUTH_FAILURE, MSG_USERAUTH_PK_OK, MSG_USERAUTH_SUCCESS

from ironcurtain.operations import Role
from ironcurtain.ssh import transport
from ironcurtain.ssh.authorized_keys import AuthorizedKey
from ironcurtain.ssh.service import UNKNOWN
from tests.audit.doubles import scratch
from tests.ssh.doubles import make_holder
from tests.ssh.transports import Recorded, TransportTestCase


class LoginTimeTests(TransportTestCase):
    def test_a_silent_peer_is_cut_off(self) -> None:
        _, wire = self.connect()
        self.clock.advance(29.9)
        self.assertFalse(wire.disconnecting)
        self.clock.advance(0.1)
        self.assertTrue(wire.disconnecting)
        self.assertIsNone(wire.producer)
        self.clock.advance(transport.ABORT_SECONDS)
        self.assertTrue(wire.aborted)

    def test_a_login_ends_the_time_for_it(self) -> None:
        _, wire = self.login()
        self.clock.advance(14)
        self.assertFalse(wire.disconnecting)

    def test_somebody_who_never_logs_in_keeps_nobody_out(self) -> None:
        wires = [self.connect()[1] for _ in range(UNKNOWN)]
        self.assertFalse(any(wire.disconnecting for wire in wires))
        _, newest = self.connect()
        self.assertEqual([wire.disconnecting for wire in wires], [True] + [False] * (UNKNOWN - 1))
        self.assertFalse(newest.disconnecting)

    def test_nothing_is_left_behind(self) -> None:
        made, _ = self.login()
        made.connectionLost(None)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.successResultOf(made.gone)


class OrderTests(TransportTestCase):
    def packet(self, kind: int, payload: bytes = b"") -> bytes:
        body = bytes((kind,)) + payload
        padding = 8 - (5 + len(body)) % 8 + 8
        return struct.pack(">LB", 1 + len(body) + padding, padding) + body + b"\0" * padding

    def kexinit(self, algorithms: bytes = b"curve25519-sha256") -> bytes:
        names = [algorithms, b"ssh-ed25519", *[b"aes256-ctr"] * 2, *[b"hmac-sha2-256"] * 2, *[b"none"] * 2, b"", b""]
        return self.packet(20, b"\0" * 16 + b"".join(NS(name) for name in names) + b"\0" * 5)

    def refused(self, *packets: bytes) -> bool:
        made, wire = self.connect()
        made.dataReceived(b"SSH-2.0-test\r\n" + b"".join(packets))
        return wire.disconnecting or wire.aborted

    def test_the_order_of_a_key_exchange(self) -> None:
        service = self.packet(5, NS(b"ssh-userauth"))
        strict = self.kexinit(b"curve25519-sha256," + transport.STRICT_CLIENT)
        ignore = self.packet(2, NS(b""))
        self.assertFalse(self.refused(self.kexinit()))
        self.assertFalse(self.refused(self.kexinit(), ignore))
        self.assertFalse(self.refused(strict))
        for packets in (
            [service],
            [self.kexinit(), service],
            [self.kexinit(), self.kexinit()],
            [self.packet(21)],
            [self.kexinit(), self.packet(21)],
            [ignore, strict],
            [strict, ignore],
            [self.kexinit(transport.STRICT_SERVER)],
            [self.kexinit(b"diffie-hellman-group14-sha1")],
            [self.packet(90, NS(b"session"))],
            [self.packet(20, b"short")],
        ):
            self.assertTrue(self.refused(*packets), packets)
        self.flushLoggedErrors()

    def test_a_client_that_waits_for_our_algorithms(self) -> None:
        made, wire = self.connect()
        made.dataReceived(b"SSH-2.0-test\r\n")
        self.assertNotIn(b"aes256-", wire.value())
        self.clock.advance(transport.OFFER_SECONDS)
        self.assertEqual(wire.value().count(b"aes256-ctr"), 2)
        made.dataReceived(self.kexinit())
        self.assertEqual(wire.value().count(b"aes256-ctr"), 2)
        self.assertFalse(wire.disconnecting or wire.aborted)

    def test_much_before_the_login_is_not_kept(self) -> None:
        made, wire = self.connect()
        made.dataReceived(b"SSH-2.0-test\r\n" + struct.pack(">LB", 1_000_000, 8) + b"x" * 70_000)
        self.assertTrue(wire.disconnecting)

    def test_a_key_exchange_that_does_not_end(self) -> None:
        made, wire = self.login()
        made._rekey()
        self.clock.advance(transport.EXCHANGE_SECONDS)
        self.assertTrue(wire.disconnecting)


class AuthenticationTests(TransportTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.transport, self.wire = self.connect(Recorded)
        self.transport.ssh_SERVICE_REQUEST(NS(b"ssh-userauth"))
        self.transport.kinds()

    def ask(
        self, algorithm: bytes, blob: bytes, signature: bytes | None = None, service: bytes = b"ssh-connection"
    ) -> list[int]:
        """:returns: the kinds of packets that answer a key."""
        flag = b"\0" if signature is None else b"\1"
        request = NS(b"anybody") + NS(service) + NS(b"publickey") + flag + NS(algorithm) + NS(blob)
        self.transport.service.ssh_USERAUTH_REQUEST(request + (b"" if signature is None else NS(signature)))
        return self.transport.kinds()  # type: ignore[no-any-return]

    def message(self, algorithm: bytes, blob: bytes) -> bytes:
        return (
            NS(b"session")
            + b"\x32"
            + NS(b"anybody")
            + NS(b"ssh-connection")
            + NS(b"publickey")
            + b"\1"
            + NS(algorithm)
            + NS(blob)
        )

    def test_only_listed_keys_are_worth_a_signature(self) -> None:
        listed, other = self.ada.key.blob, make_holder(scratch(self), "eve").key.blob
        self.assertEqual(self.ask(b"ssh-ed25519", listed), [MSG_USERAUTH_PK_OK])
        self.assertEqual(self.ask(b"ssh-ed25519", other), [MSG_USERAUTH_FAILURE])
        self.assertEqual(self.ask(b"rsa-sha2-512", listed), [MSG_USERAUTH_FAILURE])
        self.assertEqual(self.ask(b"ssh-ed25519", listed, service=b"ssh-userauth"), [MSG_USERAUTH_FAILURE])
        self.assertEqual(self.ask(b"ssh-ed25519", b"-----BEGIN OPENSSH PRIVATE KEY-----"), [MSG_USERAUTH_FAILURE])

    def test_wrong_signatures(self) -> None:
        blob = self.ada.key.blob
        for signature in (b"", NS(b"ssh-ed25519"), NS(b"ssh-ed25519") + NS(b"x" * 64), b"x" * 40):
            try:
                answer = self.ask(b"ssh-ed25519", blob, signature)
            except struct.error:
                answer = [MSG_USERAUTH_FAILURE]
            self.assertNotIn(MSG_USERAUTH_SUCCESS, answer)
        self.assertIsNone(self.transport.key)
        self.flushLoggedErrors()

    def test_the_seventh_failure_ends_the_connection(self) -> None:
        for _ in range(6):
            self.ask(b"ssh-ed25519", b"unknown")
        self.assertFalse(self.wire.disconnecting)
        self.ask(b"ssh-ed25519", b"unknown")
        self.assertTrue(self.wire.disconnecting)

    def test_a_security_key_has_to_be_touched(self) -> None:
        kind, made = b"sk-ssh-ed25519@openssh.com", Ed25519PrivateKey.generate()
        blob = NS(kind) + NS(made.public_key().public_bytes_raw()) + NS(b"ssh:")
        self.keys.add(AuthorizedKey("token", frozenset({Role.VIEW}), kind.decode(), blob))
        digest = hashlib.sha256(self.message(kind, blob)).digest()
        for flags, wanted in ((b"\0", MSG_USERAUTH_FAILURE), (b"\1", MSG_USERAUTH_SUCCESS)):
            extra = flags + b"\0\0\0\7"
            signature = made.sign(hashlib.sha256(b"ssh:").digest() + extra + digest)
            self.assertEqual(self.ask(kind, blob, NS(kind) + NS(signature) + extra), [wanted])
        self.assertEqual(self.transport.key.name, "token")
