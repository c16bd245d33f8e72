"""
Requests to hosts that belong to no provider: judged by policy, or answered here by a responder.

The connection is judged before its host is resolved, when its first request has arrived, so that the answer can be
given as a response to this request. Each tunnel has connections of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol, IReactorTime

from ironcurtain.errors import AuditUnavailable, ProtocolViolation
from ironcurtain.http.head import HttpRequest, read_request
from ironcurtain.http.host_patterns import HostSet
from ironcurtain.http.hosts import Host
from ironcurtain.mitm_proxy.admission import ENDED, UNRECORDED, body_fields
from ironcurtain.mitm_proxy.answer import AnswerRelay, OpenAnswer
from ironcurtain.mitm_proxy.authority import Authority
from ironcurtain.mitm_proxy.dialling import Route, dial, explain
from ironcurtain.mitm_proxy.exchange import ActiveRequest, Exchange, ExchangeClient, Outgoing
from ironcurtain.mitm_proxy.forwarding import DEFAULT_PORTS, forward, names, origin, read_absolute
from ironcurtain.mitm_proxy.host_accounts import BODY_LIMIT, HostAccount, HostAccounts, read_body
from ironcurtain.mitm_proxy.interfaces import Judged, WithBody
from ironcurtain.mitm_proxy.judgement import ForwardedRequest
from ironcurtain.mitm_proxy.limits import MitmLimits
from ironcurtain.mitm_proxy.local import LocalExchange
from ironcurtain.mitm_proxy.recording import Recorder
from ironcurtain.mitm_proxy.refusals import refusal_response
from ironcurtain.mitm_proxy.session_keys import SessionKeys
from ironcurtain.mitm_proxy.tls import ClientSide, PlainSide, ServerSide, Side
from ironcurtain.mitm_proxy.upstream import Upstream, UpstreamOwner, UpstreamPool
from ironcurtain.network.dialling import AddressRefused, Dialer
from ironcurtain.network.judge import AccountUse, NetworkJudge
from ironcurtain.network.responder import Responder
from ironcurtain.providers.provider import RequestRefusal

SIDES_KEPT = 64
"""Maximum number of hosts whose TLS contexts are kept, for each side."""

_SideT = TypeVar("_SideT", ServerSide, ClientSide)


class OpenHosts:
    """
    What the tunnels to hosts that belong to no provider share.

    :param judge: ``None``: no such host may be reached.
    :param responders: by host in canonical form, and port; requests to these are not judged.
    :param providers: hosts and ports of the session's providers. They are reached as providers only: policy cannot open
        them for other requests, at their ports for the web.
    :param keys: must not be sent to such a host.
    :param exhausted: returns why no further request may be made; empty if one may.
    :param undecrypted: hosts whose connections are passed on as they are.
    :param accounts: of the person, at some of these hosts.
    """

    def __init__(
        self,
        *,
        judge: NetworkJudge | None,
        responders: Mapping[tuple[str, int], Responder],
        dialer: Dialer,
        authority: Authority,
        recorder: Recorder,
        limits: MitmLimits,
        clock: IReactorTime,
        providers: Collection[tuple[str, int]],
        keys: SessionKeys,
        exhausted: Callable[[], str],
        undecrypted: HostSet,
        accounts: HostAccounts,
    ) -> None:
        self.judge, self._responders, self._dialer, self._authority = judge, responders, dialer, authority
        self.recorder, self._limits, self._clock, self._exhausted = recorder, limits, clock, exhausted
        self.undecrypted, self._accounts = undecrypted, accounts
        self.keys = keys
        self._providers = {(host, each): port for host, port in providers for each in {port, *_web_ports(port)}}
        self._servers: OrderedDict[str, ServerSide] = OrderedDict()
        self._clients: OrderedDict[str, ClientSide] = OrderedDict()

    def serving(self, host: str) -> ServerSide:
        """:returns: the proxy's side of TLS towards agents, with a certificate for a host."""
        return _kept(self._servers, host, lambda: ServerSide(partial(self._authority.visited_leaf, host)))

    def responder(self, host: str, port: int) -> Responder | None:
        """:returns: what answers for a host; ``None`` for most."""
        return self._responders.get((host, port))

    def account(self, host: str, port: int) -> HostAccount | None:
        """:returns: the person's account at a host; ``None`` for most."""
        return self._accounts.get((host, port))

    def pool(self, host: str, port: int, scheme: str) -> UpstreamPool:
        """:returns: connections of one tunnel to a host, none yet. The host is resolved for each of them."""

        def opened(keeper: UpstreamOwner) -> Deferred[Upstream]:
            side: Side = PlainSide()
            if scheme == "https":
                side = _kept(self._clients, host, lambda: ClientSide(host, ""))
            route = Route(host, port, self._may_be_private(host, port), side, self._limits.connect_seconds)
            return Deferred.fromCoroutine(dial(self._dialer, route, self._clock, keeper))

        return UpstreamPool(opened, self._clock, self._limits)

    async def connect(self, host: str, port: int, protocol: IProtocol) -> None:
        """Connect a protocol to a host; raises what :meth:`~ironcurtain.network.dialling.Dialer.connect` raises."""
        await self._dialer.connect(host, port, protocol, private=self._may_be_private(host, port))

    def _may_be_private(self, host: str, port: int) -> bool:
        return self.judge is not None and self.judge.may_be_private(host, port)

    def ended(self) -> RequestRefusal | None:
        """:returns: why no further request may be made, to whatever host; ``None`` if one may."""
        why = self._exhausted()
        return RequestRefusal(403, ENDED, why) if why else None

    def closed(self, host: str, port: int) -> RequestRefusal | None:
        """:returns: why a host may not be reached; ``None`` if the judge decides."""
        if refusal := self.ended():
            return refusal
        if (own := self._providers.get((host, port))) is not None:
            why = f"{host} is reached for models only: by https, at port {own}, with this session's key"
            return RequestRefusal(403, "provider-host", why)
        if self.judge is None:
            allowed = ", ".join(f"{host}:{port}" for (host, port), own in self._providers.items() if port == own)
            may = f"only {allowed} may be reached" if allowed else "nothing may be reached"
            return RequestRefusal(403, "host-not-allowed", may)
        return None


