"""
One TCP connection: permitted algorithms, the time limit of the login, rekeying, and flow control.

conch leaves these to its user. Numbers and orders from an RFC or from OpenSSH are marked as such.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from twisted.conch.ssh import transport
from twisted.conch.ssh.common import getNS
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.ssh.authorized_keys import SIGNATURES, AuthorizedKey

KEY_EXCHANGES = (
    b"mlkem768x25519-sha256",
    b"curve25519-sha256",
    b"curve25519-sha256@libssh.org",
    b"ecdh-sha2-nistp256",
    b"ecdh-sha2-nistp384",
    b"ecdh-sha2-nistp521",
)
"""conch's key exchanges without finite fields and SHA-1; the first one also resists quantum computers."""

CIPHERS = (b"aes256-ctr", b"aes192-ctr", b"aes128-ctr")
"""Permitted ciphers of conch: SSH's CBC is broken."""

MACS = (b"hmac-sha2-512", b"hmac-sha2-256")
"""Without SHA-1 and MD5."""

STRICT_SERVER, STRICT_CLIENT = b"kex-strict-s-v00@openssh.com", b"kex-strict-c-v00@openssh.com"
"""
With both, packet numbers restart with new keys, so that nothing can be removed unnoticed (OpenSSH's PROTOCOL, 1.10).
"""

OFFER_SECONDS = 1.0
"""Seconds to wait for the peer's algorithms before sending the server's. All known clients send theirs first."""

LOGIN_SECONDS = 30.0
"""Time limit in seconds of the login, from the TCP connection on (enough for a passphrase and a touch)."""

REKEY_SECONDS, REKEY_BYTES = 3600.0, 1024**3
"""Seconds, or bytes in both directions, after which new keys are negotiated (RFC 4253, section 9)."""

EXCHANGE_SECONDS = 30.0
"""Time limit in seconds for the peer's part of that; output waits meanwhile."""

UNKNOWN_LIMIT = 65536
"""Maximum bytes buffered for a peer that is not logged in (RFC 4253, section 6.1, requires 35000)."""

ABORT_SECONDS = 0.3
"""Seconds for sending buffered output before the connection is aborted."""

FAREWELL_SECONDS = 0.2
"""
Seconds for a client to show the last output of its channels. OpenSSH's client drops it when the connection ends at
once.
"""

NEGOTIATION = range(20, 50)
"""The messages of a key exchange (RFC 4250, section 4.1.2)."""

HARMLESS = range(1, 5)
"""Disconnect, ignore, unimplemented, debug: allowed during a later key exchange."""


class KeyExchange(Enum):
    """State of the key exchange."""

    NONE = auto()
    """None is in progress."""

    OFFERED = auto()
    """The server has sent its algorithms."""

    RUNNING = auto()
    """Both sides have sent theirs."""


class Phase(Enum):
    """What may be sent and received."""

    PLAIN = auto()
    """Only the first key exchange."""

    KEYED = auto()
    """Everything, encrypted."""

    LEAVING = auto()
    """Nothing more is processed; what is buffered is sent."""


