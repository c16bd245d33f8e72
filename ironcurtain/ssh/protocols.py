"""
The protocols above the transport layer: login with listed public keys, session channels, and a check that the peer is
alive.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from twisted.conch.error import IgnoreAuthentication
from twisted.conch.interfaces import IConchUser
from twisted.conch.ssh import connection
from twisted.conch.ssh.common import NS, getNS
from twisted.conch.ssh.keys import BadKeyError, Key
from twisted.conch.ssh.userauth import MSG_USERAUTH_PK_OK, MSG_USERAUTH_REQUEST, SSHUserAuthServer
from twisted.cred.error import UnauthorizedLogin
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.errors import ConfigurationError
from ironcurtain.ssh.authorized_keys import SIGNATURES, AuthorizedKey
from ironcurtain.ssh.channel import SessionChannel

ATTEMPTS = 6
"""Number of failed keys after which the connection is dropped; OpenSSH's default for ``MaxAuthTries``."""

TOUCHED = 1
"""The bit in a security key's flags that indicates a touch (U2F raw message formats, 1.2)."""


class Login:
    """The login of a connection, for conch."""

    def __init__(self, key: AuthorizedKey) -> None:
        self.key = key
        self.conn: Any = None


class AuthenticationService(SSHUserAuthServer):
    """
    The server's side of the login (RFC 4252).

    The client's user name is ignored: the key alone determines principal and roles. An unlisted key is refused before
    the client signs, so that nobody is asked for a touch or passphrase in vain.
    """

    log = Logger()
    attemptsBeforeDisconnect = ATTEMPTS
    transport: Any

    def serviceStarted(self) -> None:
        """Start; the transport enforces the time limit."""
        self.authenticatedWith: list[bytes] = []
        self.loginAttempts = 0
        self.user = self.nextService = b""
        self.supportedAuthentications = [b"publickey"]

    def serviceStopped(self) -> None:
        """Do nothing: the transport cancels the timer."""

    def auth_publickey(self, packet: bytes) -> Deferred[Any]:
        """Answer whether a key is acceptable, or verify its signature (RFC 4252, section 7)."""
        signed = packet[:1] != b"\0"
        algorithm, blob, rest = getNS(packet[1:], 2)
        key = self._listed(blob)
        if (
            key is None
            or algorithm.decode("ascii", "replace") not in SIGNATURES[key.type]
            or self.nextService != b"ssh-connection"
        ):
            return fail(UnauthorizedLogin("not listed"))
        if not signed:
            self.transport.sendPacket(MSG_USERAUTH_PK_OK, NS(algorithm) + NS(blob))
            return fail(IgnoreAuthentication())
        if not self._is_signed(algorithm, blob, getNS(rest)[0]):
            self.log.warn("{peer} sent a wrong signature for key {name}", peer=self.transport.peer, name=key.name)
            return fail(UnauthorizedLogin("wrong signature"))
        self.transport.authenticated(key)
        return succeed((IConchUser, Login(key), lambda: None))

    def _listed(self, blob: bytes) -> AuthorizedKey | None:
        try:
            return self.transport.factory.keys.read().find(blob)  # type: ignore[no-any-return]
        except ConfigurationError as e:
            self.log.error("nobody can log in: {error}", error=e)
            return None

    def _is_signed(self, algorithm: bytes, blob: bytes, signature: bytes) -> bool:
        try:
            kind, _, extra = getNS(signature, 2)
            key = Key.fromString(blob, type="BLOB")
            message = self._message(algorithm, blob)
            if key.isSecurityKey():
                if len(extra) != 5 or not extra[0] & TOUCHED:
                    return False
                # OpenSSH's PROTOCOL.u2f: the device signs digests, with its flags and counter between them.
                message = sha256(key.application).digest() + extra + sha256(message).digest()
            return kind == algorithm and bool(key.verify(signature, message))
        except (BadKeyError, UnsupportedAlgorithm, ValueError, TypeError, ArithmeticError):
            return False

    def _message(self, algorithm: bytes, blob: bytes) -> bytes:
        names: tuple[Any, ...] = (self.user, self.nextService, b"publickey")
        return b"".join(
            (
                NS(self.transport.sessionID),
                bytes((MSG_USERAUTH_REQUEST,)),
                *(NS(name) for name in names),
                b"\1",
                NS(algorithm),
                NS(blob),
            )
        )


CHANNELS = 10
"""Maximum number of channels of one connection; OpenSSH's default for ``MaxSessions``."""

SMALLEST_PACKET = 1024
"""Minimum packet size; a client that wants smaller packets only causes load."""

KEEPALIVE_SECONDS, KEEPALIVE_MISSES = 15.0, 3
"""Interval in seconds between keepalive requests, and how many may stay unanswered."""


class ConnectionService(connection.SSHConnection):
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
        """The channels can send again."""
        for channel in list(self.channels.values()):
            channel.pump()

    def hang_up(self, why: str) -> bool:
        """
        End all channels with a message to the person, and open no new ones.

        :returns: whether there were any.
        """
        self._ending = True
        found = list(self.channels.values())
        for channel in found:
            channel.hang_up(why)
        return bool(found)

    def ssh_CHANNEL_OPEN(self, packet: bytes) -> None:
        """Open a session channel; conch would log a traceback for other types."""
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
        """:returns: a new channel, with its own size and program."""
        channel = SessionChannel(remoteWindow=windowSize, remoteMaxPacket=maxPacket, conn=self)
        channel.begin(self.transport.factory.programs, self.transport.key.principal)
        return channel

    def send_pieces(self, channel: SessionChannel, to_error: bool, pieces: Sequence[bytes | memoryview]) -> None:
        """Send a program's output, each piece in its own packet."""
        if channel.localClosed:
            return
        for piece in pieces:
            if to_error:
                self.sendExtendedData(channel, connection.EXTENDED_DATA_STDERR, bytes(piece))
            else:
                self.sendData(channel, bytes(piece))

    def adjustWindow(self, channel: SessionChannel, bytesToAdd: int) -> None:
        """Enlarge the peer's window, unless the channel's program does not read now."""
        if not channel.held:  # it enlarges the window when it continues
            super().adjustWindow(channel, bytesToAdd)

    def gotGlobalRequest(self, requestType: bytes, data: bytes) -> int:
        """:returns: no, always; any answer satisfies the client's keepalive."""
        return 0

    def _refuse(self, number: int, reason: int, why: bytes) -> None:
        self.log.info("{peer} was refused a channel: {why}", peer=self.transport.peer, why=why.decode())
        self.transport.sendPacket(
            connection.MSG_CHANNEL_OPEN_FAILURE, struct.pack(">2L", number, reason) + NS(why) + NS(b"")
        )

    def _ask(self) -> None:
        if self._misses >= KEEPALIVE_MISSES:
            self.log.info("{peer} no longer answers", peer=self.transport.peer)
            self.transport.leave(b"no answer")
            return
        self._misses += 1
        answer = self.sendGlobalRequest(b"keepalive@openssh.com", b"", wantReply=1)
        answer.addBoth(self._answered)

    def _answered(self, _: object) -> None:
        """An error answer also shows that the client is alive."""
        self._misses = 0