def _web_ports(port: int) -> tuple[int, ...]:
    """:returns: the ports that stand for the same service as this one."""
    web = tuple(DEFAULT_PORTS.values())
    return web if port in web else ()


def _kept(sides: OrderedDict[str, _SideT], host: str, make: Callable[[], _SideT]) -> _SideT:
    found = sides.pop(host, None)
    side = sides[host] = make() if found is None else found
    while len(sides) > SIDES_KEPT:
        sides.popitem(last=False)
    return side


class OpenAdmission:
    """
    Decides on the requests of one tunnel. See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`.

    :param name: the host that the client named in its TLS handshake; some name no address.
    """

    def __init__(self, hosts: OpenHosts, host: Host, port: int, name: str) -> None:
        self._target = _Target(hosts, "https", host, port)
        self._hosts, self._host, self._name = hosts, host, name

    def take(self, head: bytes) -> tuple[HttpRequest, Judged | Deferred[Judged | WithBody]]:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        request = read_request(head)
        expected = ("", self._host.name) if self._host.is_address else (self._host.name,)
        if self._name not in expected or not names(request.host, self._host, self._target.port):
            why = "the CONNECT request, the TLS handshake and the Host header name different hosts"
            return request, RequestRefusal(403, "host-mismatch", why)
        return request, self._target.judged(head, request)

    def denied(self, request: HttpRequest | None, refusal: RequestRefusal) -> RequestRefusal:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        host = "" if request is None else request.host
        named = {"serverName": self._name, "hostHeader": host} if refusal.code == "host-mismatch" else {}
        return self._target.denied(request, refusal, named)

    def start(
        self,
        client: ExchangeClient,
        request: HttpRequest,
        forward: ForwardedRequest,
        length: int | None,
        fields: tuple[str, ...] = (),
    ) -> ActiveRequest | RequestRefusal:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        return self._target.start(client, request, forward, length)

    def response(self, refusal: RequestRefusal, request: HttpRequest | None, close: bool) -> bytes:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        return refusal_response(refusal, request.head.headers if request is not None else (), close=close)

    def check(self, now: float) -> None:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        self._target.pool.sweep(now)

    def close(self) -> None:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        self._target.pool.close()


