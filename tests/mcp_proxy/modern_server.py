"""An MCP server without a handshake (revision 2026-07-28); it refuses whatever that revision does not have."""

from __future__ import annotations

import json
import sys
from typing import Any

VERSION = "2026-07-28"
TOOLS = ("echo", "ask", "insist", "sample", "change")
PREFIX = "io.modelcontextprotocol/"
listening: Any = None


def send(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(identifier: Any, **result: Any) -> None:
    send({"id": identifier, "result": {"resultType": "complete", **result}})


def text(identifier: Any, value: Any) -> None:
    answer(identifier, content=[{"type": "text", "text": json.dumps(value)}])


def need(identifier: Any, method: str, params: dict[str, Any]) -> None:
    question = {"method": method, "params": params}
    result = {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "state"}
    send({"id": identifier, "result": result})


FORM = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {"x": {"type": "integer"}}}}


def call(identifier: Any, params: dict[str, Any]) -> None:
    name, answers = params["name"], params.get("inputResponses")
    if name == "echo":
        text(identifier, {key: value for key, value in params.items() if key != "_meta"})
    elif name == "change":
        meta = {PREFIX + "subscriptionId": listening}
        send({"method": "notifications/tools/list_changed", "params": {"_meta": meta}})
        text(identifier, "changed")
    elif answers is not None and name != "insist":
        assert params["requestState"] == "state"
        text(identifier, answers)
    elif name == "sample":
        need(identifier, "sampling/createMessage", {"messages": [], "maxTokens": 1})
    else:
        need(identifier, "elicitation/create", FORM)


def handle(identifier: Any, method: str, params: dict[str, Any]) -> None:
    global listening
    if method == "initialize" or params.get("_meta", {}).get(PREFIX + "protocolVersion") != VERSION:
        error = {"code": -32022, "message": "no handshake", "data": {"supported": [VERSION], "requested": "x"}}
        send({"id": identifier, "error": error})
    elif method == "server/discover":
        capabilities = {"tools": {"listChanged": True}}
        answer(identifier, supportedVersions=[VERSION], capabilities=capabilities, instructions="Ask me.")
    elif method == "tools/list":
        schema = {"type": "object", "properties": {}, "additionalProperties": True}
        answer(
            identifier, tools=[{"name": name, "inputSchema": schema} for name in TOOLS], ttlMs=0, cacheScope="private"
        )
    elif method == "tools/call":
        call(identifier, params)
    elif method == "subscriptions/listen":
        listening = identifier
        meta = {PREFIX + "subscriptionId": identifier}
        sent = {"_meta": meta, "notifications": params["notifications"]}
        send({"method": "notifications/subscriptions/acknowledged", "params": sent})
    else:
        send({"id": identifier, "error": {"code": -32601, "message": "unknown method"}})


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        handle(message["id"], message["method"], message.get("params") or {})
