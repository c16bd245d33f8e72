"""An agent's connection before it becomes a tunnel: reads one CONNECT request (RFC 9110, section 9.3.6)."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from twisted.internet.interfaces import IAddress
from twisted.internet.protocol import Protocol, ServerFactory, connectionDone
from twisted.python.failure import Failure

from ironcurtain.errors import AuditUnavailable, ProtocolViolation
from ironcurtain.http.fields import read_fields
from ironcurtain.http.head import HeadReader
from ironcurtain.http.urls import UnclearAddress, read_host
from ironcurtain.mitm_proxy.admission import UNRECORDED, RequestAdmission
from ironcurtain.mitm_proxy.interfaces import Admission
from ironcurtain.mitm_proxy.open_hosts import OpenAdmission, PlainAdmission
from ironcurtain.mitm_proxy.refusals import refusal_response
from ironcurtain.mitm_proxy.shared import Destination, Shared
from ironcurtain.mitm_proxy.tls import PlainSide, Side, server_name
from ironcurtain.mitm_proxy.tunnel import Tunnel
from ironcurtain.mitm_proxy.undecrypted import ESTABLISHED, UndecryptedTunnel
from ironcurtain.providers.provider import RequestRefusal

CONNECT_LIMIT = 8192
"""Maximum size in bytes of a CONNECT request (clients send a few hundred)."""

_REQUEST = re.compile(rb"([!-~]{1,32}) ([!-~]+) HTTP/1\.[01]")
_AUTHORITY = re.compile(r"([A-Za-z0-9._~-]{1,253}|\[[0-9A-Fa-f:.]{2,45}(?:%[A-Za-z0-9]+)?\]):([1-9][0-9]{0,4})")


class OtherMethod(ProtocolViolation):
    """A valid request with another method than CONNECT, such as one for an ``http`` URL."""


class ConnectRequest(msgspec.Struct, frozen=True):
    """
    The target of a CONNECT request.

    :param host: in lower case; an IPv6 address is in brackets.
    :param named: the value of its Host header in lower case, empty if missing.
    """

    host: str
    port: int
    named: str

    @property
    def consistent(self) -> bool:
        """Whether the Host header names the same host."""
        return self.named in ("", self.host, f"{self.host}:{self.port}")


def read_connect(head: bytes) -> ConnectRequest:
    """
    :param head: without the blank line at its end.
    :raises OtherMethod: a valid request that does not ask for a tunnel.
    :raises ProtocolViolation: an invalid request.
    """
    line, _, lines = head.partition(b"\r\n")
    if (request := _REQUEST.fullmatch(line)) is None:
        raise ProtocolViolation("connect", "the first line is not an HTTP request")
    headers = read_fields(lines)
    if request[1] != b"CONNECT":
        raise OtherMethod("connect", "only CONNECT is served")
    authority = _AUTHORITY.fullmatch(request[2].decode("ascii"))
    if authority is None or int(authority[2]) > 65535:
        raise ProtocolViolation("connect", "the target is not a host and port")
    names = [value for name, value in headers if name == "host"]
    if len(names) > 1 or any(name in ("content-length", "transfer-encoding") for name, _ in headers):
        raise ProtocolViolation("connect", "more than one Host, or a body")
    return ConnectRequest(authority[1].lower(), int(authority[2]), names[0].lower() if names else "")


class ConnectProtocol(Protocol):
    """:param shared: the state that all connections of the session share."""

    transport: Any

    def __init__(self, shared: Shared) -> None:
        self._shared, self._reader = shared, HeadReader(CONNECT_LIMIT)
        self._until = 0.0
        self._begun = self._refused = False
        self._tls: Protocol | None = None
        """What handles the connection once it is a tunnel."""

    def connectionMade(self) -> None:
        if not self._shared.connections.add(self):
            self.abort()
        elif not self._begun:
            self.transport.pauseProducing()

    def begin(self) -> None:
        """See :class:`~ironcurtain.mitm_proxy.shared.NewConnection`."""
        self._begun = True
        self._until = self._shared.recorder.now() + self._shared.limits.head_seconds
        self.transport.resumeProducing()

    def dataReceived(self, data: bytes) -> None:
        if self._tls is not None:
            self._tls.dataReceived(data)
            return
        if self._refused:
            return
        try:
            if (found := self._reader.feed(data)) is None:
                return
        except ProtocolViolation as e:
            self._malformed(e)
            return
        head, rest = found
        try:
            asked = read_connect(head)
        except OtherMethod:
            self._serve_plain(head + b"\r\n\r\n" + rest)
        except ProtocolViolation as e:
            self._malformed(e)
        else:
            self._decide(asked, rest)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._tls is not None:
            self._tls.connectionLost(reason)
        else:
            self._shared.connections.remove(self)

    def check(self, now: float) -> None:
        """See :class:`~ironcurtain.mitm_proxy.shared.ProxyConnection`."""
        if now < self._until:
            return
        if self._refused:
            self.abort()
        else:
            self._deny("", RequestRefusal(408, "too-slow", "the CONNECT request did not arrive in time"))

    def abort(self) -> None:
        """See :class:`~ironcurtain.mitm_proxy.shared.ProxyConnection`."""
        self.transport.abortConnection()

    def _decide(self, asked: ConnectRequest, rest: bytes) -> None:
        """:param rest: bytes after the head: the beginning of TLS."""
        where = f"{asked.host}:{asked.port}"
        destination = self._shared.destinations.get((asked.host, asked.port))
        if not asked.consistent:  # nobody knows for which of them a certificate would be right
            refusal = RequestRefusal(
                403, "host-mismatch", "the CONNECT request and its Host header name different hosts"
            )
            self._deny(where, refusal, hostHeader=asked.named)
        elif destination is not None:
            self._open(destination, rest)
        else:
            self._open_other(asked, rest)

    def _open(self, destination: Destination, rest: bytes) -> None:
        self.transport.write(ESTABLISHED)
        destination.pool.prepare()  # while the client performs its handshake

        def admit(tls: Any) -> Admission:
            return RequestAdmission(self._shared, destination, server_name(tls))

        self._hand_over(Tunnel(self._shared, admit, destination.credentials.rule.host), destination.side, rest)

    def _open_other(self, asked: ConnectRequest, rest: bytes) -> None:
        """The request inside is judged, since many clients show nothing of a response to CONNECT."""
        try:
            host = read_host(asked.host)
        except UnclearAddress as e:
            self._deny(f"{asked.host}:{asked.port}", RequestRefusal(403, "unclear-host", f"the host is unclear: {e}"))
            return
        hosts = self._shared.open_hosts
        if hosts.undecrypted.matches(host.name) and hosts.responder(host.name, asked.port) is None:
            self._pass_on(UndecryptedTunnel(self._shared, host, asked.port), rest)
            return
        self.transport.write(ESTABLISHED)

        def admit(tls: Any) -> Admission:
            return OpenAdmission(hosts, host, asked.port, server_name(tls))

        self._hand_over(Tunnel(self._shared, admit, host.name), hosts.serving(host.name), rest)

    def _serve_plain(self, data: bytes) -> None:
        tunnel = Tunnel(self._shared, lambda _: PlainAdmission(self._shared.open_hosts), "http")
        self._hand_over(tunnel, PlainSide(), data)

    def _pass_on(self, tunnel: UndecryptedTunnel, rest: bytes) -> None:
        self._shared.connections.replace(self, tunnel)
        self._tls = tunnel
        tunnel.makeConnection(self.transport)
        if rest:
            tunnel.dataReceived(rest)

    def _hand_over(self, tunnel: Tunnel, side: Side, rest: bytes) -> None:
        inner = side.wrap(tunnel)
        self._shared.connections.replace(self, tunnel)
        self._tls = inner
        inner.makeConnection(self.transport)
        if rest:
            inner.dataReceived(rest)

    def _malformed(self, violation: ProtocolViolation) -> None:
        self._deny("", RequestRefusal(400, "malformed", f"the request to the proxy is invalid: {violation.detail}"))

    def _deny(self, where: str, refusal: RequestRefusal, **more: str) -> None:
        host, _, _ = where.rpartition(":")
        try:
            self._shared.recorder.request(
                "deny",
                provider="",
                host=host,
                method="CONNECT",
                path=where,
                rule=refusal.code,
                reason=refusal.reason,
                **more,
            )
        except AuditUnavailable:
            refusal = UNRECORDED
        self._refuse(refusal)

    def _refuse(self, refusal: RequestRefusal) -> None:
        self._refused = True
        self._until = self._shared.recorder.now() + self._shared.limits.linger_seconds
        self.transport.write(refusal_response(refusal, close=True))
        self.transport.loseConnection()


class ConnectionFactory(ServerFactory):
    """Creates a session's connections."""

    noisy = False

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        return ConnectProtocol(self._shared)
