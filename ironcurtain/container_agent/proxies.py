"""
A container's two proxies: the MCP proxy for tools and the MITM proxy for models, each behind a socket.

The MITM proxy's events become events of the session, and are counted as usage.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from twisted.internet.defer import Deferred, FirstError, gatherResults
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

from ironcurtain.container.proven_ports import ProvenPorts
from ironcurtain.container_agent.packages import Packages
from ironcurtain.errors import AccountLimitReached, SessionError
from ironcurtain.home.layout import account_directory, private_directory
from ironcurtain.home.session_paths import RunPaths
from ironcurtain.home.settings import Settings
from ironcurtain.llm import prices
from ironcurtain.llm.model import TokenUsage as Tokens
from ironcurtain.mcp_proxy.proxy import McpProxy
from ironcurtain.mitm_proxy.judgement import ABSENT
from ironcurtain.mitm_proxy.proxy import MitmProxy
from ironcurtain.mitm_proxy.recording import (
    USAGE_MEMBERS,
    ModelTraffic,
    ProviderNotice,
    ProxiedResponse,
)
from ironcurtain.network.responder import Responder
from ironcurtain.registries.opening import OpenRegistries
from ironcurtain.registries.recording import PackageTraffic
from ironcurtain.session import events
from ironcurtain.session.budget import Accounting, BudgetLimits, BudgetMeter, Dimension
from ironcurtain.session.model import Usage
from ironcurtain.session.parts import Core
from ironcurtain.session.refused_requests import RefusedRequests

FAILED = 400
"""HTTP statuses from here on are errors."""


LONG_WAIT = 30.0
"""Seconds of a wait for a model from which on IronCurtain tells of it; agents tell of shorter ones."""

LOOK_SECONDS = 0.5
"""Seconds between checks of the MCP proxy's socket: half of the time in which a dead proxy must be reported."""


class Spent(msgspec.Struct):
    """The usage of a session before it was resumed."""

    steps: int = 0
    seconds: float = 0.0
    tokens: int = 0
    cost: float = 0.0


class Traffic:
    """
    Counts usage, and stops requests beyond the budget.

    :param spent: earlier usage.
    :param exhausted: called once with the reason when a limit is reached.
    :param seconds: a monotonic clock.
    :param log: writes a line to the session's log; takes the source and the line.
    """

    def __init__(
        self,
        settings: Settings,
        spent: Spent,
        emit: Callable[[events.SessionEvent], None],
        exhausted: Callable[[SessionError], None],
        seconds: Callable[[], float],
        log: Callable[[str, str], None],
    ) -> None:
        self._prices = known_prices(settings)
        self._emit, self._exhausted = emit, exhausted
        self._model, self._steps = "", 0
        self._longest_wait = settings.agents.longest_wait_seconds
        self.cut = False
        """Whether the last answer of a model in this message stopped at the limit of output tokens."""
        self._tracked = False
        self._over = False
        self._refused = RefusedRequests(emit, log)
        self._budget = budget = BudgetMeter(BudgetLimits(**msgspec.structs.asdict(settings.budget)))
        budget.used.update(
            {
                Dimension.STEPS: spent.steps,
                Dimension.SECONDS: spent.seconds,
                Dimension.TOKENS: spent.tokens,
                Dimension.COST: spent.cost,
            }
        )
        self._accounting = Accounting(budget, self._cost, emit, seconds)

    def begin(self) -> None:
        """
        A message begins.

        :raises SessionError: the budget is used up.
        """
        self._accounting.begin()
        self._steps, self._over, self.cut = 0, False, False
        self._accounting.require()

    def rest(self) -> None:
        """A message begins for which no model is asked."""
        self._accounting.begin()

    def look(self) -> None:
        """Count time that has passed."""
        if not self._over:
            try:
                self._accounting.require()
            except SessionError as e:
                self._over = True
                self._exhausted(e)

    def aside(self, tokens: Tokens) -> None:
        """Count usage of another model than the agent's."""
        self._accounting.failed(tokens)

    def refusal(self) -> str:
        """:returns: why no further request to the model may be made, by the budget; empty if one may."""
        notice = self._budget.exhausted
        return str(notice) if notice is not None else ""

    def usage(self) -> Usage:
        """:returns: the usage of the message so far, as the providers reported it."""
        return msgspec.structs.replace(self._accounting.turn, token_tracking_available=self._tracked)

    def heard(self, event: ModelTraffic) -> None:
        """Process an event of the MITM proxy."""
        if isinstance(event, ProxiedResponse):
            self._answered(event)
        elif isinstance(event, ProviderNotice):
            self._emit(events.Notice(text=event.text))
        elif event.decision != "allow" and event.rule != ABSENT:
            reason = event.reason or event.rule
            refused = events.RequestRefused(host=event.host, method=event.method, path=event.path, reason=reason)
            self._refused.add(refused, event.rule)

    def _waits(self, seconds: float) -> None:
        """A limit of the account is reached: some agents wait until it ends, and do not say so."""
        if self._longest_wait is not None and seconds > self._longest_wait:
            words = f"the account at the model's provider has reached a limit, which ends in {seconds:.0f} s"
            allowed = f"agents.longest_wait_seconds allows {self._longest_wait:g}"
            self._exhausted(AccountLimitReached(f"{words}; {allowed}", seconds))
        elif seconds >= LONG_WAIT:
            self._emit(events.ModelRetry(delay=seconds, reason="a limit of the account is reached"))

    def _answered(self, event: ProxiedResponse) -> None:
        if event.wait is not None:
            self._waits(event.wait)
        if event.usage is None and (event.error or not 0 < event.status < FAILED):
            return
        self._tracked = self._tracked or event.usage is not None
        self._model, self.cut = event.model, event.cut
        self._steps += 1
        self._accounting.step(self._steps, event.usage or Tokens())
        self.look()

    def _cost(self, tokens: Tokens) -> float | None:
        return prices.cost(self._model, tokens, self._prices)


