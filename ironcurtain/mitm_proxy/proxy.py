"""The MITM proxy of one session, put together: its providers, their keys and certificates, and where agents come in."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHostnameResolver, IReactorUNIX
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.audit import AuditLog
from ironcurtain.mitm_proxy.authority import Authority
from ironcurtain.mitm_proxy.connection import ConnectionFactory
from ironcurtain.mitm_proxy.dialling import Dialer, DiallingReactor
from ironcurtain.mitm_proxy.judgement import Credentials
from ironcurtain.mitm_proxy.limits import BufferedBytes, MitmLimits
from ironcurtain.mitm_proxy.recording import ModelTraffic, Recorder, Troubles
from ironcurtain.mitm_proxy.scrub import KeyForms
from ironcurtain.mitm_proxy.shared import Destination, Shared
from ironcurtain.mitm_proxy.tls import ClientSide, PlainSide, ServerSide
from ironcurtain.mitm_proxy.upstream import Upstream, UpstreamOwner, UpstreamPool
from ironcurtain.providers.rules import ProviderRule
from ironcurtain.secrets.redaction import Redactor, Secret
from ironcurtain.services.unix_socket import UnixListener, listen

FAKE_BYTES = 24
"""Random bytes of a fake key: 192 bits, of which none can be guessed."""


def fake_key(rule: ProviderRule, random_bytes: Callable[[int], bytes]) -> Secret:
    """
    Make a key for one session.

    :param random_bytes: gives so many bytes that nobody can foretell, as ``secrets.token_bytes`` does.
    :returns: the prefix of the provider's keys and characters of the kind that they are made of.
    """
    text = base64.urlsafe_b64encode(random_bytes(FAKE_BYTES)).decode("ascii")
    return Secret(rule.key_prefix + text, f"made for provider {rule.name}")


SWEEP_SECONDS = 0.5
"""How often time limits are looked at, and whether the socket is still there."""


class MitmReactor(DiallingReactor, IReactorUNIX):
    """The parts of a reactor that the proxy needs."""


@dataclass(frozen=True, slots=True)
class MitmSurroundings:
    """
    What of the process and the machine a proxy uses.

    :param resolver: finds the addresses of providers.
    :param random_bytes: gives so many bytes that nobody can foretell, for the fake keys.
    :param new_id: gives ids, unique in the session's audit log; one is asked for.
    """

    reactor: MitmReactor
    resolver: IHostnameResolver
    random_bytes: Callable[[int], bytes]
    new_id: Callable[[], str]


class MitmProxy:
    """
    One session's proxy.

    :param rules: of the providers that the agent may reach; it reaches nothing else.
    :param real_key: gives a provider's key, by the provider's name. Only those of ``rules`` are asked for.
    :param authority: signs the certificates by which the agent takes us for a provider.
    :param redactor: learns the real keys, and for itself alone the fake ones.
    :param events: hears of each request and each answer; it must not raise.
    :param exhausted: says why no further request may be made; empty if one may. It is asked before each.
    :param down: hears why, once, if agents cannot come in any more although nobody stopped the proxy.
    """

    log = Logger()

    def __init__(
        self,
        *,
        session_id: str,
        rules: Sequence[ProviderRule],
        real_key: Callable[[str], Awaitable[Secret] | Secret],
        authority: Authority,
        audit: AuditLog,
        redactor: Redactor,
        surroundings: MitmSurroundings,
        events: Callable[[ModelTraffic], None],
        down: Callable[[str], None],
        exhausted: Callable[[], str] = lambda: "",
        limits: MitmLimits | None = None,
    ) -> None:
        self._session_id, self._rules, self._real_key = session_id, rules, real_key
        self._authority, self._redactor, self._around, self._down = authority, redactor, surroundings, down
        self._limits, self._exhausted = limits or MitmLimits(), exhausted
        self._recorder = Recorder(audit, events, surroundings.new_id, surroundings.reactor)
        self.fake_keys: Mapping[str, Secret] = {
            rule.name: fake_key(rule, surroundings.random_bytes) for rule in self._rules
        }
        """What the agent is to be given in place of each provider's key, by the provider's name."""
        for key in self.fake_keys.values():
            redactor.add_own(key)
        self._shared: Shared | None = None
        self._listeners: list[UnixListener] = []
        self._reported = False
        self._sweeping = LoopingCall(self._sweep)
        self._sweeping.clock = surroundings.reactor

    async def start(self) -> None:
        """
        Fetch the keys and make the certificates, so that neither is waited for later.

        :raises ConfigurationError: there is no key for a provider, or its ``ca_file`` cannot be used.
        """
        destinations = {(rule.host, rule.port): await self._destination(rule) for rule in self._rules}
        buffered = BufferedBytes(self._limits.buffered_bytes)
        self._shared = Shared(destinations, self._limits, self._recorder, buffered, self._exhausted)
        self._sweeping.start(SWEEP_SECONDS, now=False).addErrback(self._broken)

    async def listen(self, path: Path, owner: tuple[int, int] | None = None) -> None:
        """
        Let agents in at a UNIX socket, once started.

        :param owner: uid and gid of who may use it, if not we.
        :raises ConfigurationError: the path is too long.
        :raises Unavailable: something is in the way.
        """
        assert self._shared is not None, "start it first"
        self._listeners.append(await listen(path, ConnectionFactory(self._shared), owner))

    async def stop(self) -> None:
        """Let nobody in, and end all connections. The fake keys are worth nothing from here on."""
        if self._sweeping.running:
            self._sweeping.stop()
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            await listener.stop()
        shared, self._shared = self._shared, None
        if shared is not None:
            await shared.connections.close()
            for destination in shared.destinations.values():
                destination.pool.close()

    async def _destination(self, rule: ProviderRule) -> Destination:
        found = self._real_key(rule.name)
        real = await found if isawaitable(found) else found
        self._redactor.add(real)
        reactor, resolver = self._around.reactor, self._around.resolver
        side = ClientSide(rule.upstream_host, rule.ca_file) if rule.tls else PlainSide()
        dialer = Dialer(reactor, resolver, rule, side, self._limits)
        pool = UpstreamPool(partial(_dial, dialer), reactor, self._limits)
        credentials = Credentials(rule, self.fake_keys[rule.name], real)
        serving = ServerSide(partial(self._authority.leaf, rule.host))
        troubles = Troubles(rule.upstream_host, real.origin or "settings")
        return Destination(credentials, serving, pool, KeyForms(real), troubles)

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
        self.log.failure("the MITM proxy's time limits are not looked at any more", failure)
        self._report("it failed")


def _dial(dialer: Dialer, keeper: UpstreamOwner) -> Deferred[Upstream]:
    return Deferred.fromCoroutine(dialer.dial(keeper))