@implementer(IPushProducer)
class SshTransport(transport.SSHServerTransport):
    """
    The server's side of the transport layer (RFC 4253), with limits.

    :ivar key: key of the connection; ``None`` before the login.
    """

    log = Logger()
    ourVersionString = b"SSH-2.0-IronCurtain"
    factory: Any
    transport: Any
    key: AuthorizedKey | None = None

    def connectionMade(self) -> None:
        """Start, with the time limit of the login."""
        self.gone: Deferred[None] = Deferred()
        self._clock: IReactorTime = self.factory.clock
        self._timers: dict[str, IDelayedCall] = {}
        self._exchange, self._phase = KeyExchange.NONE, Phase.PLAIN
        self._strict = self._paused = False
        self._carried = 0
        there = transport.SSHServerTransport.supportedKeyExchanges
        self.supportedKeyExchanges = [*(each for each in KEY_EXCHANGES if each in there), STRICT_SERVER]
        self.supportedCiphers, self.supportedMACs = list(CIPHERS), list(MACS)
        self.supportedCompressions = [b"none"]
        self.transport.setTcpNoDelay(True)
        self.transport.registerProducer(self, True)
        self._later("login", LOGIN_SECONDS, lambda: self.leave(b"the login took too long"))
        self.factory.opened(self)
        super().connectionMade()

    def connectionLost(self, reason: Failure | None = None) -> None:
        """Cancel all timers."""
        self._phase = Phase.LEAVING
        for name in list(self._timers):
            self._cancel(name)
        self.factory.lost(self)
        super().connectionLost(reason)
        self.gone.callback(None)

    @property
    def _leaving(self) -> bool:
        return self._phase is Phase.LEAVING

    @property
    def _has_keys(self) -> bool:
        return self._phase is Phase.KEYED

    @property
    def blocked(self) -> bool:
        """Whether output would be buffered."""
        return self._paused or self._leaving or self._exchange is not KeyExchange.NONE

    @property
    def peer(self) -> str:
        """Address and port, for people."""
        address = self.transport.getPeer()
        return f"{address.host}:{address.port}"

    def authenticated(self, key: AuthorizedKey) -> None:
        """The peer has proved that it holds a listed key."""
        self.key = key
        self._cancel("login")
        self._later("rekey", REKEY_SECONDS, self._rekey)
        self.factory.logged_in(self)

    def leave_soon(self, why: bytes) -> None:
        """End the connection when the client has shown the last output of its channels, or shortly after."""
        self._later("farewell", FAREWELL_SECONDS, lambda: self.leave(why))

    def leave(self, why: bytes) -> None:
        """Send the reason, and end the connection, even if the peer does not read."""
        if not self._leaving:
            self.sendDisconnect(transport.DISCONNECT_BY_APPLICATION, why)

    def sendDisconnect(self, reason: int, desc: bytes) -> None:
        """End the connection. Further packets of the peer are ignored."""
        if not self._leaving:
            self._part()
            super().sendDisconnect(reason, desc)

    def receiveError(self, reasonCode: int, description: bytes) -> None:
        """The peer ends the connection."""
        self._part()

    def dataReceived(self, data: bytes) -> None:
        """Process bytes; invalid ones end the connection."""
        if self._leaving:
            return
        try:
            if self.gotVersion:
                self.buf += data
                while (packet := self.getPacket()) is not None:
                    self.dispatchMessage(packet[0], packet[1:])
            else:
                super().dataReceived(data)
            self._count(len(data))
        except Exception as e:
            # conch raises various exceptions for malformed packets: struct.error, KeyError, ValueError ...
            self.log.warn("dropped {peer}: {error}", peer=self.peer, error=f"{type(e).__name__}: {e}"[:200])
            self._part()
            self.transport.abortConnection()
        if self.key is None and len(self.buf) > UNKNOWN_LIMIT:
            self.leave(b"too much before the login")

    def getPacket(self) -> Any:
        """:returns: the next packet; none while disconnecting."""
        if self._leaving:
            return None
        return super().getPacket()

    def dispatchMessage(self, messageNum: int, payload: bytes) -> None:
        """Process a packet, if it is permitted now."""
        allowed = messageNum in NEGOTIATION or (messageNum in HARMLESS and (self._has_keys or not self._strict))
        if not (allowed or (self._has_keys and self._exchange is not KeyExchange.RUNNING)):
            self.sendDisconnect(transport.DISCONNECT_PROTOCOL_ERROR, b"not during a key exchange")
            return
        super().dispatchMessage(messageNum, payload)

    def ssh_KEXINIT(self, packet: bytes) -> None:
        """The peer starts a key exchange."""
        if self._exchange is KeyExchange.RUNNING:
            self.sendDisconnect(transport.DISCONNECT_PROTOCOL_ERROR, b"a key exchange is going on")
            return
        if not self._has_keys:
            self._strict = STRICT_CLIENT in getNS(packet[16:])[0].split(b",")
            if self._strict and self.incomingPacketSequence != 1:
                self.sendDisconnect(transport.DISCONNECT_PROTOCOL_ERROR, b"something came before the key exchange")
                return
        offered, self._exchange = self._exchange is KeyExchange.OFFERED, KeyExchange.RUNNING
        self._later("exchange", EXCHANGE_SECONDS, lambda: self.leave(b"the key exchange took too long"))
        if not offered:
            self.sendKexInit()
        super().ssh_KEXINIT(packet)
        if self.kexAlg == STRICT_SERVER:
            self.sendDisconnect(transport.DISCONNECT_KEY_EXCHANGE_FAILED, b"that is no key exchange")

    def sendKexInit(self) -> None:
        """Send the server's algorithms; at first when the peer has sent its own, or does not."""
        if not self._has_keys and self._exchange is KeyExchange.NONE and "offer" not in self._timers:
            self._later("offer", OFFER_SECONDS, self.sendKexInit)
            return
        self._cancel("offer")
        if self._exchange is KeyExchange.NONE:
            self._exchange = KeyExchange.OFFERED
        super().sendKexInit()

    def ssh_NEWKEYS(self, packet: bytes) -> None:
        """The peer uses the new keys from now on."""
        if self._exchange is not KeyExchange.RUNNING:
            self.sendDisconnect(transport.DISCONNECT_PROTOCOL_ERROR, b"no key exchange is going on")
            return
        self._carried = 0
        self._cancel("exchange")
        if self._strict:
            self.incomingPacketSequence = 0
        super().ssh_NEWKEYS(packet)
        self._exchange = KeyExchange.NONE
        if self._phase is Phase.PLAIN:
            self._phase = Phase.KEYED
        if self.key is not None:
            self._later("rekey", REKEY_SECONDS, self._rekey)
        self._wake()

    def ssh_SERVICE_REQUEST(self, packet: bytes) -> None:
        """The login is requested once; the next service starts automatically."""
        if self.service is not None:
            self.sendDisconnect(transport.DISCONNECT_PROTOCOL_ERROR, b"a service is running")
            return
        super().ssh_SERVICE_REQUEST(packet)

    def sendPacket(self, messageType: int, payload: bytes) -> None:
        """Send a packet, or queue it until a key exchange is complete."""
        super().sendPacket(messageType, payload)
        if messageType == transport.MSG_NEWKEYS and self._strict:
            self.outgoingPacketSequence = 0
        self._count(len(payload))

    def sendExtInfo(self, extensions: Any) -> None:
        """
        Send all supported signature algorithms; conch sends those of the host key, which excludes RSA keys (RFC 8308).
        """
        accepted = ",".join(name for names in SIGNATURES.values() for name in names)
        super().sendExtInfo([(b"server-sig-algs", accepted.encode())])

    def pauseProducing(self) -> None:
        """The TCP buffer is full, since a client can offer any window and not read."""
        self._paused = True

    def resumeProducing(self) -> None:
        """The TCP buffer is empty."""
        self._paused = False
        self._wake()

    def stopProducing(self) -> None:
        """The connection ends; ``connectionLost`` follows."""
        self._paused = True

    def _count(self, size: int) -> None:
        self._carried += size
        if self._carried > REKEY_BYTES:
            self._rekey()

    def _rekey(self) -> None:
        if self.key is not None and self._exchange is KeyExchange.NONE and not self._leaving:
            self._carried = 0
            self._later("exchange", EXCHANGE_SECONDS, lambda: self.leave(b"the key exchange took too long"))
            self.sendKexInit()

    def _wake(self) -> None:
        if self.key is not None and self.service is not None and not self.blocked:
            self.factory.writable(self)

    def _part(self) -> None:
        # A registered producer keeps the connection open after loseConnection, and so does a full buffer.
        if not self._leaving:
            self._phase = Phase.LEAVING
            self.transport.unregisterProducer()
            self._later("abort", ABORT_SECONDS, self.transport.abortConnection)

    def _later(self, name: str, seconds: float, work: Any) -> None:
        self._cancel(name)
        self._timers[name] = self._clock.callLater(seconds, work)

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None and timer.active():
            timer.cancel()
