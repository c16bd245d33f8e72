"""
The HTTP headers that repeat parts of a request (MCP 2026-07-28, "Standard Request Headers").

Requests with an envelope have them; requests of earlier revisions do not.
"""

from __future__ import annotations

from typing import Any

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp_types import JSONRPCMessage, JSONRPCRequest, JSONRPCResponse

from ironcurtain.mcp_proxy.envelope import VERSION_KEY, is_enveloped
from ironcurtain.mcp_proxy.session import INITIALIZE

_CALL, _LIST = "tools/call", "tools/list"


class RequestHeaders:
    """The headers of the requests to one run of a server. It learns from the messages in both directions."""

    def __init__(self) -> None:
        self._version: str | None = None
        """The revision that a handshake negotiated."""
        self._open: dict[Any, str] = {}
        """The open requests whose results matter: their methods, by id."""
        self._tools: dict[str, dict[tuple[str, ...], str]] = {}
        """The headers of each tool's arguments, by their paths."""

    def of(self, message: JSONRPCMessage) -> dict[str, str]:
        """:returns: the headers of a message to the server."""
        if not isinstance(message, JSONRPCRequest):
            return self._negotiated()
        params = message.params or {}
        if message.method in (INITIALIZE, _LIST):
            self._open[message.id] = message.method
        if not is_enveloped(params):
            return self._negotiated()
        headers = {MCP_PROTOCOL_VERSION_HEADER: params["_meta"][VERSION_KEY], MCP_METHOD_HEADER: message.method}
        name = params.get(NAME_BEARING_METHODS.get(message.method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            if message.method == _CALL:
                headers |= mcp_param_headers(self._tools.get(name, {}), params.get("arguments") or {})
        return headers

    def learn(self, message: JSONRPCMessage) -> list[str]:
        """
        Learn from a message of the server. A result loses the tools that no client may use: their schemas describe
        invalid headers.

        :returns: the names of those tools.
        """
        method = self._open.pop(getattr(message, "id", None), "")
        if not isinstance(message, JSONRPCResponse):
            return []
        if method == INITIALIZE:
            self._version = str(message.result.get("protocolVersion"))
        listed = message.result.get("tools")
        if method != _LIST or self._version is not None or not isinstance(listed, list):
            return []
        refused = [tool for tool in listed if not self._described(tool)]
        message.result["tools"] = [tool for tool in listed if tool not in refused]
        return [str(tool.get("name")) for tool in refused]

    def _described(self, tool: Any) -> bool:
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            return True  # the catalogue refuses it
        schema = tool.get("inputSchema")
        if find_invalid_x_mcp_header(schema) is not None:
            self._tools.pop(tool["name"], None)
            return False
        self._tools[tool["name"]] = x_mcp_header_map(schema)
        return True

    def _negotiated(self) -> dict[str, str]:
        # The revision is sent after the handshake (MCP 2025-11-25, "Protocol Version Header").
        return {} if self._version is None else {MCP_PROTOCOL_VERSION_HEADER: self._version}
