"""Peers that are no OpenSSH: silent ones, loud ones, and ones that do things in the wrong order."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from twisted.conch.ssh.common import NS
from twisted.conch.ssh.connection import (
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_OPEN_FAILURE,
    MSG_CHANNEL_WINDOW_ADJUST,
    MSG_GLOBAL_REQUEST,
    MSG_REQUEST_FAILURE,
)
from twisted.conch.ssh.userauth import MSG_USERAUTH_FAILURE, MSG_USERAUTH_PK_OK, MSG_USERAUTH_SUCCESS
from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound
from ironcurtain.home import Home
from ironcurtain.operations import Principal, Role
from ironcurtain.ssh import transport
from ironcurtain.ssh.authorized_keys import AuthorizedKey
from ironcurtain.ssh.channel import PIECES, Program, SessionChannel
from ironcurtain.ssh.connection import CHANNELS, Connection
from ironcurtain.ssh.connections import UNKNOWN, Connections
from ironcurtain.ssh.key_files import KeyFile, host_key
from ironcurtain.ssh.transport import Transport
from tests.audit.doubles import scratch
from tests.ssh.doubles import Bulk, Speaker, make_holder

PEER = IPv4Address("TCP", "127.0.0.1", 40000)


class Wire(StringTransport):
    """A TCP connection in memory."""

    aborted = False

    def abortConnection(self) -> None:
        """Remember it."""
        self.aborted = True


class Recorded(Transport):
    """A transport after its key exchange, whose packets are kept instead of encrypted."""

    def connectionMade(self) -> None:
        """Pretend that keys are there."""
        self.sent: list[tuple[int, bytes]] = []
        self.writes = 0
        super().connectionMade()
        self.sendKexInit()
        self._keyExchangeState = self._KEY_EXCHANGE_NONE
        self.sessionID = b"session"

    def send_packets(self, kind: int, payloads: Sequence[bytes]) -> None:
        """Keep them."""
        self.writes += 1
        self.sent += ((kind, payload) for payload in payloads)

    def kinds(self) -> list[int]:
        """:returns: what was sent since the last time."""
        sent, self.sent = self.sent, []
        return [kind for kind, _ in sent]


class Plain:
    """Programs of tests: commands ``speak`` and ``bulk``."""

    def __init__(self) -> None:
        self.speakers: list[Speaker] = []
        self.bulk: list[Bulk] = []

    async def open(self, who: Principal, command: bytes | None, channel: SessionChannel) -> Program:
        """Begin one."""
        if command == b"speak":
            self.speakers.append(Speaker(channel, who.name))
            return self.speakers[-1]
        if command == b"bulk":
            self.bulk.append(Bulk(channel, 100_000))
            return self.bulk[-1]
        raise NotFound("nothing like that")


class TransportTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        path = scratch(self)
        self.home = Home(path / "home", path / "run")
        self.home.path.mkdir(mode=0o700)
        self.ada = make_holder(path, "ada", [Role.ADMIN])
        self.keys = KeyFile.of(self.home)
        self.keys.add(self.ada.key)
        self.clock, self.programs = Clock(), Plain()
        self.factory = Connections(self.clock, host_key(self.home), self.keys, self.programs)
        self.factory.doStart()

    def connect(self, protocol: type[Transport] = Transport) -> tuple[Any, Wire]:
        self.factory.protocol = protocol
        made, wire = self.factory.buildProtocol(PEER), Wire(peerAddress=PEER)
        made.makeConnection(wire)
        return made, wire

    def login(self) -> tuple[Any, Wire]:
        """:returns: a connection of ada's."""
        made, wire = self.connect(Recorded)
        made.authenticated(self.ada.key)
        made.setService(Connection())
        made.kinds()
        return made, wire


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
        self.assertNotIn(b"gcm", wire.value())
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


