"""Sending at once, and knowing what waits."""

from __future__ import annotations

import socket
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.error import ConnectionLost
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.sending import Sender


class Socket(StringTransport):
    """A transport like Twisted's for sockets: what the kernel takes at once, and what waits in a buffer."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room, self.sent, self.buffer, self.broken = room, b"", b"", False

    def writeSomeData(self, data: bytes) -> int | Exception:
        if self.broken:
            return ConnectionLost()
        taken = data[: self.room]
        self.sent += taken
        self.room -= len(taken)
        return len(taken)

    def write(self, data: bytes) -> None:
        self.buffer += data

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        super().registerProducer(producer, streaming)
        if not streaming:
            producer.resumeProducing()

    def drain(self) -> None:
        """The other side reads everything."""
        self.sent, self.buffer, self.room = self.sent + self.buffer, b"", 1000
        if self.producer is not None:
            self.producer.resumeProducing()


class SenderTests(SynchronousTestCase):
    """All bytes, in order; told once when blocked and once when drained."""

    def make(self, transport: Any) -> Sender:
        """:returns: a sender that keeps a list of what it says."""
        self.said: list[str] = []
        return Sender(transport, lambda: self.said.append("blocked"), lambda: self.said.append("drained"))

    def test_what_fits_goes_out_at_once(self) -> None:
        transport = Socket(100)
        sender = self.make(transport)
        sender.send(b"abc")
        self.assertEqual((transport.sent, transport.buffer, sender.waiting, self.said), (b"abc", b"", 0, []))
        self.assertIsNone(transport.producer)

    def test_what_does_not_fit_waits(self) -> None:
        transport = Socket(2)
        sender = self.make(transport)
        sender.send(b"abc")
        sender.send(b"de")
        self.assertEqual((transport.sent, transport.buffer, sender.waiting), (b"ab", b"cde", 3))
        self.assertEqual(self.said, ["blocked"])
        transport.drain()
        self.assertEqual((transport.sent, sender.waiting, self.said), (b"abcde", 0, ["blocked", "drained"]))
        sender.send(b"f")
        self.assertEqual(transport.sent, b"abcdef")

    @given(st.lists(st.one_of(st.binary(min_size=1, max_size=20), st.none())), st.integers(0, 30))
    @settings(deadline=None)
    def test_nothing_is_lost_or_turned_round(self, steps: list[bytes | None], room: int) -> None:
        transport = Socket(room)
        sender = self.make(transport)
        for step in steps:
            if step is None:
                transport.drain()
            else:
                sender.send(step)
        self.assertEqual(transport.sent + transport.buffer, b"".join(step for step in steps if step))
        self.assertEqual(sender.waiting, len(transport.buffer))

    def test_an_error_is_left_to_the_transport(self) -> None:
        transport = Socket(100)
        transport.broken = True
        self.make(transport).send(b"abc")
        self.assertEqual(transport.buffer, b"abc")

    def test_a_transport_without_that_works_as_ever(self) -> None:
        transport = StringTransport()
        sender = self.make(transport)
        self.assertTrue(transport.streaming)
        sender.send(b"abc")
        sender.pauseProducing()
        self.assertEqual((transport.value(), sender.waiting > 0, self.said), (b"abc", True, ["blocked"]))
        sender.send(b"de")
        sender.resumeProducing()
        self.assertEqual((transport.value(), sender.waiting, self.said), (b"abcde", 0, ["blocked", "drained"]))

    def test_sockets_of_twisted_can_send_at_once(self) -> None:
        from twisted.internet import reactor
        from twisted.internet.protocol import Protocol, ServerFactory

        class Kept(ServerFactory):
            protocol = Protocol

        mine, other = socket.socketpair()
        with mine, other:
            mine.setblocking(False)
            server: Any = reactor.adoptStreamConnection(mine.fileno(), socket.AF_UNIX, Kept())  # type: ignore[attr-defined]
            self.make(server).send(b"now")
            self.assertEqual(other.recv(10), b"now")
            server.connectionLost(Failure(ConnectionLost()))
