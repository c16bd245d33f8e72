"""Transports whose packets tests see, and programs on them."""

from __future__ import annotations

from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound
from ironcurtain.home.layout import Home
from ironcurtain.operations import Principal, Role
from ironcurtain.ssh.channel import ChannelProgram, SessionChannel
from ironcurtain.ssh.key_files import KeyFile, host_key
from ironcurtain.ssh.protocols import ConnectionService
from ironcurtain.ssh.service import SshFactory
from ironcurtain.ssh.transport import KeyExchange, Phase, SshTransport
from tests.audit.doubles import scratch
from tests.ssh.doubles import Bulk, Speaker, make_holder

PEER = IPv4Address("TCP", "127.0.0.1", 40000)


class Wire(StringTransport):
    """A TCP connection in memory."""

    aborted = False

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Nothing waits here."""

    def abortConnection(self) -> None:
        """Remember it."""
        self.aborted = True


class Recorded(SshTransport):
    """A transport after its key exchange, whose packets are kept instead of encrypted."""

    def connectionMade(self) -> None:
        """Pretend that keys are there."""
        self.sent: list[tuple[int, bytes]] = []
        self.writes = 0
        super().connectionMade()
        self.sendKexInit()
        self._keyExchangeState = self._KEY_EXCHANGE_NONE
        self._exchange, self._phase = KeyExchange.NONE, Phase.KEYED
        self.sessionID = b"session"

    def sendPacket(self, messageType: int, payload: bytes) -> None:
        """Keep it."""
        self.writes += 1
        self.sent.append((messageType, payload))

    def kinds(self) -> list[int]:
        """:returns: what was sent since the last time."""
        sent, self.sent = self.sent, []
        return [kind for kind, _ in sent]


class Plain:
    """Programs of tests: commands ``speak`` and ``bulk``."""

    def __init__(self) -> None:
        self.speakers: list[Speaker] = []
        self.bulk: list[Bulk] = []

    async def open(self, who: Principal, command: bytes | None, channel: SessionChannel) -> ChannelProgram:
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
        self.factory = SshFactory(self.clock, host_key(self.home), self.keys, self.programs)
        self.factory.doStart()

    def connect(self, protocol: type[SshTransport] = SshTransport) -> tuple[Any, Wire]:
        self.factory.protocol = protocol
        made, wire = self.factory.buildProtocol(PEER), Wire(peerAddress=PEER)
        made.makeConnection(wire)
        return made, wire

    def login(self) -> tuple[Any, Wire]:
        """:returns: a connection of ada's."""
        made, wire = self.connect(Recorded)
        made.authenticated(self.ada.key)
        made.setService(ConnectionService())
        made.kinds()
        return made, wire