class ConnectionTests(TransportTestCase):
    def open(self, made: Any, kind: bytes = b"session", window: int = 2**20, largest: int = 32768) -> list[int]:
        made.service.ssh_CHANNEL_OPEN(NS(kind) + struct.pack(">3L", 5, window, largest))
        return made.kinds()  # type: ignore[no-any-return]

    def run_it(self, made: Any, command: bytes, channel: int = 0) -> None:
        made.service.ssh_CHANNEL_REQUEST(struct.pack(">L", channel) + NS(b"exec") + b"\0" + NS(command))

    def test_only_so_many_sessions_and_nothing_else(self) -> None:
        made, _ = self.login()
        self.assertEqual(self.open(made, b"direct-tcpip"), [MSG_CHANNEL_OPEN_FAILURE])
        self.assertEqual(self.open(made, largest=0), [MSG_CHANNEL_OPEN_FAILURE])
        for _ in range(CHANNELS):
            self.assertNotIn(MSG_CHANNEL_OPEN_FAILURE, self.open(made))
        self.assertEqual(self.open(made), [MSG_CHANNEL_OPEN_FAILURE])

    def test_no_global_request_is_granted(self) -> None:
        made, _ = self.login()
        made.service.ssh_GLOBAL_REQUEST(NS(b"tcpip-forward") + b"\1" + NS(b"") + struct.pack(">L", 0))
        self.assertEqual(made.kinds(), [MSG_REQUEST_FAILURE])

    def test_a_peer_that_does_not_answer(self) -> None:
        made, wire = self.login()
        self.clock.advance(15)
        self.assertEqual(made.kinds(), [MSG_GLOBAL_REQUEST])
        made.service.ssh_REQUEST_FAILURE(b"")
        for _ in range(3):
            self.clock.advance(15)
        self.assertFalse(wire.disconnecting)
        self.clock.advance(15)
        self.assertTrue(wire.disconnecting)

    def test_new_keys_from_time_to_time(self) -> None:
        made, _ = self.login()
        made._timers["rekey"].reset(1)
        self.clock.advance(1)
        self.assertEqual(made._keyExchangeState, made._KEY_EXCHANGE_REQUESTED)
        self.assertTrue(made.blocked)

    def test_no_more_than_the_window_is_sent(self) -> None:
        made, _ = self.login()
        self.open(made, window=100_000)
        self.run_it(made, b"bulk")
        (bulk,) = self.programs.bulk
        self.assertEqual(self.sizes(made), 100_000)
        made.service.ssh_CHANNEL_WINDOW_ADJUST(struct.pack(">2L", 0, 32768))
        self.assertEqual(self.sizes(made), 32768)
        self.assertLess(bulk.channel._queued, 40_000)

    def test_a_few_packets_are_sent_with_one_write(self) -> None:
        made, _ = self.login()
        self.open(made, largest=4096)
        self.run_it(made, b"speak")
        (speaker,) = self.programs.speakers
        before = made.writes
        made.kinds()
        speaker.channel.write(b"x" * 4096 * (2 * PIECES - 1))
        self.assertEqual(made.kinds(), [MSG_CHANNEL_DATA] * (2 * PIECES - 1))
        self.assertEqual(made.writes - before, 2)

    def test_a_full_tcp_buffer_stops_everything(self) -> None:
        made, _ = self.login()
        made.pauseProducing()
        self.open(made)
        self.run_it(made, b"bulk")
        self.assertEqual(self.sizes(made), 0)
        made.resumeProducing()
        self.assertEqual(self.sizes(made), 2**20)

    def test_a_program_that_does_not_stop_is_ended(self) -> None:
        made, _ = self.login()
        self.open(made, window=0)
        self.run_it(made, b"speak")
        (speaker,) = self.programs.speakers
        speaker.channel.write(b"x" * (5 * 1024 * 1024))
        self.assertTrue(speaker.was_lost)
        self.assertLess(speaker.channel._queued, 1000)

    def test_a_program_that_holds_gets_no_more_than_the_window(self) -> None:
        made, _ = self.login()
        self.open(made)
        self.run_it(made, b"speak")
        (speaker,) = self.programs.speakers
        speaker.channel.hold(True)
        made.kinds()
        for _ in range(2):
            made.service.ssh_CHANNEL_DATA(struct.pack(">L", 0) + NS(b"x" * 30_000))
        self.assertNotIn(MSG_CHANNEL_WINDOW_ADJUST, made.kinds())
        speaker.channel.hold(False)
        self.assertEqual(made.kinds(), [MSG_CHANNEL_WINDOW_ADJUST])
        self.assertEqual(speaker.channel.localWindowLeft, 65536)

    def test_what_comes_before_the_program_is_bounded(self) -> None:
        made, _ = self.login()
        self.open(made)
        for _ in range(3):
            made.service.ssh_CHANNEL_DATA(struct.pack(">L", 0) + NS(b"x" * 30_000))
        self.assertNotIn(MSG_CHANNEL_WINDOW_ADJUST, made.kinds())
        self.assertTrue(made.service.channels[0].localClosed)

    def test_requests_that_cannot_be_read(self) -> None:
        made, _ = self.login()
        self.open(made)
        for name in (b"pty-req", b"window-change", b"env", b"exec", b"\xff", b"subsystem", b"x11-req", b"signal"):
            made.service.ssh_CHANNEL_REQUEST(struct.pack(">L", 0) + NS(name) + b"\0" + b"\0\0")
        self.assertEqual(self.programs.speakers, [])

    def test_sizes_that_no_terminal_has(self) -> None:
        made, _ = self.login()
        self.open(made)
        for columns, rows, wanted in ((0, 0, (80, 24)), (65535, 65535, (1000, 500)), (132, 43, (132, 43))):
            request = NS(b"xterm") + struct.pack(">4L", columns, rows, 0, 0) + NS(b"")
            made.service.ssh_CHANNEL_REQUEST(struct.pack(">L", 0) + NS(b"pty-req") + b"\0" + request)
            self.assertEqual(made.service.channels[0].size(), wanted)

    def test_only_the_colours_of_the_environment(self) -> None:
        made, _ = self.login()
        self.open(made)
        channel = made.service.channels[0]
        for name, value, wanted in (
            (b"LD_PRELOAD", b"x", 0),
            (b"COLORTERM", b"$(x)", 0),
            (b"LANG", b"C", 0),
            (b"COLORTERM", b"truecolor", 1),
        ):
            self.assertEqual(channel.requestReceived(b"env", NS(name) + NS(value)), wanted)
        self.assertEqual(dict(channel.environ), {"COLORTERM": "truecolor"})

    def sizes(self, made: Any) -> int:
        """:returns: bytes of data that were sent since the last time."""
        sent, made.sent = made.sent, []
        return sum(len(payload) - 8 for kind, payload in sent if kind == MSG_CHANNEL_DATA)
