"""Events about the MCP servers of a session."""

from __future__ import annotations

import msgspec

from ironcurtain.session.event import Event


class ServerDown(Event, frozen=True, tag="server_down"):
    """
    An MCP server is down, so the agent lacks its tools.

    :param reason: why it failed; empty while it is starting.
    """

    server: str
    reason: str = ""


class ServersStarting(Event, frozen=True, tag="servers_starting"):
    """
    The MCP servers that take long to start, and since when, in seconds since the epoch.

    Each event replaces the one before; the last one has none.
    """

    servers: dict[str, float] = msgspec.field(default_factory=dict)


ServerEvent = ServerDown | ServersStarting
