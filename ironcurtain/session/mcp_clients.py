"""Sessions for MCP clients that are already there: ``ironcurtain mcp-proxy``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ironcurtain.errors import SessionError, UsageError
from ironcurtain.session.model import Reply, SessionRequest, Usage
from ironcurtain.session.parts import Core

if TYPE_CHECKING:
    from ironcurtain.mcp_proxy.proxy import McpProxy


class McpClients:
    """
    Takes the place of an agent: MCP clients connect to a socket, or use standard input and output.

    The option ``socket`` names the socket; without it one client is served on standard input and output, and the
    session ends with it.
    """

    terminal = None

    def __init__(self, core: Core, proxy: McpProxy) -> None:
        self._proxy, self._socket, self._end = proxy, core.request.options.get("socket"), core.end

    @staticmethod
    def check_remote(request: SessionRequest) -> None:
        """:raises UsageError: it has no absolute path of a socket."""
        socket = request.options.get("socket")
        if not isinstance(socket, str) or not socket.startswith("/") or "\0" in socket:
            raise UsageError("mcp-proxy needs the option 'socket', an absolute path to which MCP clients connect")

    async def start(self) -> None:
        """Serve clients."""
        if self._socket:
            await self._proxy.listen(Path(self._socket))
        else:
            self._proxy.serve_stdio().addCallback(lambda _: self._end("the client has gone"))

    async def respond(self, message: str) -> Reply:
        """:raises SessionError: always; no agent could answer."""
        raise SessionError("MESSAGE_FAILED", "this session only serves tools: it takes no messages")

    async def stop(self) -> None:
        """The proxy disconnects them when it stops."""

    def usage(self) -> Usage:
        """:returns: nothing is used here."""
        return Usage()
