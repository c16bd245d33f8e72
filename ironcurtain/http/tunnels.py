"""Connections through an upstream proxy: a CONNECT request, and then the bytes of the connection itself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred, TimeoutError
from twisted.internet.interfaces import IHalfCloseableProtocol, IHandshakeListener, IProtocol, IReactorTime
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.errors import ConfigurationError, ProtocolViolation
from ironcurtain.http.failures import explain
from ironcurtain.http.fields import read_fields
from ironcurtain.http.head import HeadReader, read_status
from ironcurtain.http.proxies import SETTING, Proxy
from ironcurtain.http.trust import VerifyingPolicy
from ironcurtain.http.upstream_proxies import ProxyFailed, UpstreamProxies
from ironcurtain.secrets.redaction import Secret

if TYPE_CHECKING:
    from ironcurtain.http.negotiate import Negotiation

HEAD_LIMIT: Final = 16 * 1024
"""Maximum size in bytes of the head of a proxy's response."""


def connect_request(host: str, port: int, authorization: Secret | None) -> bytes:
    """
    :param host: a name or an address, an IPv6 address without brackets.
    :param authorization: the value of ``Proxy-Authorization``.
    :returns: the request for a tunnel (RFC 9110, section 9.3.6).
    """
    target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if authorization is not None:
        lines.append(f"Proxy-Authorization: {authorization.reveal()}")
    return "\r\n".join((*lines, "", "")).encode("ascii")


def read_reply(head: bytes, proxy: Proxy, target: str, authenticated: bool) -> ProxyFailed | None:
    """
    :param head: of the response to a CONNECT request, without the blank line at its end.
    :param target: host and port, for messages.
    :param authenticated: whether the request had credentials.
    :returns: why there is no tunnel; ``None`` if there is one.
    """
    try:
        status = read_status(head)
    except ProtocolViolation:
        return ProxyFailed(f"the proxy {proxy} does not answer as an HTTP proxy does", lasting=True)
    return None if 200 <= status < 300 else refusal(status, _schemes(head), proxy, target, authenticated)


def refusal(status: int, offered: Sequence[str], proxy: Proxy, target: str, authenticated: bool) -> ProxyFailed:
    """
    :param status: of a proxy's response.
    :param offered: the authentication schemes in it; none if they are not known.
    :param target: host and port of the connection.
    :param authenticated: whether the request had credentials.
    """
    if status == 407:
        return ProxyFailed(_unauthenticated(offered, proxy, authenticated), lasting=True)
    return ProxyFailed(f"the proxy {proxy} refuses the connection to {target} (HTTP {status})", lasting=status < 500)


def _unauthenticated(offered: Sequence[str], proxy: Proxy, authenticated: bool) -> str:
    schemes = {scheme.lower() for scheme in offered}
    if proxy.negotiates:
        if offered and "negotiate" not in schemes:
            return (
                f"the proxy {proxy} wants {' or '.join(offered)} authentication, and proxy_auth is negotiate (HTTP 407)"
            )
        return f"the proxy {proxy} refuses the Kerberos ticket (HTTP 407): klist shows whose it is"
    if offered and "basic" not in schemes:
        if "negotiate" in schemes:
            return (
                f"the proxy {proxy} wants a Kerberos ticket (HTTP 407): name it as proxy in [network] of "
                'config.toml, with proxy_auth = "negotiate"'
            )
        wanted = " or ".join(offered)
        return f"the proxy {proxy} wants {wanted} authentication, and only Basic and Negotiate are supported (HTTP 407)"
    if proxy.origin == SETTING:
        where = "the user in network.proxy and network.proxy_password in config.toml"
    else:
        where = f"the user and the password in the {proxy.origin}, as in http://USER:PASSWORD@HOST:PORT"
    if authenticated:
        return f"the proxy {proxy} refuses the user or the password (HTTP 407): correct {where}"
    return f"the proxy {proxy} wants a user and a password (HTTP 407): set {where}"


def _schemes(head: bytes) -> list[str]:
    found = [value.split(" ")[0].strip(",") for name, value in _fields(head) if name == "proxy-authenticate"]
    return [scheme for scheme in found if scheme.isascii() and scheme.isalnum()]


def unproved(head: bytes, proxy: Proxy, negotiation: Negotiation) -> ProxyFailed | None:
    """
    :param head: of the response that opens a tunnel.
    :returns: why it is not the proxy that the ticket is for. Not all proxies send a proof, so that none is no reason.
    """
    from ironcurtain.http.negotiate import NegotiationFailed  # few proxies need it

    for name, value in _fields(head):
        scheme, _, token = value.partition(" ")
        if name in ("proxy-authentication-info", "proxy-authenticate") and scheme.lower() == "negotiate":
            try:
                negotiation.confirm(token.strip())
            except NegotiationFailed as e:
                return ProxyFailed(f"the proxy {proxy} cannot be used: {e}", lasting=True)
    return None


def _fields(head: bytes) -> Sequence[tuple[str, str]]:
    try:
        return read_fields(head.partition(b"\r\n")[2])
    except ProtocolViolation:
        return []


