"""What the inside of every agent's container looks like: paths, addresses, and the environment all agents get."""

from __future__ import annotations

from collections.abc import Mapping

WORKSPACE = "/workspace"
"""Where the agent finds the files that it works on."""

HOME = "/home/agent"
"""The agent's home; it outlives the container."""

ORIENTATION = "/etc/ironcurtain"
"""Where :class:`~ironcurtain.agents.adapter.File` values of the place ``orientation`` are, read-only."""

CA_FILE = f"{ORIENTATION}/ca.pem"
"""The only certificate authority that there is: the MITM proxy's."""

PROXY_URL = "http://127.0.0.1:18080"
"""The MITM proxy, as the container's entry point makes it reachable."""

SERVER = "ironcurtain"
"""Name of the MCP proxy among an agent's MCP servers."""

MCP_COMMAND = ("socat", "STDIO", "UNIX-CONNECT:/run/ironcurtain/proxy.sock")
"""Joins an agent that starts MCP servers as processes to the MCP proxy."""

_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_CA_VARIABLES = (
    *("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "CODEX_CA_CERTIFICATE"),
    *("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "REQUESTS_CA_BUNDLE"),
)


def environment() -> Mapping[str, str]:
    """:returns: what every agent finds in its environment."""
    # A server that the agent starts to try its work is on the loopback address, and is no business of the proxy.
    here = dict.fromkeys(("NO_PROXY", "no_proxy"), "localhost,127.0.0.1,::1")
    return {
        "HOME": HOME,
        "LANG": "C.UTF-8",
        **dict.fromkeys(_PROXY_VARIABLES, PROXY_URL),
        **here,
        **dict.fromkeys(_CA_VARIABLES, CA_FILE),
    }
