"""The login: listed public keys, and nothing else."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from twisted.conch.error import IgnoreAuthentication
from twisted.conch.interfaces import IConchUser
from twisted.conch.ssh.common import NS, getNS
from twisted.conch.ssh.keys import BadKeyError, Key
from twisted.conch.ssh.userauth import MSG_USERAUTH_PK_OK, MSG_USERAUTH_REQUEST, SSHUserAuthServer
from twisted.cred.error import UnauthorizedLogin
from twisted.internet.defer import Deferred, fail, succeed
from twisted.logger import Logger

from ironcurtain.errors import ConfigurationError
from ironcurtain.ssh.authorized_keys import SIGNATURES, AuthorizedKey

ATTEMPTS = 6
"""Failed keys before the connection is dropped; OpenSSH's default for ``MaxAuthTries``."""

TOUCHED = 1
"""The bit in a security key's flags that says that somebody touched it (U2F raw message formats, 1.2)."""


class Login:
    """Whose connection it is, for conch."""

    def __init__(self, key: AuthorizedKey) -> None:
        self.key = key
        self.conn: Any = None


class Authentication(SSHUserAuthServer):
    """
    The server's side of the login (RFC 4252).

    The user name that the client gives means nothing: who acts, and with which roles, follows from the key alone. A key
    that is not listed is refused before the client signs, so that nobody is asked for a touch or passphrase in vain.
    """

    log = Logger()
    attemptsBeforeDisconnect = ATTEMPTS
    transport: Any

    def serviceStarted(self) -> None:
        """Begin; the time for it runs in the transport since the connection was made."""
        self.authenticatedWith: list[bytes] = []
        self.loginAttempts = 0
        self.user = self.nextService = b""
        self.supportedAuthentications = [b"publickey"]
        self._cancelLoginTimeout: Any = None

    def auth_publickey(self, packet: bytes) -> Deferred[Any]:
        """Answer whether a key would do, or check its signature (RFC 4252, section 7)."""
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
