"""Sending, and knowing what waits."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.sending import MessageSender


class Narrow(StringTransport):
    """A transport like ours: what the kernel takes goes out, the rest waits, and the producer hears of it at once."""

    producer: Any

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room, self.sent, self.buffer = room, b"", b""

    def write(self, data: bytes) -> None:
        before, self.buffer = self.buffer, self.buffer + data
        self._push()
        if self.buffer and not before:
            self.producer.pauseProducing()

    def drain(self) -> None:
        """The other side reads everything."""
        self.room = len(self.buffer) + 10
        waited = bool(self.buffer)
        self._push()
        if waited:
            self.producer.resumeProducing()

    def _push(self) -> None:
        taken, self.buffer = self.buffer[: self.room], self.buffer[self.room :]
        self.sent += taken
        self.room -= len(taken)


class SenderTests(SynchronousTestCase):
    """All bytes, in order; told once when blocked and once when drained."""

    def make(self, room: int) -> tuple[Narrow, MessageSender]:
        """:returns: a transport, and a sender that keeps a list of what it says."""
        self.said: list[str] = []
        transport: Any = Narrow(room)
        return transport, MessageSender(
            transport, lambda: self.said.append("blocked"), lambda: self.said.append("drained")
        )

    def test_what_fits_waits_for_nobody(self) -> None:
        transport, sender = self.make(100)
        sender.send(b"abc")
        self.assertEqual((transport.sent, sender.waiting, self.said), (b"abc", 0, []))

    def test_what_does_not_fit_waits(self) -> None:
        transport, sender = self.make(2)
        sender.send(b"abc")
        sender.send(b"de")
        self.assertEqual((transport.sent, transport.buffer, self.said), (b"ab", b"cde", ["blocked"]))
        self.assertGreaterEqual(sender.waiting, 3)
        transport.drain()
        self.assertEqual((transport.sent, sender.waiting, self.said), (b"abcde", 0, ["blocked", "drained"]))
        sender.send(b"f")
        self.assertEqual(transport.sent, b"abcdef")

    @given(st.lists(st.one_of(st.binary(min_size=1, max_size=20), st.none())), st.integers(0, 30))
    def test_never_less_waits_than_it_says(self, steps: list[bytes | None], room: int) -> None:
        transport, sender = self.make(room)
        for step in steps:
            if step is None:
                transport.drain()
            else:
                sender.send(step)
            self.assertEqual(sender.waiting > 0, bool(transport.buffer))
            self.assertGreaterEqual(sender.waiting, len(transport.buffer))
        self.assertEqual(transport.sent + transport.buffer, b"".join(step for step in steps if step))

    def test_at_its_end_it_hears_no_more(self) -> None:
        transport, sender = self.make(0)
        sender.finish()
        self.assertIsNone(transport.producer)
