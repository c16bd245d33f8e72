"""What the host makes of messages that the agent may have written in place of the sandbox's first program."""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet.testing import MemoryReactor
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.errors import ContainerDied
from ironcurtain.container_agent.bubblewrapped.channel import Channel, Order

WRONG = (
    *(b"[" * 1000, b" ", b"1", b"\xff", b"ended", b"ended 1", b"ended 1 x", b"ended 1 -4", b"ended 1 4 4 4"),
    *(b"count", b"count x", b"count 1 2", b"gone \xb2", b"ended 7777 0", b"status 1", b"9" * 1000),
    *(b"count " + b"9" * 900, b"ended 1 " + b"9" * 900, b"count 1.5", b"count -1", b"COUNT 1"),
)


class ForgedMessageTests(SynchronousTestCase):
    def setUp(self) -> None:
        reactor: Any = MemoryReactor()
        self.channel = Channel(reactor)
        self.addCleanup(self.channel.theirs.close)
        self.addCleanup(self.channel.close, ContainerDied("the test is over"))
        self.channel.ready.addErrback(lambda _: None)

    def say(self, said: bytes) -> None:
        self.channel.theirs.send(said)
        self.channel.doRead()

    def test_a_wrong_message_is_passed_over_and_the_right_one_counts(self) -> None:
        for said in WRONG:
            ended, count = self.channel.start(Order(("a",), {}, "/"), (), False), self.channel.count()
            self.say(said.replace(b"ended 1", b"ended %d" % self.channel._number))
            self.assertNoResult(ended)
            self.assertNoResult(count)
            self.say(b"count 3")
            self.say(b"ended %d 4" % self.channel._number)
            self.assertEqual((self.successResultOf(count), self.successResultOf(ended)), (3, 4), said)

    def test_descriptors_that_come_with_a_message_are_not_taken(self) -> None:
        reader, writer = socket.socketpair()
        self.addCleanup(reader.close)
        socket.send_fds(self.channel.theirs, [b"x"], [writer.fileno()])
        writer.close()
        self.channel.doRead()
        self.assertEqual(reader.recv(1), b"")