class PlainAdmission:
    """
    Decides on the requests of an agent that uses the proxy for ``http`` URLs. They may be for different hosts. See
    :class:`~ironcurtain.mitm_proxy.interfaces.Admission`.
    """

    def __init__(self, hosts: OpenHosts) -> None:
        self._hosts = hosts
        self._target: _Target | None = None

    def take(self, head: bytes) -> tuple[HttpRequest, Judged | Deferred[Judged | WithBody]]:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        found = read_absolute(head)
        if found is None:
            raise ProtocolViolation("http", "only CONNECT, and http:// URLs, are served: use this as a proxy")
        host, port, own = found
        request = read_request(own)
        if self._target is None or (host, port) != (self._target.host, self._target.port):
            self.close()
            self._target = _Target(self._hosts, "http", host, port)
        if not names(request.host, host, port):
            return request, RequestRefusal(403, "host-mismatch", "the URL and the Host header name different hosts")
        return request, self._target.judged(own, request)

    def denied(self, request: HttpRequest | None, refusal: RequestRefusal) -> RequestRefusal:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        if self._target is None:
            return record_refusal(self._hosts.recorder, "", request, refusal)
        named = {"hostHeader": request.host} if request is not None and refusal.code == "host-mismatch" else {}
        return self._target.denied(request, refusal, named)

    def start(
        self,
        client: ExchangeClient,
        request: HttpRequest,
        forward: ForwardedRequest,
        length: int | None,
        fields: tuple[str, ...] = (),
    ) -> ActiveRequest | RequestRefusal:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        assert self._target is not None
        return self._target.start(client, request, forward, length)

    def response(self, refusal: RequestRefusal, request: HttpRequest | None, close: bool) -> bytes:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        return refusal_response(refusal, request.head.headers if request is not None else (), close=close)

    def check(self, now: float) -> None:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        if self._target is not None:
            self._target.pool.sweep(now)

    def close(self) -> None:
        """See :class:`~ironcurtain.mitm_proxy.interfaces.Admission`."""
        if self._target is not None:
            self._target.pool.close()


