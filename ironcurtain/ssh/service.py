"""The SSH service: listens, bounds connections, cuts off keys that are not listed any more, and ends in good order."""

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
"""Most connections of people who are logged in."""

UNKNOWN = 50
"""Most connections that are not logged in yet. One more, and the oldest is dropped: so nobody can keep others out."""

LOOK_SECONDS = 0.3
"""How often the key file is looked at while somebody is logged in, so that a removed key is cut off within a second."""


class SshFactory(SSHFactory):
    """
    Makes a transport for each TCP connection, and keeps count.

    :param keys: who may come in.
    :param programs: what runs on channels.
    :ivar live: those whose peer is logged in.
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
        """:returns: a transport; conch's own way says each time that it has no moduli, which we do not offer."""
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
        """A TCP connection is there."""
        self.unknown[connection] = None
        if len(self.unknown) > UNKNOWN:
            next(iter(self.unknown)).leave(b"too many connections")

    def logged_in(self, connection: SshTransport) -> None:
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

    def lost(self, connection: SshTransport) -> None:
        """It is gone."""
        self.unknown.pop(connection, None)
        if connection.key is not None:
            self.log.info("{name} is gone ({peer})", name=connection.key.name, peer=connection.peer)
        self.live.discard(connection)
        self.leaving.discard(connection)
        if not self.live and self._looking.running:
            self._looking.stop()

    def writable(self, connection: SshTransport) -> None:
        """What its channels have can be sent again."""
        if isinstance(connection.service, ConnectionService):
            connection.service.writable()

    def look(self) -> None:
        """Cut off everybody whose key is not listed any more, or has other roles now."""
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
            why = "this key is not listed any more"
            if now is not None:
                renamed = now.roles == connection.key.roles
                why = "this key has another name now" if renamed else "the roles of this key have changed"
            self.log.warn("{name} is cut off: {why}", name=connection.key.name, why=why)
            self.cut(why, [connection])

    def cut(self, why: str, connections: list[SshTransport]) -> None:
        """End connections, with a word to whoever sits there."""
        for connection in connections:
            self.live.discard(connection)
            self.leaving.add(connection)
            if isinstance(connection.service, ConnectionService) and connection.service.hang_up(why):
                connection.leave_soon(why.encode())
            else:
                connection.leave(why.encode())

    def _report(self, state: object, *lines: str) -> None:
        """Say what is wrong with the file, once for each state of it."""
        if state != self._reported:
            self._reported = state
            for line in lines:
                self.log.error("{line}", line=line)


class SshService:
    """
    The console and the commands over SSH.

    :param addresses: to listen on: IP addresses, of which one that this machine does not have is left out, as ``::1``
        often is; and :data:`~ironcurtain.ssh.addresses.SYSTEMD` sockets.
    :param port: of IP addresses; 0 for any that is free.
    """

    log = Logger()

    def __init__(self, reactor: Any, home: Home, addresses: Sequence[str], port: int, programs: Programs) -> None:
        self._reactor, self._home, self._addresses, self._port = reactor, home, addresses, port
        self._programs = programs
        self._listening: list[IListeningPort] = []
        self.connections: SshFactory | None = None

    @property
    def ports(self) -> list[int]:
        """The port of each address that is listened on."""
        hosts: list[Any] = [listening.getHost() for listening in self._listening]
        return [host.port for host in hosts]

    async def start(self) -> None:
        """
        Let people in.

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
        """Let nobody in any more, and end all connections, each with a word."""
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