def known_prices(settings: Settings) -> dict[str, prices.TokenPrice]:
    """:returns: the prices, including those of the settings."""
    return {model: prices.TokenPrice(**msgspec.structs.asdict(price)) for model, price in settings.prices.items()}


def spent_before(records: Sequence[Mapping[str, Any]], known: Mapping[str, prices.TokenPrice]) -> Spent:
    """
    :param records: records of the session's audit log, which include work that a crash interrupted.
    :param known: prices.
    """
    spent = Spent(seconds=_seconds(records))
    for record in records:
        usage = record.get("usage")
        if record.get("kind") == "model-response" and isinstance(usage, Mapping):
            tokens = Tokens(*(int(usage.get(name, 0)) for name in USAGE_MEMBERS))
            spent.steps += 1
            spent.tokens += tokens.prompt_tokens + tokens.output_tokens
            spent.cost += prices.cost(str(record.get("model", "")), tokens, known) or 0.0
    return spent


def _seconds(records: Sequence[Mapping[str, Any]]) -> float:
    """:returns: the running time of programs; after a crash, up to the last record before it."""
    seconds, began, last = 0.0, "", ""
    for record in (*records, {"kind": "resumed"}):
        kind = record.get("kind")
        if kind == "run":
            began = record["time"]
        elif kind == "run-end":
            seconds += float(record.get("durationMs", 0)) / 1000
            began = ""
        elif kind in ("resumed", "recovered") and began:
            took = datetime.fromisoformat(last) - datetime.fromisoformat(began)
            seconds += max(0.0, took.total_seconds())
            began = ""
        last = record.get("time", "")
    return seconds


MakeMitm = Callable[[Traffic, Mapping[tuple[str, int], Responder], Callable[[str], None]], MitmProxy]
MakeRegistries = Callable[[Callable[[PackageTraffic], None]], OpenRegistries]