@implementer(IHalfCloseableProtocol, IHandshakeListener)
class Tunnel(Protocol):
    """
    Asks a proxy for a tunnel, and passes it on to another protocol, which then uses the transport itself.

    :param request: for the tunnel.
    :param judge: returns why a head of a response means that there is none.
    :param inner: not touched before there is a tunnel.
    :param encrypted: whether the transport is TLS; the request waits until the proxy's certificate is verified.
    """

    transport: Any

    def __init__(
        self, request: bytes, judge: Callable[[bytes], ProxyFailed | None], inner: IProtocol, *, encrypted: bool
    ) -> None:
        self._request, self._judge, self._inner, self._encrypted = request, judge, inner, encrypted
        self._reader, self._open = HeadReader(HEAD_LIMIT), False
        self.established: Deferred[None] = Deferred(lambda _: self._abort())
        """Fires once there is a tunnel; fails with the reason if there is none."""

    def connectionMade(self) -> None:
        if not self._encrypted:
            self.transport.write(self._request)

    def handshakeCompleted(self) -> None:
        """The proxy's certificate is valid, or else the transport is closing and writes nothing more."""
        self.transport.write(self._request)

    def dataReceived(self, data: bytes) -> None:
        if self._open:
            self._inner.dataReceived(data)
            return
        if self.established.called:
            return
        try:
            found = self._reader.feed(data)
        except ProtocolViolation:  # too long
            found = b"", b""
        if found is None:
            return
        head, rest = found
        if (failed := self._judge(head)) is not None:
            self.established.errback(failed)
            self._abort()
            return
        self._open = True
        self._inner.makeConnection(self.transport)
        if rest:
            self._inner.dataReceived(rest)
        self.established.callback(None)

    def readConnectionLost(self) -> None:
        """See :class:`~twisted.internet.interfaces.IHalfCloseableProtocol`."""
        if self._open and IHalfCloseableProtocol.providedBy(self._inner):
            self._inner.readConnectionLost()
        else:
            self.transport.loseConnection()

    def writeConnectionLost(self) -> None:
        """See :class:`~twisted.internet.interfaces.IHalfCloseableProtocol`."""
        if self._open and IHalfCloseableProtocol.providedBy(self._inner):
            self._inner.writeConnectionLost()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.connected = 0
        if self._open:
            self._inner.connectionLost(reason)
        elif not self.established.called:
            self.established.errback(reason)

    def _abort(self) -> None:
        if self.connected:
            self.transport.abortConnection()


async def prepare(
    proxies: UpstreamProxies, proxy: Proxy, target: tuple[str, int]
) -> tuple[bytes, Callable[[bytes], ProxyFailed | None]]:
    """
    :param proxies: have the credentials.
    :param target: host and port, an IPv6 address without brackets.
    :returns: the request for one tunnel, and what returns why a head of a response means that there is none.
    :raises ProxyFailed: there are no credentials.
    """
    authorization = await proxies.authorization(proxy)

    def judge(head: bytes) -> ProxyFailed | None:
        failed = read_reply(head, proxy, "{}:{}".format(*target), authorization is not None)
        if failed is None and authorization is not None and authorization.negotiation is not None:
            return unproved(head, proxy, authorization.negotiation)
        return failed

    return connect_request(*target, None if authorization is None else authorization.value), judge


Reach = Callable[[IProtocol], Awaitable[object]]
"""Connects a protocol to the proxy itself."""


async def open_tunnel(
    proxies: UpstreamProxies,
    proxy: Proxy,
    target: tuple[str, int],
    inner: IProtocol,
    reach: Reach,
    clock: IReactorTime,
    seconds: float,
) -> None:
    """
    Connect a protocol to a host through a proxy, which resolves the host's name.

    :param proxies: have the credentials.
    :param target: host and port, an IPv6 address without brackets.
    :param inner: gets a transport once there is a tunnel; it is not touched before.
    :param reach: connects to the proxy.
    :param seconds: time limit for the proxy's answer.
    :raises ProxyFailed: there is no tunnel.
    """
    request, judge = await prepare(proxies, proxy, target)
    encrypted = proxy.scheme == "https"
    tunnel = Tunnel(request, judge, inner, encrypted=encrypted)
    try:
        await reach(_secured(tunnel, proxy) if encrypted else tunnel)
    except Exception as e:
        tunnel.established.addErrback(lambda _: None)  # nobody waits for it
        raise _unreachable(e, proxy) from None
    try:
        await tunnel.established.addTimeout(seconds, clock)
    except ProxyFailed:
        raise
    except Exception as e:
        raise _unreachable(e, proxy) from None


def _secured(tunnel: Tunnel, proxy: Proxy) -> IProtocol:
    try:
        policy = VerifyingPolicy(proxy.ca_file)
    except ConfigurationError as e:
        raise ProxyFailed(str(e), lasting=True) from None
    creator = policy.creatorForNetloc(proxy.host.name.encode("ascii"), proxy.port)
    factory = TLSMemoryBIOFactory(creator, True, Factory())
    factory.noisy = False
    return TLSMemoryBIOProtocol(factory, tunnel)


def _unreachable(error: Exception, proxy: Proxy) -> Exception:
    if isinstance(error, TimeoutError):
        return ProxyFailed(f"the proxy {proxy} cannot be reached: no answer in time", lasting=False)
    said = explain(error, f"the proxy {proxy}", setting=proxy.origin, ca_file="network.proxy_ca_file in config.toml")
    return error if said is None else ProxyFailed(said.message, lasting=said.lasting)
