"""No upstream proxies."""

from __future__ import annotations

from ironcurtain.home.network_section import Network
from ironcurtain.http.upstream_proxies import UpstreamProxies

DIRECT = UpstreamProxies(None, Network(), {})
"""All connections are direct."""
