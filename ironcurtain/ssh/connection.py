"""A connection after the login: session channels and nothing else, and a check that the peer is there."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from twisted.conch.ssh import connection
from twisted.conch.ssh.common import NS, getNS
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.ssh.channel import SessionChannel

CHANNELS = 10
"""Most channels of one connection at a time; OpenSSH's default for ``MaxSessions``."""

SMALLEST_PACKET = 1024
"""A client that takes smaller packets than this wants us to work, not to talk."""

KEEPALIVE_SECONDS, KEEPALIVE_MISSES = 15.0, 3
"""How often the peer is asked whether it is there, and how many questions it may leave unanswered."""


class Connection(connection.SSHConnection):
    """The connection protocol (RFC 4254) without forwarding, and with limits."""

    log = Logger()
    transport: Any

    def serviceStarted(self) -> None:
        """The peer is logged in."""
        super().serviceStarted()
        self._misses, self._ending = 0, False
        self._asking = LoopingCall(self._ask)
        self._asking.clock = self.transport.factory.clock
        self._asking.start(KEEPALIVE_SECONDS, now=False)

    def serviceStopped(self) -> None:
        """The connection is gone, and all its channels."""
        if self._asking.running:
            self._asking.stop()
        super().serviceStopped()

    def writable(self) -> None:
        """What the channels have can be sent again."""
        for channel in list(self.channels.values()):
            channel.pump()

    def hang_up(self, why: str) -> bool:
        """
        End all channels, with a word to whoever sits there, and open none any more.

        :returns: whether there were any.
        """
        self._ending = True
        found = list(self.channels.values())
        for channel in found:
            channel.hang_up(why)
        return bool(found)

    def ssh_CHANNEL_OPEN(self, packet: bytes) -> None:
        """Open a session channel; conch would log a traceback for everything else."""
        kind, rest = getNS(packet)
        number, _, largest = struct.unpack(">3L", rest[:12])
        if kind != b"session":
            self._refuse(number, connection.OPEN_ADMINISTRATIVELY_PROHIBITED, b"only sessions: no forwarding")
        elif self._ending or len(self.channels) >= CHANNELS:
            self._refuse(number, connection.OPEN_RESOURCE_SHORTAGE, b"too many channels")
        elif largest < SMALLEST_PACKET:
            self._refuse(number, connection.OPEN_CONNECT_FAILED, b"the packets are too small")
        else:
            super().ssh_CHANNEL_OPEN(packet)

    def getChannel(self, channelType: bytes, windowSize: int, maxPacket: int, data: bytes) -> SessionChannel:
        """:returns: a channel of its own, with its own size and program."""
        channel = SessionChannel(remoteWindow=windowSize, remoteMaxPacket=maxPacket, conn=self)
        channel.begin(self.transport.factory.programs, self.transport.key.principal)
        return channel

    def send_pieces(self, channel: SessionChannel, to_error: bool, pieces: Sequence[bytes | memoryview]) -> None:
        """Send what a program writes, each piece in a packet of its own."""
        if channel.localClosed:
            return
        for piece in pieces:
            if to_error:
                self.sendExtendedData(channel, connection.EXTENDED_DATA_STDERR, bytes(piece))
            else:
                self.sendData(channel, bytes(piece))

    def adjustWindow(self, channel: SessionChannel, bytesToAdd: int) -> None:
        """Let the peer send more, unless the channel's program does not read now."""
        if not channel.held:  # it asks for all that is due when it goes on
            super().adjustWindow(channel, bytesToAdd)

    def gotGlobalRequest(self, requestType: bytes, data: bytes) -> int:
        """:returns: no, always; for the client's keepalive any answer will do."""
        return 0

    def _refuse(self, number: int, reason: int, why: bytes) -> None:
        self.log.info("{peer} was refused a channel: {why}", peer=self.transport.peer, why=why.decode())
        self.transport.sendPacket(
            connection.MSG_CHANNEL_OPEN_FAILURE, struct.pack(">2L", number, reason) + NS(why) + NS(b"")
        )

    def _ask(self) -> None:
        if self._misses >= KEEPALIVE_MISSES:
            self.log.info("{peer} does not answer any more", peer=self.transport.peer)
            self.transport.leave(b"no answer")
            return
        self._misses += 1
        answer = self.sendGlobalRequest(b"keepalive@openssh.com", b"", wantReply=1)
        answer.addBoth(self._answered)

    def _answered(self, _: object) -> None:
        """A client that does not know the question says so, which is an answer."""
        self._misses = 0
