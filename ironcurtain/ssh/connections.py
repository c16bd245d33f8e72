"""All connections of the service: how many there may be, whose they are, and whether their keys are still listed."""

from __future__ import annotations

from typing import Any

from twisted.conch.ssh.factory import SSHFactory
from twisted.conch.ssh.keys import Key
from twisted.internet.interfaces import IReactorTime
from twisted.internet.protocol import Factory
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.errors import ConfigurationError
from ironcurtain.ssh.authentication import Authentication
from ironcurtain.ssh.channel import Programs
from ironcurtain.ssh.connection import Connection
from ironcurtain.ssh.key_files import HostKey, KeyFile
from ironcurtain.ssh.transport import Transport

CONNECTIONS = 200
"""Most connections of people who are logged in."""

UNKNOWN = 50
"""Most connections that are not logged in yet. One more, and the oldest is dropped: so nobody can keep others out."""

LOOK_SECONDS = 0.3
"""How often the key file is looked at while somebody is logged in, so that a removed key is cut off within a second."""


class Connections(SSHFactory):
    """
    Makes a transport for each TCP connection, and keeps count.

    :param keys: who may come in.
    :param programs: what runs on channels.
    :ivar live: those whose peer is logged in.
    """

    log = Logger()
    noisy = False
    protocol = Transport

    def __init__(self, clock: IReactorTime, host_key: HostKey, keys: KeyFile, programs: Programs) -> None:
        self.clock, self.keys, self.programs = clock, keys, programs
        own = Key.fromString(host_key.pem)
        self.privateKeys = {b"ssh-ed25519": own}
        self.publicKeys = {b"ssh-ed25519": own.public()}
        self.live: set[Transport] = set()
        self.unknown: dict[Transport, None] = {}
        self.leaving: set[Transport] = set()
        self._told: object = None
        self._looking = LoopingCall(self.look)
        self._looking.clock = clock

    def buildProtocol(self, addr: Any) -> Any:
        """:returns: a transport; conch's own way says each time that it has no moduli, which we do not offer."""
        made: Any = Factory.buildProtocol(self, addr)
        made.supportedPublicKeys = [b"ssh-ed25519"]
        return made

    def getService(self, transport: Any, service: bytes) -> Any:
        """:returns: the login, then the connection protocol; nothing else, and nothing twice."""
        known = transport.key is not None
        return {(b"ssh-userauth", False): Authentication, (b"ssh-connection", True): Connection}.get((service, known))

    def opened(self, connection: Transport) -> None:
        """A TCP connection is there."""
        self.unknown[connection] = None
        if len(self.unknown) > UNKNOWN:
            next(iter(self.unknown)).leave(b"too many connections")

    def logged_in(self, connection: Transport) -> None:
        """Its peer is known."""
        key = connection.key
        assert key is not None
        self.unknown.pop(connection, None)
        if len(self.live) >= CONNECTIONS:
            connection.leave(b"too many connections")
            return
        self.live.add(connection)
        where, mark = connection.peer, key.fingerprint
        self.log.info("{name} logged in from {peer} ({mark})", name=key.name, peer=where, mark=mark)
        if not self._looking.running:
            self._looking.start(LOOK_SECONDS, now=False)

    def lost(self, connection: Transport) -> None:
        """It is gone."""
        self.unknown.pop(connection, None)
        if connection.key is not None:
            self.log.info("{name} is gone ({peer})", name=connection.key.name, peer=connection.peer)
        self.live.discard(connection)
        self.leaving.discard(connection)
        if not self.live and self._looking.running:
            self._looking.stop()

    def writable(self, connection: Transport) -> None:
        """What its channels have can be sent again."""
        if isinstance(connection.service, Connection):
            connection.service.writable()

    def look(self) -> None:
        """Cut off everybody whose key is not listed any more, or has other roles now."""
        try:
            listed = self.keys.read()
        except ConfigurationError as e:
            self._tell(str(e), f"nobody can log in: {e}")
            self.cut("the list of keys cannot be read", list(self.live))
            return
        self._tell(listed.problems, *(f"{self.keys.path}:{it.line}: {it.what}" for it in listed.problems))
        for connection in list(self.live):
            assert connection.key is not None
            now = listed.find(connection.key.blob)
            if now == connection.key:
                continue
            why = "this key is not listed any more"
            if now is not None:
                renamed = now.roles == connection.key.roles
                why = "this key has another name now" if renamed else "the roles of this key have changed"
            self.log.warn("{name} is cut off: {why}", name=connection.key.name, why=why)
            self.cut(why, [connection])

    def cut(self, why: str, connections: list[Transport]) -> None:
        """End connections, with a word to whoever sits there."""
        for connection in connections:
            self.live.discard(connection)
            self.leaving.add(connection)
            if isinstance(connection.service, Connection) and connection.service.hang_up(why):
                connection.leave_soon(why.encode())
            else:
                connection.leave(why.encode())

    def _tell(self, state: object, *lines: str) -> None:
        """Say what is wrong with the file, once for each state of it."""
        if state != self._told:
            self._told = state
            for line in lines:
                self.log.error("{line}", line=line)
