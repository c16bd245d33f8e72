"""
Whoever has the server, or all permissions there: they see every message, and publish, repeat and drop what they like.

They have no key that anybody trusts. Whatever they publish decides nothing, shows no argument, and is bounded.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import struct
from collections.abc import Awaitable, Callable
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from OpenSSL import SSL
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from ironcurtain.fleet.carried import UNPROVED
from ironcurtain.fleet.frames import PIECE, WINDOW, Frame, Kind, decode
from tests.audit.doubles import scratch
from tests.fleet.doubles import SECRET, Victim, http

STREAM = "e" * 32
"""A stream of the liar's."""

DECISION = http("POST", "/v1/escalations/{n}", "local:ada", {"decision": "approved", "digest": "{d}"})

Attack = Callable[["Liar"], Awaitable[None]]


class Liar:
    """
    Somebody between the hosts.

    :ivar shown: what it could read.
    """

    def __init__(self, victim: Victim) -> None:
        self.victim, self.shown = victim, b""
        self.heard: list[tuple[str, Frame]] = []
        victim.post.others["laptop"] = lambda subject, data: self.heard.append((subject[-32:], decode(data)))
        self.question: Any = None
        self._stream = 0

    def send(self, *frames: Frame, stream: str = STREAM) -> None:
        """Publish frames to the victim."""
        for frame in frames:
            self.victim.say(frame.encode(), stream)

    def decide(self) -> bytes:
        """:returns: the approval as a member would send it, from its first line."""
        return b"control daemon\n" + self.victim.fill(DECISION, self.question)

    async def turn(self) -> None:
        """Let the messages pass."""
        await deferLater(reactor, 0.005)

    async def tls(self, prepare: Callable[[SSL.Context], None], host: bytes = b"laptop") -> None:
        """Open a stream as a host, speak TLS with what it has, and send an approval."""
        context = SSL.Context(SSL.TLS_CLIENT_METHOD)
        prepare(context)
        connection = SSL.Connection(context, None)
        connection.set_connect_state()
        self._stream += 1
        stream, sent = f"{self._stream:032d}", 0
        self.send(Frame(Kind.OPEN, data=host), stream=stream)
        decided = False
        for _ in range(6):
            with contextlib.suppress(SSL.Error):
                connection.do_handshake()
                if not decided:
                    connection.send(self.decide())
                decided = True
            with contextlib.suppress(SSL.Error):
                while data := connection.bio_read(PIECE):
                    self.send(Frame(Kind.DATA, sent, data), stream=stream)
                    sent += len(data)
            await self.turn()
            for there, frame in self.heard:
                if there == stream and frame.kind is Kind.DATA:
                    connection.bio_write(frame.data)
            self.heard = []
            with contextlib.suppress(SSL.Error):
                self.shown += connection.recv(65536)

    def certify(self, context: SSL.Context, name: str, key: str) -> None:
        """Show a certificate for a name, of somebody's own key."""
        made = self.victim.keys[key]
        context.use_certificate(made.certify(builder(name)))
        context.use_privatekey(made.for_tls())


