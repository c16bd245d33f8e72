"""Sessions of ``ironcurtain mcp-proxy``, which serve existing MCP clients instead of starting an agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ironcurtain.errors import SessionError, UsageError
from ironcurtain.session.model import Reply, SessionRequest, Usage
from ironcurtain.session.parts import Core

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.gate import Gate
    from ironcurtain.mcp_proxy.proxy import McpProxy


class McpClients:
    """
    The agent part of such a session: it serves MCP clients.

    The option ``socket`` is the path to which clients connect. Without it, one client is served on standard input and
    output, and the session ends when that client disconnects.
    """

    terminal = None
    model = ""

    def __init__(self, core: Core, proxy: McpProxy) -> None:
        self._proxy, self._socket, self._end = proxy, core.request.options.get("socket"), core.end

    @staticmethod
    def check_remote(request: SessionRequest) -> None:
        """:raises UsageError: the option ``socket`` is not an absolute path."""
        socket = request.options.get("socket")
        if not isinstance(socket, str) or not socket.startswith("/") or "\0" in socket:
            raise UsageError("mcp-proxy needs the option 'socket', an absolute path to which MCP clients connect")

    @property
    def gate(self) -> Gate:
        """Where the clients' calls are judged; it knows the tools."""
        return self._proxy.gate

    async def start(self) -> None:
        """Start serving clients."""
        if self._socket:
            await self._proxy.listen(Path(self._socket))
        else:
            self._proxy.serve_stdio().addCallback(lambda _: self._end("the client disconnected"))

    async def respond(self, message: str) -> Reply:
        """:raises SessionError: always, since there is no agent that could answer."""
        raise SessionError("MESSAGE_FAILED", "this session only serves tools and does not accept messages")

    async def stop(self) -> None:
        """Do nothing: the proxy disconnects the clients when it stops."""

    def usage(self) -> Usage:
        """:returns: zero usage."""
        return Usage()
