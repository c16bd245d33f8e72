"""Send spans to an OpenTelemetry collector. Whatever becomes of that, nobody waits for it or fails by it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from ironcurtain.http.failures import in_words
from ironcurtain.http.outbound import Outbound
from ironcurtain.http.trust import VerifyingPolicy
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.secrets.redaction import Secret
from ironcurtain.traces.otlp import ExportedSpan, header_values, request_body

HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"
"""The variable with further headers, such as a key (OpenTelemetry, "OTLP Exporter Configuration")."""

KEPT: Final = 2048
"""Most spans that wait; further ones are dropped. This and :data:`BATCH` are the defaults of OpenTelemetry's SDKs."""

BATCH: Final = 512
"""Most spans of one request."""

DELAY_SECONDS: Final = 0.5
"""How long a span waits for others."""

REQUEST_SECONDS: Final = 10.0
"""Time limit for one request."""

LAST_SECONDS: Final = 2.0
"""How long the end of the process waits for the last requests."""


class SpanExporter:
    """
    Exports spans to one collector.

    :param endpoint: its base URL.
    :param proxies: upstream proxies.
    :param environ: may have :data:`HEADERS`.
    """

    log = Logger()

    def __init__(self, reactor: Any, endpoint: str, proxies: UpstreamProxies, environ: Mapping[str, str]) -> None:
        self._reactor, self._url = reactor, f"{endpoint.rstrip('/')}/v1/traces"
        self._host = str(urlsplit(endpoint).hostname)
        values = header_values(environ.get(HEADERS, ""))
        self._headers = {name: Secret(value, HEADERS) for name, value in values.items()}
        self._outbound = Outbound(reactor, VerifyingPolicy(""), proxies)
        self._waiting: deque[ExportedSpan] = deque()
        self._next: IDelayedCall | None = None
        self._sending: Deferred[None] | None = None
        self._stopped = self._complained = False

    def add(self, span: ExportedSpan) -> None:
        """Export a span soon."""
        if self._stopped:
            return
        if len(self._waiting) >= KEPT:
            return self._complain("too many spans wait")
        self._waiting.append(span)
        if not self.busy:
            self._next = self._reactor.callLater(DELAY_SECONDS, self._begin)

    @property
    def busy(self) -> bool:
        """Whether spans wait or are being sent."""
        return self._next is not None or self._sending is not None

    async def stop(self) -> None:
        """Send what waits, but not for long; then drop it."""
        self._stopped = True
        if self._next is not None:
            self._next.cancel()
            self._begin()
        if (sending := self._sending) is not None:
            limit = self._reactor.callLater(LAST_SECONDS, self._give_up, sending)
            done: Deferred[None] = Deferred()
            sending.addBoth(lambda _: done.callback(None))
            await done
            if limit.active():
                limit.cancel()

    def _give_up(self, sending: Deferred[None]) -> None:
        self._complain("no answer in time")
        sending.cancel()

    def _begin(self) -> None:
        self._next = None
        sending = self._sending = Deferred.fromCoroutine(self._send_all())
        sending.addErrback(self._failed)
        sending.addBoth(self._ended)

    def _ended(self, _: None) -> None:
        self._sending = None
        if self._waiting and not self._stopped:
            self._next = self._reactor.callLater(DELAY_SECONDS, self._begin)

    def _failed(self, failure: Any) -> None:
        where = {"setting": "telemetry.otlp_endpoint", "ca_file": "SSL_CERT_FILE"}
        self._complain(in_words(failure.value, self._host, **where))

    async def _send_all(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            own = {name: value.reveal() for name, value in self._headers.items()}
            headers, body = {**own, "content-type": "application/json"}, request_body(batch)
            status, _ = await self._outbound.exchange("POST", self._url, headers, body, REQUEST_SECONDS)
            if status >= 300:
                self._complain(f"it answered {status}")

    def _complain(self, why: str) -> None:
        if not self._complained:
            self._complained = True
            self.log.warn("spans do not reach {url}: {why}", url=self._url, why=why)