def builder(name: str) -> x509.CertificateBuilder:
    """:returns: a certificate for a name, without a key yet, as members make theirs."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).serial_number(1)
    return made.not_valid_before(datetime.datetime(2000, 1, 1)).not_valid_after(datetime.datetime(9999, 12, 31))


def plain(*frames: Frame) -> Attack:
    """:returns: an attack that publishes frames of a stream that is open."""

    async def attack(liar: Liar) -> None:
        liar.send(Frame(Kind.OPEN, data=b"laptop"), *frames)

    return attack


def opened(name: bytes) -> Attack:
    """:returns: an attack that opens a stream by this name, and approves."""

    async def attack(liar: Liar) -> None:
        liar.send(Frame(Kind.OPEN, data=name), Frame(Kind.DATA, 0, liar.decide()))

    return attack


def raw(*messages: bytes) -> Attack:
    """:returns: an attack that publishes bytes."""

    async def attack(liar: Liar) -> None:
        for message in messages:
            liar.victim.say(message, STREAM)

    return attack


def sealed(prepare: Callable[[Liar, SSL.Context], None], host: bytes = b"laptop") -> Attack:
    """:returns: an attack that speaks TLS."""
    return lambda liar: liar.tls(lambda context: prepare(liar, context), host)


def old_protocol(liar: Liar, context: SSL.Context) -> None:
    """The right name, and a protocol that is too old."""
    liar.certify(context, "laptop", "stranger")
    context.set_max_proto_version(SSL.TLS1_2_VERSION)


def other_kind(liar: Liar, context: SSL.Context) -> None:
    """A key of another kind."""
    key = rsa.generate_private_key(65537, 2048)
    context.use_certificate(builder("laptop").public_key(key.public_key()).sign(key, hashes.SHA256()))
    context.use_privatekey(key)


def borrowed(liar: Liar, context: SSL.Context) -> None:
    """Its own certificate, and the right one, which the victim has seen, as its issuer."""
    liar.certify(context, "laptop", "stranger")
    right = liar.victim.keys["laptop"].certify(builder("laptop"))
    context.add_extra_chain_cert(right)


async def session_again(liar: Liar, stream: str = STREAM) -> None:
    """An approval's whole stream, recorded while it was on its way, once more."""
    begin = len(liar.victim.post.seen)
    asked = liar.victim.open("laptop", "control daemon")
    asked.transport.write(http("GET", "/v1/escalations", "local:ada").replace(b"{l}", b"0"))
    await asked.closed
    for subject, data in liar.victim.post.seen[begin:]:
        if subject.startswith("ironcurtain.stream.build."):
            liar.victim.say(data, stream or subject[-32:])


async def words_of_the_victim(liar: Liar) -> None:
    """What the victim itself has sent."""
    for subject, data in list(liar.victim.post.seen):
        if not subject.startswith("ironcurtain.stream.build."):
            liar.victim.say(data, subject[-32:])
            liar.victim.say(data, STREAM)


async def flood_of_streams(liar: Liar) -> None:
    for number in range(20 * UNPROVED):
        liar.send(Frame(Kind.OPEN, data=b"laptop"), stream=f"{number:032d}")


async def flood_of_strangers(liar: Liar) -> None:
    for number in range(1000):
        liar.send(Frame(Kind.OPEN, data=b"host-%d" % number), stream=f"{number:032d}")


async def long_subjects(liar: Liar) -> None:
    for stream in ("", "x" * 4000, "a.b.c", "\u202e", "*", ">"):
        liar.send(Frame(Kind.OPEN, data=b"laptop"), stream=stream)


HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)
"""The beginning of a ClientHello that goes wrong."""

