"""An MCP server behind HTTP that misbehaves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twisted.web.http_headers import Headers
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request

KEY = "remote-key-4f6a9c2e"

REDIRECTS = {
    b"/redirect": (307, f"https://127.0.0.2:1/{KEY}"),
    b"/slash": (307, "/long"),
    b"/moved": (301, "https://127.0.0.1:{port}/long"),
    b"/found": (302, "long"),
    b"/see-other": (303, f"/{KEY}"),
    b"/nowhere": (308, ""),
    b"/somebody": (308, f"https://{KEY}@127.0.0.1:{{port}}/long"),
}


class Liar(Resource):
    """Does what its path says. ``seen`` is what it was sent: method, path and headers."""

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[bytes, bytes, Headers]] = []
        self.answers: list[dict[str, Any]] = []
        self.questions = b""

    def render(self, request: Request) -> bytes | int:
        assert request.path is not None
        self.seen.append((request.method, request.path, request.requestHeaders))
        if request.method == b"DELETE" and request.path == b"/forgetful":
            return NOT_DONE_YET
        if request.method == b"GET" and request.path == b"/streams":
            return self._stream(request)
        if request.method != b"POST":
            request.setResponseCode(404 if request.path == b"/long" else 405)
            return b""
        assert request.content is not None
        message = json.loads(request.content.read())
        request.setHeader("content-type", "application/json")
        if "method" not in message:
            self.answers.append(message)
        if request.path == b"/drain":
            request.setResponseCode(307)
            request.setHeader("location", "/long")
            request.setHeader("content-type", "text/event-stream")
            return b"x" * 100_000
        elif request.path in REDIRECTS:
            status, location = REDIRECTS[request.path]
            request.setResponseCode(status)
            if location:
                request.setHeader("location", location.format(port=request.getHost().port))
        elif request.path == b"/unauthorized":
            request.setResponseCode(401)
        elif (request.path == b"/deaf" and message.get("method") == "notifications/cancelled") or (
            "method" not in message and request.path == b"/streams"
        ):
            return NOT_DONE_YET
        elif "id" not in message or "method" not in message:
            request.setResponseCode(202)
        elif message["method"] == "server/discover":
            if request.path == b"/modern":
                return self._answer(message, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
            request.setResponseCode(404)
        elif message["method"] == "subscriptions/listen":
            request.setHeader("content-type", "text/event-stream")
            return b'data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n'
        elif message["method"] == "initialize":
            request.setHeader("mcp-session-id", f"s{len(self.seen)}")
            return self._answer(message, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}})
        elif message["method"] == "tools/list":
            echo = {"name": "echo", "inputSchema": {"type": "object", "properties": {"value": {}}}}
            return self._answer(message, {"tools": [echo]})
        else:
            return self._misbehave(request, message)
        return b""

    def _stream(self, request: Request) -> bytes:
        """Ask to be asked again at once, give something to remember, and ask what there is to ask."""
        request.setHeader("content-type", "text/event-stream")
        request.setHeader("set-cookie", f"n{len(self.seen)}=x")
        return b"retry: 0\n\n" + self.questions

    def _answer(self, message: Mapping[str, Any], result: Any) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()

    def _misbehave(self, request: Request, message: Mapping[str, Any]) -> bytes | int:
        content = {"content": [{"type": "text", "text": "x" * 100_000}]}
        if request.path == b"/forgetful":
            request.setResponseCode(404)
        elif request.path == b"/compressed":
            request.setHeader("content-encoding", "gzip")
        elif request.path in (b"/long", b"/streams"):
            return self._answer(message, content)
        elif request.path == b"/event":
            request.setHeader("content-type", "text/event-stream")
            return b"data: " + self._answer(message, content) + b"\n\n"
        elif request.path == b"/other":
            return self._answer({"id": 7777}, content)
        elif request.path == b"/no-json":
            return b"{"
        elif request.path == b"/silent":
            return NOT_DONE_YET
        return b""
