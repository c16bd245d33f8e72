"""Tests for streams that the other host's key protects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from twisted.internet.protocol import Protocol, connectionDone
from twisted.protocols.tls import TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.signing import SigningKey
from ironcurtain.fleet.carried import Streams
from ironcurtain.fleet.frames import Kind, decode
from ironcurtain.fleet.sealed import Sealing, peer_key
from ironcurtain.fleet.trust import Host, Trust


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
    def __init__(self) -> None:
        self.got, self.over = b"", ""
        self.key: bytes | None = None

    def dataReceived(self, data: bytes) -> None:
        self.got += data
        self.key = peer_key(self.transport)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.over = reason.getErrorMessage()


class StreamTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.post = Post()
        self.accepted: list[Peer] = []
        self.keys = {name: SigningKey.load_or_make(Path(self.mktemp())) for name in ("laptop", "build", "other")}
        self.hosts = {name: Host(name, key.public.raw, {}) for name, key in self.keys.items()}
        self.believed = Trust({"laptop": self.hosts["laptop"]})
        self.sealing = {name: Sealing(name, key, lambda: self.believed) for name, key in self.keys.items()}
        for name in self.keys:
            self.post.members[name] = Streams(self.post, name, partial(self.accept, name))

    def accept(self, name: str, host: str) -> TLSMemoryBIOProtocol:
        peer = Peer()
        self.accepted.append(peer)
        return self.sealing[name].accepting(peer)

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
