"""The HTTP headers that repeat parts of a request."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import decode_header_value
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.envelope import MODERN_VERSION, enveloped
from ironcurtain.mcp_proxy.http_headers import RequestHeaders


def modern(method: str, **params: Any) -> JSONRPCRequest:
    """:returns: a request with an envelope."""
    return JSONRPCRequest(jsonrpc="2.0", id=1, method=method, params=enveloped(params, {}))


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """:returns: a tool's description."""
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


class HeadersTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.headers = RequestHeaders()

    def learn(self, *tools: Any) -> tuple[list[str], list[Any]]:
        """:returns: the names of the tools that may not be used, and the others."""
        self.headers.of(modern("tools/list"))
        answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": list(tools)})
        return self.headers.learn(answer), answer.result["tools"]

    @given(st.text(), st.sampled_from([("tools/call", "name"), ("prompts/get", "name"), ("resources/read", "uri")]))
    def test_method_and_name_are_repeated(self, name: str, kind: tuple[str, str]) -> None:
        found = RequestHeaders().of(modern(kind[0], **{kind[1]: name}))
        self.assertEqual((found["mcp-protocol-version"], found["mcp-method"]), (MODERN_VERSION, kind[0]))
        self.assertEqual(decode_header_value(found["mcp-name"]), name)
        self.assertTrue(found["mcp-name"].isascii() and found["mcp-name"].isprintable())

    def test_arguments_are_repeated_where_a_schema_says_so(self) -> None:
        schema = {"type": "string", "x-mcp-header": "Region"}
        self.assertEqual(self.learn(tool("t", region=schema)), ([], [tool("t", region=schema)]))
        call = modern("tools/call", name="t", arguments={"region": "é", "other": "x"})
        self.assertEqual(self.headers.of(call)["Mcp-Param-Region"], "=?base64?w6k=?=")
        absent = modern("tools/call", name="t", arguments={})
        self.assertEqual(set(self.headers.of(absent)), {"mcp-protocol-version", "mcp-method", "mcp-name"})

    def test_tools_with_invalid_headers_are_left_out(self) -> None:
        wrong = [tool("w", a={"type": "string", "x-mcp-header": value}) for value in ("", "a b", "a\r\nb", 7)]
        self.assertEqual(self.learn(*wrong, tool("good")), (["w"] * 4, [tool("good")]))

    def test_a_negotiated_revision_is_repeated_alone(self) -> None:
        hello = JSONRPCRequest(jsonrpc="2.0", id=7, method="initialize", params={})
        self.assertEqual(self.headers.of(hello), {})
        self.headers.learn(JSONRPCResponse(jsonrpc="2.0", id=7, result={"protocolVersion": "2025-06-18"}))
        told = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
        listed = JSONRPCRequest(jsonrpc="2.0", id=1, method="tools/list")
        for message in (told, listed):
            self.assertEqual(self.headers.of(message), {"mcp-protocol-version": "2025-06-18"})
        wrong = [tool("w", a={"type": "string", "x-mcp-header": "a b"})]
        answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={"tools": wrong})
        self.assertEqual((self.headers.learn(answer), answer.result["tools"]), ([], wrong))
