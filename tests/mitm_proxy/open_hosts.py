"""A proxy for hosts that belong to no provider, and a judge that answers what a test says."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.mitm_proxy.limits import MitmLimits
from ironcurtain.network.held import HeldConnections
from ironcurtain.network.judge import AccountUse
from ironcurtain.providers.provider import RequestRefusal
from tests.mitm_proxy.messages import reply
from tests.mitm_proxy.origin import OriginServer
from tests.mitm_proxy.support import Base, Bench

DENIED = RequestRefusal(403, "denied", "localhost is not open: ask the user")


class StubJudge:
    """
    :ivar answers: to connections and requests, by "connect" and "request"; what is missing is allowed.
    :ivar asked: all that was judged.
    :ivar withdrawn: the number of questions that were cancelled.
    """

    def __init__(self) -> None:
        self.answers: dict[str, RequestRefusal | Deferred[Any]] = {}
        self.asked: list[tuple[Any, ...]] = []
        self.private = True
        self.withdrawn = 0
        self.held = HeldConnections()

    async def connect(self, host: str, port: int) -> RequestRefusal | None:
        self.asked.append(("connect", host, port))
        return await self._answer("connect")

    async def request(self, method: str, url: str, account: AccountUse | None = None) -> RequestRefusal | None:
        used = () if account is None else (account.name, account.listed)
        said = () if account is None or account.body is None else (account.body,)
        self.asked.append((method, url, *used, *said))
        return await self._answer("request")

    def may_be_private(self, host: str, port: int) -> bool:
        return self.private

    def hold(self, host: str, port: int, end: Callable[[], None]) -> Callable[[], None]:
        return self.held.add("the agent", host, port, end)

    async def _answer(self, what: str) -> RequestRefusal | None:
        answer: Any = self.answers.get(what)
        given: RequestRefusal | None = await answer if isinstance(answer, Deferred) else answer
        return given

    def ask(self, what: str) -> Deferred[Any]:
        """:returns: the answer that a person will give."""
        waiting: Deferred[Any] = Deferred(self._withdraw)
        self.answers[what] = waiting
        return waiting

    def _withdraw(self, waiting: Deferred[Any]) -> None:
        self.withdrawn += 1


class OpenBase(Base):
    """Tests with an origin at ``localhost`` that belongs to no provider."""

    async def open_bench(self, limits: MitmLimits | None = None, **more: Any) -> Bench:
        """:returns: a running bench with a judge; its origin answers each request with ``{}``."""
        bench = Bench(limits=limits, names=more.get("names", "localhost"))
        self.addCleanup(bench.stopped)
        bench.reactor, bench.resolver = more.get("reactor", bench.reactor), more.get("resolver", bench.resolver)
        bench.judge = StubJudge()
        bench.responders = more.get("responders", {})
        bench.undecrypted = more.get("undecrypted", ())
        bench.accounts = more.get("accounts", bench.accounts)
        await bench.start()
        before = os.environ.get("SSL_CERT_FILE")
        os.environ["SSL_CERT_FILE"] = str(bench.top / "origin.pem")
        self.addCleanup(_restore, before)
        bench.origin.answer = lambda origin: origin.send(reply())
        return bench

    async def plain_origin(self) -> OriginServer:
        """:returns: an origin without TLS that answers each request with ``{}``."""
        origin = OriginServer()
        self.addCleanup(lambda: Deferred.fromCoroutine(origin.stop()))
        await origin.start_plain()
        origin.answer = lambda connection: connection.send(reply())
        return origin


def _restore(before: str | None) -> None:
    if before is None:
        os.environ.pop("SSL_CERT_FILE", None)
    else:
        os.environ["SSL_CERT_FILE"] = before


def port_of(origin: OriginServer) -> int:
    """:returns: the port of an origin."""
    return int(origin._port.getHost().port)


def get(host: str, path: str = "/x", *more: str, method: str = "GET", body: bytes = b"") -> bytes:
    """:returns: a whole request."""
    length = [f"Content-Length: {len(body)}"] if body else []
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *length, *more, "", ""]
    return "\r\n".join(lines).encode() + body
