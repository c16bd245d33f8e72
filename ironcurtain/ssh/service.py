"""The SSH service: listens, limits connections, disconnects removed keys, and stops in order."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from twisted.conch.ssh.factory import SSHFactory
from twisted.conch.ssh.keys import Key
from twisted.internet.defer import DeferredList, maybeDeferred
from twisted.internet.endpoints import AdoptedStreamServerEndpoint, serverFromString
from twisted.internet.interfaces import IListeningPort, IReactorTime
from twisted.internet.protocol import Factory
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.layout import Home, private_directory
from ironcurtain.ssh.addresses import ELSEWHERE, SYSTEMD, family, not_passed, nowhere, refusal
from ironcurtain.ssh.channel import Programs
from ironcurtain.ssh.key_files import HostKey, KeyFile, directory, host_key
from ironcurtain.ssh.protocols import AuthenticationService, ConnectionService
from ironcurtain.ssh.transport import SshTransport

CONNECTIONS = 200
"""Maximum number of logged-in connections."""

UNKNOWN = 50
"""Maximum number of connections before login. Beyond it, the oldest is dropped, so that nobody can lock others out."""

LOOK_SECONDS = 0.3
"""
Seconds between checks of the key file while somebody is logged in, so that a removed key is disconnected within a
second.
"""


class SshFactory(SSHFactory):
    """
    Creates a transport for each TCP connection, and counts them.

    :param keys: the permitted keys.
    :param programs: the programs for channels.
    :ivar live: connections that are logged in.
    """

    log = Logger()
    noisy = False
    protocol = SshTransport

    def __init__(self, clock: IReactorTime, host_key: HostKey, keys: KeyFile, programs: Programs) -> None:
        self.clock, self.keys, self.programs = clock, keys, programs
        own = Key.fromString(host_key.pem)
        self.privateKeys = {b"ssh-ed25519": own}
        self.publicKeys = {b"ssh-ed25519": own.public()}
        self.live: set[SshTransport] = set()
        self.unknown: dict[SshTransport, None] = {}
        self.leaving: set[SshTransport] = set()
        self._reported: object = None
        self._looking = LoopingCall(self.look)
        self._looking.clock = clock

    def buildProtocol(self, addr: Any) -> Any:
        """:returns: a transport; conch's own method logs each time that there are no moduli, which are not used."""
        made: Any = Factory.buildProtocol(self, addr)
        made.supportedPublicKeys = [b"ssh-ed25519"]
        return made

    def getService(self, transport: Any, service: bytes) -> Any:
        """:returns: the login, then the connection protocol; nothing else, and nothing twice."""
        known = transport.key is not None
        return {(b"ssh-userauth", False): AuthenticationService, (b"ssh-connection", True): ConnectionService}.get(
            (service, known)
        )

    def opened(self, connection: SshTransport) -> None:
        """A TCP connection was accepted."""
        self.unknown[connection] = None
        if len(self.unknown) > UNKNOWN:
            next(iter(self.unknown)).leave(b"too many connections")

    def logged_in(self, connection: SshTransport) -> None:
        """A connection logged in."""
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

    def lost(self, connection: SshTransport) -> None:
        """A connection is lost."""
        self.unknown.pop(connection, None)
        if connection.key is not None:
            self.log.info("{name} is gone ({peer})", name=connection.key.name, peer=connection.peer)
        self.live.discard(connection)
        self.leaving.discard(connection)
        if not self.live and self._looking.running:
            self._looking.stop()

    def writable(self, connection: SshTransport) -> None:
        """The channels of a connection can send again."""
        if isinstance(connection.service, ConnectionService):
            connection.service.writable()

    def look(self) -> None:
        """Disconnect every key that is no longer listed, or has other roles now."""
        try:
            listed = self.keys.read()
        except ConfigurationError as e:
            self._report(str(e), f"nobody can log in: {e}")
            self.cut("the list of keys cannot be read", list(self.live))
            return
        self._report(listed.problems, *(f"{self.keys.path}:{it.line}: {it.what}" for it in listed.problems))
        for connection in list(self.live):
            assert connection.key is not None
            now = listed.find(connection.key.blob)
            if now == connection.key:
                continue
            why = "this key is no longer listed"
            if now is not None:
                renamed = now.roles == connection.key.roles
                why = "this key has another name now" if renamed else "the roles of this key have changed"
            self.log.warn("{name} is disconnected: {why}", name=connection.key.name, why=why)
            self.cut(why, [connection])

    def cut(self, why: str, connections: list[SshTransport]) -> None:
        """End connections, with a message to the person."""
        for connection in connections:
            self.live.discard(connection)
            self.leaving.add(connection)
            if isinstance(connection.service, ConnectionService) and connection.service.hang_up(why):
                connection.leave_soon(why.encode())
            else:
                connection.leave(why.encode())

    def _report(self, state: object, *lines: str) -> None:
        """Log an error of the file, once for each version of it."""
        if state != self._reported:
            self._reported = state
            for line in lines:
                self.log.error("{line}", line=line)