ATTACKS: dict[str, Attack] = {
    "approval without TLS": opened(b"laptop"),
    "approval by a host that is not trusted": opened(b"stranger"),
    "approval by the victim itself": opened(b"build"),
    "approval by a host without a name": opened(b""),
    "approval by a name that is a path": opened(b"../laptop"),
    "approval by a name with an end of line": opened(b"laptop\n"),
    "approval by a name in another case": opened(b"LAPTOP"),
    "approval by a name that is no text": opened(b"\xff\xfe\x00"),
    "approval by a name of full length": opened(b"a" * PIECE),
    "approval without opening": lambda liar: raw(Frame(Kind.DATA, 0, liar.decide()).encode())(liar),
    "TLS without a certificate": sealed(lambda liar, context: None),
    "TLS with a key of somebody else": sealed(lambda liar, context: liar.certify(context, "laptop", "stranger")),
    "TLS of a member by another member's name": sealed(lambda liar, context: liar.certify(context, "laptop", "evil")),
    "TLS of a member whose name is not its own": sealed(
        lambda liar, context: liar.certify(context, "evil", "stranger"), b"evil"
    ),
    "TLS of an old version": sealed(old_protocol),
    "TLS with another kind of key": sealed(other_kind),
    "TLS with the right certificate as issuer": sealed(borrowed),
    "TLS cut off": plain(Frame(Kind.DATA, 0, HELLO), Frame(Kind.END, len(HELLO))),
    "TLS of random bytes": plain(Frame(Kind.DATA, 0, os.urandom(2000))),
    "TLS alert first": plain(Frame(Kind.DATA, 0, b"\x15\x03\x03\x00\x02\x02\x28")),
    "TLS record of 64 KiB": plain(Frame(Kind.DATA, 0, b"\x16\x03\x03\xff\xff" + bytes(20_000))),
    "TLS record without content, many": plain(Frame(Kind.DATA, 0, b"\x16\x03\x03\x00\x00" * 5000)),
    "a stream once more": session_again,
    "a stream once more, by its own number": lambda liar: session_again(liar, ""),
    "what the victim has said": words_of_the_victim,
    "message without content": raw(b""),
    "message cut off": raw(b"\x01\x00\x00"),
    "message of a kind that does not exist": raw(struct.pack("!BQ", 0, 0), struct.pack("!BQ", 255, 0)),
    "message of a megabyte": raw(b"\x01" + bytes(1024 * 1024)),
    "data without data": plain(*[Frame(Kind.DATA, 0, b"")] * 100),
    "data beyond the window": plain(*(Frame(Kind.DATA, at, bytes(PIECE)) for at in range(0, 3 * WINDOW, PIECE))),
    "data out of order": plain(Frame(Kind.DATA, 100, b"x"), Frame(Kind.DATA, 0, HELLO)),
    "data at the end of all numbers": plain(Frame(Kind.DATA, 2**64 - 1, b"x")),
    "more taken than was sent": plain(Frame(Kind.TAKEN, 2**64 - 1)),
    "less taken than before": plain(Frame(Kind.TAKEN, 1), Frame(Kind.TAKEN, 0)),
    "two ends": plain(Frame(Kind.END), Frame(Kind.END)),
    "a stream opened twice": plain(Frame(Kind.OPEN, data=b"laptop"), Frame(Kind.OPEN, data=b"evil")),
    "reset of a stream that is none": raw(Frame(Kind.RESET).encode()),
    "streams without end": flood_of_streams,
    "streams of strangers without end": flood_of_strangers,
    "streams with odd names": long_subjects,
}


class LyingCarrierTests(TestCase):
    async def setUp(self) -> None:  # type: ignore[override]
        self.victim = Victim(scratch(self))
        await self.victim.start()
        self.addCleanup(lambda: Deferred.fromCoroutine(self.victim.stop()))
        self.liar = Liar(self.victim)
        self.liar.question = self.victim.ask()

    async def test_messages_of_whoever_has_the_server_are_refused(self) -> None:
        for what, attack in ATTACKS.items():
            await attack(self.liar)
            await self.liar.turn()
            (waiting,) = self.victim.session.escalations.pending()
            self.assertEqual((waiting.outcome, waiting.approved_by), (None, ()), what)
            answer = await self.victim.request("laptop", http("GET", "/v1/escalations", "local:ada"))
            self.assertIn(SECRET.encode(), answer, what)
        self.assertEqual(self.liar.shown, b"")
        self.assertNotIn(SECRET.encode(), b"".join(data for _, data in self.victim.post.seen))

    async def test_who_has_the_key_of_a_member_is_believed(self) -> None:
        """So the attacks fail by their keys, and not since they would never arrive."""
        await self.liar.tls(lambda context: self.liar.certify(context, "laptop", "laptop"))
        self.assertEqual(self.victim.session.escalations.pending(), [])
        self.assertIn(b"local:ada@laptop", self.liar.shown)