class Proxies:
    """
    Both proxies of a session.

    :param mcp: created, and not started.
    :param make_mitm: creates the other one; takes the functions to call for events, what answers for hosts, and the
        function to call if it dies.
    :param make_registries: opens package registries; takes the function to call for events.
    :param spent: usage of the session before it was resumed.
    :param run: directory of the sockets.
    :param authority: the certificate that the agent has to trust, as PEM.
    """

    log = Logger()

    def __init__(
        self,
        core: Core,
        mcp: McpProxy,
        make_mitm: MakeMitm,
        make_registries: MakeRegistries,
        spent: Spent,
        run: RunPaths,
        authority: bytes,
    ) -> None:
        self._core, self.run, self.authority = core, run, authority
        clock = core.services.clock
        self.spent = spent
        """Usage of the session before it was resumed."""
        self.traffic = Traffic(
            core.services.settings, spent, core.emit, lambda why: self.on_exhausted(why), clock.seconds, core.log_line
        )
        """The agent's usage of its models."""
        core.aside.append(self.traffic.aside)
        self._packages = Packages(core.emit, core.log_line)
        self._registries = make_registries(self._packages.heard)
        responders = self._registries.responders
        self.mcp, self.mitm = mcp, make_mitm(self.traffic, responders, lambda why: self._died("MITM", why))
        self.dead = ""
        """Why a proxy is dead; empty while both work."""
        self.on_death: Callable[[str], None] = lambda why: None
        """Called once with the reason when a proxy dies."""
        self.on_exhausted: Callable[[SessionError], None] = lambda why: None
        """Called when the session's budget is used up."""
        self._looking = LoopingCall(self._look)
        self._looking.clock = clock

    @property
    def registry_hosts(self) -> list[str]:
        """The hosts of the package registries that are open."""
        return self._registries.hosts

    @property
    def sandbox(self) -> str:
        """See :class:`~ironcurtain.session.parts.Tools`."""
        return self.mcp.sandbox

    @property
    def unsandboxed(self) -> tuple[str, ...]:
        """Names of the MCP servers that run outside any sandbox."""
        return self.mcp.unsandboxed

    @property
    def failures(self) -> dict[str, str]:
        """Why MCP servers are down, by name."""
        return self.mcp.failures

    @property
    def faults(self) -> dict[str, tuple[str, ...]]:
        """What MCP servers sent that breaks the protocol, in sentences, by name."""
        return self.mcp.faults

    async def start(self) -> None:
        """Start both, and accept the agent."""
        account = self._core.account
        private_directory(self.run.directory)
        private_directory(self.run.host)
        account_directory(self.run.agent, account.uid, account.gid)
        try:
            await _both(self._start_mcp(), self._start_mitm())
        except BaseException:
            await self.stop()
            raise
        self._looking.start(LOOK_SECONDS, now=False).addErrback(
            lambda failure: self._died("MCP", f"it is no longer checked: {failure.getErrorMessage()}")
        )

    async def open_ports(self, address: str) -> ProvenPorts:
        """
        Open a port of both for a sidecar, at an address of this machine.

        :raises OSError: that is impossible.
        """
        ports = ProvenPorts(self._core.services.clock)
        try:
            await ports.open(address, self.run.proxy_socket.name, self.mcp.accept)
            await ports.open(address, self.run.mitm_socket.name, self.mitm.accept)
        except BaseException:
            ports.close()
            raise
        return ports

    async def stop(self) -> None:
        """Stop listening, end both, and remove the sockets."""
        if self._looking.running:
            self._looking.stop()
        try:
            await _both(self.mcp.stop(), self._stop_mitm())
        finally:
            self._packages.tell()
            shutil.rmtree(self.run.directory, ignore_errors=True)

    async def _start_mcp(self) -> None:
        await self.mcp.start()
        await self.mcp.listen(self.run.proxy_socket, self._owner)

    async def _start_mitm(self) -> None:
        await self._registries.start()
        await self.mitm.start()
        await self.mitm.listen(self.run.mitm_socket, self._owner)

    async def _stop_mitm(self) -> None:
        await self.mitm.stop()
        await self._registries.stop()

    @property
    def _owner(self) -> tuple[int, int] | None:
        switched = self._core.switched
        return None if switched is None else (switched.uid, switched.gid)

    def _look(self) -> None:
        if not self.mcp.alive:
            self._looking.stop()
            self._died("MCP", "its socket is gone")

    def _died(self, proxy: str, why: str) -> None:
        if self.dead:
            return
        self.dead = f"the {proxy} proxy is dead ({why}), so the agent is cut off: end this session and resume it"
        self._core.emit(events.ProxyDown(proxy=proxy, reason=why))
        self._core.audit.append("proxy-down", proxy=proxy, reason=why)
        self.on_death(self.dead)


async def _both(*work: Any) -> None:
    # Both end before the first failure is raised, so that neither is left running.
    try:
        await gatherResults([Deferred.fromCoroutine(each) for each in work], consumeErrors=True)
    except FirstError as e:
        e.subFailure.raiseException()