class _Target:
    """One host and port, and what was decided about it in this tunnel."""

    def __init__(self, hosts: OpenHosts, scheme: str, host: Host, port: int) -> None:
        self._hosts, self._scheme, self.host, self.port = hosts, scheme, host, port
        self._responder = hosts.responder(host.name, port)
        self._account = hosts.account(host.name, port) if scheme == "https" else None
        self._connected = False
        self._recorded: RequestRefusal | None = None
        self._observer = _Observer(hosts.recorder, host.name)
        self.pool = hosts.pool(host.name, port, scheme)

    def judged(self, head: bytes, request: HttpRequest) -> Judged | Deferred[Judged | WithBody]:
        """:returns: what is sent of a request whose host is certain, or why nothing is."""
        if refusal := self._hosts.keys.refusal(self.host.name, head, request.head, self._account):
            return refusal
        found = forward(request.head)
        if isinstance(found, RequestRefusal):
            return found
        if self._responder is not None:
            return self._hosts.ended() or found
        return self._hosts.closed(self.host.name, self.port) or Deferred.fromCoroutine(self._judge(request, found))

    async def _judge(self, request: HttpRequest, found: ForwardedRequest) -> Judged | WithBody:
        judge, name = self._hosts.judge, self.host.name
        assert judge is not None
        refusal = None
        if not self._connected:
            refusal = await judge.connect(name, self.port)
            self._connected = refusal is None
        if refusal is None:
            beginning, path = origin(self._scheme, self.host, self.port), request.head.path
            method, account = request.head.method, self._account
            if account is not None and account.used_by(found):  # what it asks for can stand in the query
                use = AccountUse(account.name, account.reads(method, path))
                url = f"{beginning}{request.head.target}"
                if request.length != 0:
                    return account.codings(found) or WithBody(BODY_LIMIT, partial(self._whole, found, url, use))
                refusal = await judge.request(method, url, use)
            else:
                refusal = await judge.request(method, f"{beginning}{path}")
        self._recorded = refusal
        return found if refusal is None else refusal

    def _whole(self, found: ForwardedRequest, url: str, use: AccountUse, data: bytes) -> Deferred[Judged]:
        """:returns: the decision on a request with the person's token, whose body is shown."""

        async def judged() -> Judged:
            body = read_body(data)
            if isinstance(body, RequestRefusal):
                return body
            assert self._hosts.judge is not None
            refusal = await self._hosts.judge.request(
                found.endpoint.method, url, AccountUse(use.name, use.listed, body)
            )
            self._recorded = refusal
            return found if refusal is None else refusal

        return Deferred.fromCoroutine(judged())

    def denied(self, request: HttpRequest | None, refusal: RequestRefusal, named: Mapping[str, str]) -> RequestRefusal:
        """Record a refusal, unless the judge has done so."""
        if refusal is self._recorded:
            return refusal
        return record_refusal(self._hosts.recorder, self.host.name, request, refusal, named)

    def start(
        self, client: ExchangeClient, request: HttpRequest, found: ForwardedRequest, length: int | None
    ) -> ActiveRequest:
        """Start an allowed request."""
        method = request.head.method
        if self._responder is not None:
            return LocalExchange(client, self._responder, request, self._observer)
        account = self._account
        if account is not None:
            found = account.paid(found)
        head = found.lines(None) + body_fields(method, length)
        outgoing = Outgoing("", lambda _: head, length is None)

        def answer() -> AnswerRelay:
            return OpenAnswer(method, request.last, None if account is None else account.scrubber())

        return Exchange(client, outgoing, answer, self.pool, self._observer)


class _Observer:
    """See :class:`~ironcurtain.mitm_proxy.exchange.ExchangeObserver`. The judge has recorded the request."""

    def __init__(self, recorder: Recorder, host: str) -> None:
        self.host, self.now = host, recorder.now

    def unreachable(self, error: BaseException | None) -> RequestRefusal:
        """See :class:`~ironcurtain.mitm_proxy.exchange.ExchangeObserver`."""
        if isinstance(error, AddressRefused):
            why = f"{error}. Private addresses are reached only where a rule of the policy names exactly this host."
            return RequestRefusal(403, "private-address", why)
        return RequestRefusal(502, "host-unreachable", explain(error, self.host))

    def ended(
        self, request_id: str, answer: AnswerRelay, duration: float, request_size: int, error: str, fault: str
    ) -> None:
        """See :class:`~ironcurtain.mitm_proxy.exchange.ExchangeObserver`."""


def record_refusal(
    recorder: Recorder,
    host: str,
    request: HttpRequest | None,
    refusal: RequestRefusal,
    named: Mapping[str, str] | None = None,
) -> RequestRefusal:
    """
    Record a refusal that the judge has not seen.

    :param named: further members of the record.
    :returns: the response.
    """
    method, path = ("", "") if request is None else (request.head.method, request.head.path)
    try:
        recorder.request(
            "deny",
            provider="",
            host=host,
            method=method,
            path=path,
            rule=refusal.code,
            reason=refusal.reason,
            **(named or {}),
        )
    except AuditUnavailable:
        return UNRECORDED
    return refusal
