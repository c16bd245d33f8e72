"""Tests for streams that the other host's key protects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from twisted.internet.protocol import Protocol, connectionDone
from twisted.internet.task import Clock
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.signing import SigningKey
from ironcurtain.fleet.carried import OF_A_HOST, PROOF_SECONDS, UNPROVED, Streams
from ironcurtain.fleet.frames import Frame, Kind, decode
from ironcurtain.fleet.sealed import Sealing, peer_key
from ironcurtain.fleet.trust import Host, Trust
from tests.audit.doubles import scratch


def first_data(change: Any) -> Any:
    """:returns: a function that changes the first data that passes, and nothing else."""
    left = [True]

    def changed(message: Any) -> Any:
        return change(message) if decode(message).kind is Kind.DATA and left and left.pop() else message

    return changed


class Post:
    """Carries messages between hosts of this process, in order. Each can be changed or lost on its way."""

    def __init__(self) -> None:
        self.members: dict[str, Streams] = {}
        self.waiting: list[tuple[str, bytes]] = []
        self.seen: list[bytes] = []

    def publish(self, subject: str, data: bytes) -> None:
        self.waiting.append((subject, data))

    def deliver(self, change: Callable[[bytes], bytes | None] = lambda data: data) -> None:
        while self.waiting:
            subject, data = self.waiting.pop(0)
            changed = change(data)
            self.seen.append(data)
            if changed is not None:
                self.members[subject.split(".")[2]].heard(subject, changed)


class Peer(Protocol):
    def __init__(self, proved: Callable[[], None] = lambda: None) -> None:
        self.got, self.over, self._proved = b"", "", proved
        self.key: bytes | None = None

    def dataReceived(self, data: bytes) -> None:
        self.got += data
        self._proved()
        self.key = peer_key(self.transport)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.over = reason.getErrorMessage()


class StreamTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.post, self.clock = Post(), Clock()
        self.accepted: list[Peer] = []
        self.keys = {name: SigningKey.load_or_make(scratch(self)) for name in ("laptop", "build", "other")}
        self.hosts = {name: Host(name, key.public.raw, {}) for name, key in self.keys.items()}
        self.believed = Trust({"laptop": self.hosts["laptop"]})
        self.sealing = {name: Sealing(name, key, lambda: self.believed) for name, key in self.keys.items()}
        for name in self.keys:
            self.post.members[name] = Streams(self.post, name, partial(self.accept, name), self.clock)

    def accept(self, name: str, host: str, proved: Callable[[], None]) -> TLSMemoryBIOProtocol | None:
        peer = Peer(proved)
        tls = self.sealing[name].accepting(host, peer)
        if tls is not None:
            self.accepted.append(peer)
        return tls

    def open(self, here: Any = "laptop", there: Any = "build", believed: Any = "build") -> Any:
        peer = Peer()
        self.post.members[here].open(there, self.sealing[here].towards(self.hosts[believed], peer))
        return peer

    def test_both_sides_know_each_other_by_key(self) -> None:
        peer = self.open()
        peer.transport.write(b"a secret question")
        self.post.deliver()
        (other,) = self.accepted
        assert other.transport is not None
        other.transport.write(b"an answer")
        self.post.deliver()
        self.assertEqual((peer.got, other.got), (b"an answer", b"a secret question"))
        self.assertEqual((peer.key, other.key), (self.keys["build"].public.raw, self.keys["laptop"].public.raw))
        self.assertNotIn(b"secret", b"".join(self.post.seen))
        peer.transport.loseConnection()
        self.post.deliver()
        self.assertTrue(other.over and peer.over)

    def test_nobody_else_is_believed(self) -> None:
        for here, there, believed in (("other", "build", "build"), ("laptop", "other", "build")):
            peer = self.open(here, there, believed)
            peer.transport.write(b"a secret question")
            self.post.deliver()
            self.assertEqual([other.got for other in self.accepted], [b""] * len(self.accepted))
            self.assertTrue(peer.over, (here, there))

    def test_much_data_arrives_whole(self) -> None:
        peer = self.open()
        sent = bytes(range(256)) * 20_000
        peer.transport.write(sent)
        self.post.deliver()
        self.assertEqual(self.accepted[0].got, sent)

    def test_a_changed_lost_or_repeated_message_ends_the_stream(self) -> None:
        def flip(data: Any) -> Any:
            return data[:-1] + bytes([data[-1] ^ 1])

        for what, change in (("changed", flip), ("lost", lambda data: None), ("twice", None)):
            peer = self.open()
            peer.transport.write(b"one")
            self.post.deliver()
            other = self.accepted[-1]
            other.got = b""
            peer.transport.write(b"two")
            if what == "twice":
                self.post.waiting *= 2
                self.post.deliver()
            else:
                self.post.deliver(first_data(change))
                peer.transport.write(b"three")
                self.post.deliver()
            self.assertIn(other.got, (b"", b"two"), what)
            self.assertTrue(peer.over and other.over, what)

    def test_host_is_believed_under_its_own_name_only(self) -> None:
        self.believed = Trust({name: self.hosts[name] for name in ("laptop", "other")})
        liar = self.post.members["laptop"] = Streams(self.post, "other", lambda host, proved: None, self.clock)
        peer = Peer()
        liar.open("build", self.sealing["laptop"].towards(self.hosts["build"], peer))
        self.post.members["other"] = liar
        peer.transport.write(b"a question")  # type: ignore[union-attr]
        self.post.deliver()
        self.assertEqual([other.got for other in self.accepted], [b""])
        self.assertTrue(peer.over and self.accepted[0].over)

    def flood(self, count: int, host: bytes = b"laptop") -> None:
        for number in range(count):
            self.post.members["build"].heard(f"x.build.{number}", Frame(Kind.OPEN, data=host).encode())

    def test_streams_that_nobody_proves_end_and_make_room(self) -> None:
        self.flood(10 * UNPROVED)
        self.assertEqual(len([peer for peer in self.accepted if not peer.over]), UNPROVED)
        peer = self.open()
        peer.transport.write(b"a question")
        self.post.deliver()
        self.assertEqual(self.accepted[-1].got, b"a question")
        self.clock.advance(PROOF_SECONDS)
        self.assertEqual([other.got for other in self.accepted if not other.over], [b"a question"])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_stream_of_an_unknown_host_costs_nothing(self) -> None:
        self.flood(10, b"unknown")
        self.assertEqual((self.accepted, self.clock.getDelayedCalls()), ([], []))

    def test_one_host_has_so_many_streams(self) -> None:
        for _ in range(OF_A_HOST):
            self.open().transport.write(b"1")
            self.post.deliver()
        peer = self.open()
        self.post.deliver()
        self.assertEqual(len([other for other in self.accepted if not other.over]), OF_A_HOST)
        self.assertTrue(peer.over)

    def test_streams_of_a_host_end_by_age(self) -> None:
        old = self.open()
        self.clock.advance(3)
        new = self.open()
        self.post.members["laptop"].lose("build", "it was started again", older=2)
        self.assertEqual((bool(old.over), bool(new.over)), (True, False))
