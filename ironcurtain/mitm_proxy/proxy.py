"""The MITM proxy of one session: assembles its providers, keys, certificates and listener."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from pathlib import Path
from types import MappingProxyType

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHostnameResolver, IReactorUNIX
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.accounts.source import TokenSource
from ironcurtain.audit.log import AuditLog
from ironcurtain.http.host_patterns import NOTHING, HostSet
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.mitm_proxy.account_tokens import AccountTokens
from ironcurtain.mitm_proxy.authority import Authority
from ironcurtain.mitm_proxy.connection import ConnectionFactory
from ironcurtain.mitm_proxy.dialling import Route, dial
from ironcurtain.mitm_proxy.fake_tokens import FakeToken, fake_token
from ironcurtain.mitm_proxy.host_accounts import HostAccounts
from ironcurtain.mitm_proxy.judgement import Credentials
from ironcurtain.mitm_proxy.limits import BufferedBytes, MitmLimits
from ironcurtain.mitm_proxy.open_hosts import OpenHosts
from ironcurtain.mitm_proxy.recording import ModelTraffic, Omissions, Recorder, Troubles
from ironcurtain.mitm_proxy.session_keys import SessionKeys
from ironcurtain.mitm_proxy.shared import Destination, ProxyConnections, Shared
from ironcurtain.mitm_proxy.tls import ClientSide, PlainSide, ServerSide
from ironcurtain.mitm_proxy.upstream import Upstream, UpstreamOwner, UpstreamPool
from ironcurtain.network.dialling import Dialer, DiallingReactor
from ironcurtain.network.judge import NetworkJudge
from ironcurtain.network.responder import Responder
from ironcurtain.providers.rules import ProviderRule
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.services.client_limits import ClientAdmission
from ironcurtain.services.stream import Wrap, itself, serve
from ironcurtain.services.unix_socket import UnixListener, listen

SWEEP_SECONDS = 0.5
"""Seconds between checks of time limits and of the socket."""


class MitmReactor(DiallingReactor, IReactorUNIX):
    """The parts of a reactor that the proxy needs."""


class MitmSurroundings(msgspec.Struct, frozen=True):
    """
    What a proxy uses of the process and the machine.

    :param resolver: resolves the hosts of providers.
    :param random_bytes: returns so many unpredictable bytes, for the fake keys.
    :param new_id: returns an id, unique in the session's audit log; called once.
    :param now: seconds since the epoch, by which tokens expire.
    """

    reactor: MitmReactor
    resolver: IHostnameResolver
    random_bytes: Callable[[int], bytes]
    new_id: Callable[[], str]
    proxies: UpstreamProxies
    now: Callable[[], float] = time.time


class MitmProxy:
    """
    One session's proxy.

    :param rules: the rules of the providers that the agent may reach; it can reach nothing else.
    :param account: returns the account that pays for a provider, by name. Called only for those of ``rules``.
    :param authority: signs the certificates with which the proxy impersonates providers.
    :param redactor: learns the real tokens, and in a copy the fake ones.
    :param events: called with each request and each response; it must not raise.
    :param exhausted: returns why no further request may be made; empty if one may. Called before each request.
    :param judge: decides on connections to hosts that belong to no provider; ``None``: none may be reached.
    :param undecrypted: hosts whose connections are judged and passed on as they are.
    :param responders: what answers for hosts, by host in lower case, and port; their requests are not judged.
    :param accounts: of the person, at hosts that belong to no provider.
    :param down: called once with the reason if agents can no longer connect although the proxy was not stopped.
    """

    log = Logger()

    def __init__(
        self,
        *,
        session_id: str,
        rules: Sequence[ProviderRule],
        account: Callable[[str], Awaitable[TokenSource] | TokenSource],
        authority: Authority,
        audit: AuditLog,
        redactor: Redactor,
        surroundings: MitmSurroundings,
        events: Callable[[ModelTraffic], None],
        down: Callable[[str], None],
        exhausted: Callable[[], str] = lambda: "",
        limits: MitmLimits | None = None,
        judge: NetworkJudge | None = None,
        undecrypted: HostSet = NOTHING,
        responders: Mapping[tuple[str, int], Responder] = MappingProxyType({}),
        accounts: HostAccounts = MappingProxyType({}),
    ) -> None:
        self._session_id, self._account = session_id, account
        self.rules = tuple(rules)
        """The rules of the providers."""
        self._authority, self._redactor, self._around, self._down = authority, redactor, surroundings, down
        self._limits, self._exhausted = limits or MitmLimits(), exhausted
        self._dialer = Dialer(
            surroundings.reactor, surroundings.resolver, surroundings.proxies, self._limits.connect_seconds
        )
        self._open = partial(OpenHosts, judge=judge, responders=responders, undecrypted=undecrypted, accounts=accounts)
        self.accounts = accounts
        """The accounts at hosts that belong to no provider."""
        self._recorder = Recorder(audit, events, surroundings.new_id, surroundings.reactor)
        self.fakes: Mapping[str, FakeToken] = {
            rule.name: fake_token(rule, surroundings.random_bytes) for rule in self.rules
        }
        """The fake key or token of each provider, by name."""
        for fake in self.fakes.values():
            for secret in filter(None, (fake.secret, fake.account)):
                redactor.add_own(secret)
        self._shared: Shared | None = None
        self._listeners: list[UnixListener] = []
        self._servers: list[asyncio.Server] = []
        self._reported = False
        self._sweeping = LoopingCall(self._sweep)
        self._sweeping.clock = surroundings.reactor

    async def start(self) -> None:
        """
        Fetch the tokens and create the certificates, so that no request waits for them.

        :raises ConfigurationError: a provider or account has no key or token, or a ``ca_file`` cannot be used.
        """
        for each in self.accounts.values():
            await each.open(self._redactor)
        destinations = {(rule.host, rule.port): await self._destination(rule) for rule in self.rules}
        buffered = BufferedBytes(self._limits.buffered_bytes)
        connections = ProxyConnections(self._limits.connections, self._limits.waiting)
        absent = {each.format_map(rule.places) for rule in self.rules for each in rule.provider.absent_elsewhere}
        hosts = self._open(
            dialer=self._dialer,
            authority=self._authority,
            recorder=self._recorder,
            limits=self._limits,
            clock=self._around.reactor,
            providers=tuple(destinations),
            keys=SessionKeys([fake.secret for fake in self.fakes.values()], self.accounts, absent),
            exhausted=self._exhausted,
        )
        self._shared = Shared(destinations, self._limits, self._recorder, buffered, self._exhausted, hosts, connections)
        self._sweeping.start(SWEEP_SECONDS, now=False).addErrback(self._broken)

    async def listen(self, path: Path, owner: tuple[int, int] | None = None) -> None:
        """
        Accept agents on a UNIX socket. Call :meth:`start` first.

        :param owner: uid and gid of the agent, if not those of this process.
        :raises ConfigurationError: the path is too long.
        :raises Unavailable: another file is at the path.
        """
        assert self._shared is not None, "start it first"
        factory = ConnectionFactory(self._shared)
        self._listeners.append(await listen(path, factory, owner, self._limits.clients))

    async def accept(self, listening: socket.socket, wrap: Wrap = itself) -> asyncio.Server:
        """
        Accept agents on a TCP socket, such as one in another network namespace. Everyone who can reach it can use the
        fake keys, unless ``wrap`` prevents it. Call :meth:`start` first.

        :param listening: bound; owned by the proxy from now on, and closed if this fails.
        :param wrap: returns a factory of what clients reach first.
        """
        assert self._shared is not None, "start it first"
        admission = ClientAdmission(self._limits.clients)
        server = await serve(listening, wrap(ConnectionFactory(self._shared)), admission)
        self._servers.append(server)
        return server

    async def stop(self) -> None:
        """Stop listening, and end all connections. The fake keys are invalid from here on."""
        if self._sweeping.running:
            self._sweeping.stop()
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            await listener.stop()
        servers, self._servers = self._servers, []
        for server in servers:
            server.close()
        shared, self._shared = self._shared, None
        if shared is not None:
            await shared.connections.close()
            for destination in shared.destinations.values():
                destination.pool.close()
        self._recorder.end()

    async def _destination(self, rule: ProviderRule) -> Destination:
        found = self._account(rule.name)
        tokens = AccountTokens(await found if isawaitable(found) else found, self._redactor, self._around.now)
        side = ClientSide(rule.upstream_host, rule.ca_file) if rule.tls else PlainSide()
        route = Route(rule.upstream_host, rule.upstream_port, rule.gateway, side, self._limits.connect_seconds)
        pool = UpstreamPool(partial(self._dial, route), self._around.reactor, self._limits)
        credentials = Credentials(rule, self.fakes[rule.name], tokens)
        serving = ServerSide(partial(self._authority.leaf, rule.host))
        troubles = Troubles(rule.upstream_host, tokens.description, tokens.advice)
        omissions = Omissions(rule.upstream_host)
        return Destination(credentials, serving, pool, troubles, omissions)

    def _dial(self, route: Route, keeper: UpstreamOwner) -> Deferred[Upstream]:
        return Deferred.fromCoroutine(dial(self._dialer, route, self._around.reactor, keeper))

    def _sweep(self) -> None:
        shared = self._shared
        if shared is None:
            return
        now = self._around.reactor.seconds()
        shared.connections.check(now)
        for destination in shared.destinations.values():
            destination.pool.sweep(now)
        if not all(listener.alive for listener in self._listeners):
            self._report("its socket is gone")

    def _report(self, why: str) -> None:
        if not self._reported:
            self._reported = True
            self.log.error("the MITM proxy of session {session} is down: {why}", session=self._session_id, why=why)
            self._down(f"the MITM proxy is down, so the agent cannot reach its model: {why}")

    def _broken(self, failure: Failure) -> None:
        self.log.failure("the MITM proxy's time limits are no longer checked", failure)
        self._report("it failed")
