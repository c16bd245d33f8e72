"""A proxy between a provider and agents that do what a test says."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import TestCase

from ironcurtain.accounts.source import TokenSource, api_key
from ironcurtain.audit.log import AuditLog
from ironcurtain.home.sections import Provider
from ironcurtain.http.host_patterns import HostPatterns
from ironcurtain.mitm_proxy.authority import Authority
from ironcurtain.mitm_proxy.host_accounts import HostAccounts
from ironcurtain.mitm_proxy.limits import MitmLimits
from ironcurtain.mitm_proxy.proxy import MitmProxy, MitmSurroundings
from ironcurtain.mitm_proxy.recording import ModelTraffic
from ironcurtain.providers.rules import ProviderRule, provider_rules
from ironcurtain.secrets.redaction import Redactor, Secret
from tests.http.direct import DIRECT
from tests.mitm_proxy.client import Client
from tests.mitm_proxy.messages import request
from tests.mitm_proxy.origin import OriginServer
from tests.mitm_proxy.waiting import sleep, the_reactor, until

REAL_KEY = "sk-ant-api03-CANARY/real+key-0123456789abcdefghijklmnopqrstuv"
SESSION = "session-under-test"


def at_once(work: Callable[[], None]) -> Deferred[None]:
    """Do in this thread what others do in another."""
    work()
    return succeed(None)


class Shifted:
    """The reactor, in which time can be made to pass."""

    def __init__(self) -> None:
        self.shift = 0.0

    def seconds(self) -> float:
        """:returns: seconds of the clock."""
        return float(the_reactor.seconds()) + self.shift

    def __getattr__(self, name: str) -> Any:
        return getattr(the_reactor, name)


class Base(TestCase):
    """Tests that have benches of their own."""

    async def bench(self, limits: MitmLimits | None = None, names: str = "localhost", **table: Any) -> Bench:
        """:returns: a running bench; ``table`` holds further settings of the provider."""
        bench = Bench(limits=limits, names=names)
        self.addCleanup(bench.stopped)
        return await bench.start(**table)


class Bench:
    """One proxy for one provider, an origin in the provider's place, and clients, all in one process."""

    def __init__(self, *, limits: MitmLimits | None = None, names: str = "localhost") -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp")).resolve()
        self.socket = self.top / "run" / "mitm-proxy.sock"
        self.origin, self.redactor, self.events = OriginServer(), Redactor(), list[ModelTraffic]()
        self.account: Callable[[str], TokenSource] = lambda name: api_key(Secret(REAL_KEY))
        self.accounts: Callable[[int], HostAccounts] = lambda port: {}
        self.downs: list[str] = []
        self.why = ""
        self.dialled: list[tuple[str, int]] = []
        self.authority = Authority.load_or_make(self.top / "ca", time.time)
        self.audit = AuditLog(self.top / "audit.jsonl", SESSION, self.redactor, the_reactor, time.time, at_once)
        self.limits, self._names = limits or MitmLimits(), names
        self.reactor: Any = Shifted()
        self.clients: list[Client] = []
        self.proxy: Any = None
        self.resolver: Any = the_reactor.nameResolver
        self.proxies = DIRECT
        self.port = 0
        self.judge: Any = None
        self.undecrypted: tuple[str, ...] = ()
        self.responders: dict[tuple[str, int], Any] = {}

    async def start(self, **table: Any) -> Bench:
        """Start everything."""
        port = self.port = await self.origin.start(self._names)
        (self.top / "origin.pem").write_bytes(self.origin.authority.pem)
        usual = {"base_url": f"https://localhost:{port}", "ca_file": str(self.top / "origin.pem")}
        provider = Provider(**{**usual, **table})
        await self.start_proxy(provider_rules({"anthropic": provider}, ["anthropic"]))
        return self

    async def start_proxy(self, rules: Sequence[ProviderRule]) -> None:
        """Start the proxy for these providers."""
        ids = itertools.count(1)
        self.proxy = MitmProxy(
            session_id=SESSION,
            rules=rules,
            account=self.account,
            authority=self.authority,
            audit=self.audit,
            redactor=self.redactor,
            surroundings=MitmSurroundings(
                self.reactor, self.resolver, os.urandom, lambda: f"request-{next(ids)}", self.proxies
            ),
            events=self.events.append,
            down=self.downs.append,
            exhausted=lambda: self.why,
            limits=self.limits,
            judge=self.judge,
            undecrypted=HostPatterns(self.undecrypted),
            responders=self.responders,
            accounts=self.accounts(self.port),
        )
        await self.proxy.start()
        await self.proxy.listen(self.socket)

    @property
    def key(self) -> str:
        """The fake key."""
        key: str = self.proxy.fakes["anthropic"].secret.reveal()
        return key

    def request(self, *arguments: Any, **keywords: Any) -> bytes:
        """:returns: see :func:`request`; with the fake key."""
        return request(self.key, *arguments, **keywords)

    def upload(self, body: bytes, *more: str) -> bytes:
        """:returns: a request whose body is passed on without being inspected."""
        whole = request(self.key, body, *more, path="/v1/upload")
        return whole.replace(b"application/json", b"application/octet-stream")

    def later(self, seconds: float) -> None:
        """Let time pass for the proxy."""
        self.reactor.shift += seconds

    def connections(self) -> int:
        """:returns: how many connections of clients are open."""
        return len(self.proxy._shared.connections)

    def buffered(self) -> int:
        """:returns: how many bytes of bodies are held back."""
        return int(self.proxy._shared.buffered.bytes)

    def pool(self) -> Any:
        """:returns: the connections to the provider."""
        (destination,) = self.proxy._shared.destinations.values()
        return destination.pool

    def active(self) -> bool:
        """:returns: whether anything came of an exchange since the proxy last looked."""
        exchanges = [tunnel._exchange for tunnel in self.tunnels()]
        return any(exchange.active for exchange in exchanges if exchange is not None)

    def begun(self) -> int:
        """:returns: how many bytes of unfinished heads have come."""
        return sum(len(tunnel._reader._buffer) for tunnel in self.tunnels())

    async def still(self, count: Callable[[], int]) -> None:
        """Wait until a number does not change any more."""
        last, same = -1, 0
        for _ in range(1000):
            now = count()
            last, same = now, same + 1 if now == last else 0
            if same == 10:
                return
            await sleep(0.01)
        raise AssertionError("it never stands still")

    async def client(self) -> Client:
        """:returns: one more client, connected."""
        client = await Client(self.socket, self.authority.certificate_pem).connect()
        self.clients.append(client)
        return client

    async def tunnel(self, **how: Any) -> Client:
        """:returns: one more client, inside its tunnel."""
        client = await (await self.client()).tunnel(**how)
        await until(lambda: all(c._state.name != "HANDSHAKE" for c in self.tunnels()), "the proxy's handshake")
        return client

    def tunnels(self) -> list[Any]:
        """:returns: the proxy's tunnels."""
        return [c for c in self.proxy._shared.connections._open if hasattr(c, "_exchange")]

    def records(self, kind: str) -> list[dict[str, Any]]:
        """:returns: the audit log's records of one kind."""
        lines = self.audit.path.read_text().splitlines()
        return [record for record in map(json.loads, lines) if record["kind"] == kind]

    def stopped(self) -> Deferred[None]:
        """Stop everything and leave nothing."""
        return Deferred.fromCoroutine(self.stop())

    async def stop(self) -> None:
        """Stop everything and leave nothing."""
        if self.proxy is not None:
            await self.proxy.stop()
        for client in self.clients:
            client.close()
        await until(lambda: all(client.inner.lost for client in self.clients), "the clients")
        await self.origin.stop()
        await self.audit.close()
        shutil.rmtree(self.top)
