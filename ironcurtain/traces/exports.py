"""The collectors that the sessions of one process export to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ironcurtain.home.sections import Telemetry
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.traces.otlp import Export

if TYPE_CHECKING:
    from ironcurtain.traces.exporter import SpanExporter


class Exports:
    """
    :param environ: may have headers, as :class:`~ironcurtain.traces.exporter.SpanExporter` says.
    """

    def __init__(self, reactor: Any, environ: Mapping[str, str]) -> None:
        self._reactor, self._environ = reactor, environ
        self._exporters: dict[str, SpanExporter] = {}

    def find(self, telemetry: Telemetry, proxies: UpstreamProxies) -> Export | None:
        """:returns: what exports a span as the settings say; ``None`` if they want none exported."""
        if not telemetry.otlp_endpoint or not telemetry.enabled:
            return None
        from ironcurtain.traces.exporter import SpanExporter  # slow to import

        if (exporter := self._exporters.get(telemetry.otlp_endpoint)) is None:
            exporter = SpanExporter(self._reactor, telemetry.otlp_endpoint, proxies, self._environ)
            self._exporters[telemetry.otlp_endpoint] = exporter
        return exporter.add

    async def stop(self) -> None:
        """Export what waits, but not for long."""
        for exporter in self._exporters.values():
            await exporter.stop()