class SshService:
    """
    The console and the commands over SSH.

    :param addresses: IP addresses to listen on, of which one that this machine does not have is skipped, as ``::1``
        often is; and :data:`~ironcurtain.ssh.addresses.SYSTEMD` sockets.
    :param port: port of IP addresses; 0 for any free one.
    """

    log = Logger()

    def __init__(self, reactor: Any, home: Home, addresses: Sequence[str], port: int, programs: Programs) -> None:
        self._reactor, self._home, self._addresses, self._port = reactor, home, addresses, port
        self._programs = programs
        self._listening: list[IListeningPort] = []
        self.connections: SshFactory | None = None

    @property
    def ports(self) -> list[int]:
        """The port of each address."""
        hosts: list[Any] = [listening.getHost() for listening in self._listening]
        return [host.port for host in hosts]

    async def start(self) -> None:
        """
        Start listening.

        :raises ConfigurationError: the host key is damaged, or others can read it.
        :raises Unavailable: the port is in use, none of the addresses is this machine's, or systemd passed no socket.
        """
        private_directory(directory(self._home))
        key = host_key(self._home)
        self.connections = connections = SshFactory(self._reactor, key, KeyFile(directory(self._home)), self._programs)
        connections.doStart()
        connections.look()
        for address in self._addresses:
            await self._listen(address, connections)
        if not self._listening:
            raise nowhere(self._addresses)
        self.log.info(
            "SSH on {addresses}, port {port}, with host key {mark}",
            addresses=", ".join(self._addresses),
            port=self.ports[0],
            mark=key.fingerprint,
        )

    async def stop(self) -> None:
        """Stop listening, and end all connections, each with a message."""
        listening, self._listening = self._listening, []
        for port in listening:
            await maybeDeferred(port.stopListening)
        if self.connections is not None:
            self.connections.cut("IronCurtain has stopped", [*self.connections.live, *self.connections.unknown])
            await DeferredList([connection.gone for connection in self.connections.leaving])
            self.connections.doStop()

    async def _listen(self, address: str, connections: SshFactory) -> None:
        if address.startswith(SYSTEMD):
            try:
                endpoint = serverFromString(self._reactor, address)
            except (LookupError, ValueError):
                await self.stop()
                raise not_passed(address) from None
            self._listening.append(await endpoint.listen(connections))
            return
        try:
            made = socket.create_server((address, self._port), family=family(address))
        except OSError as e:
            number = e.errno or 0
            if number in ELSEWHERE:
                self.log.info("no SSH on {address}: this machine does not have it", address=address)
                return
            await self.stop()
            raise refusal(address, self._port, number) from None
        adopted = AdoptedStreamServerEndpoint(self._reactor, made.detach(), made.family)
        self._listening.append(await adopted.listen(connections))
