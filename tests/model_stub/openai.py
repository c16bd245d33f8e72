"""OpenAI's Responses API as a server sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from tests.model_stub import naming
from tests.model_stub.dialect import Asked, Invalid, last_text, texts
from tests.model_stub.openai_events import error_event as error_event
from tests.model_stub.openai_events import events as events
from tests.model_stub.openai_events import whole as whole
from tests.model_stub.openai_rules import check_body
from tests.model_stub.replies import Answer, Block, CustomTool, McpCall, Tool

NAME = "openai"

ERROR_TYPES = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "permission_denied"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    500: ("server_error", "server_error"),
    503: ("service_unavailable_error", "server_is_overloaded"),
    529: ("service_unavailable_error", "server_is_overloaded"),
}
"""The API's own words for statuses: type and code."""

CODE_MODE = "exec"
"""Codex's tool that takes JavaScript; where it is declared, those of MCP servers are not."""


def handles(method: str, path: str) -> bool:
    return method == "POST" and path in ("/v1/responses", "/v1/responses/input_tokens", "/backend-api/codex/responses")


def key(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def check_headers(headers: Mapping[str, str], keys: frozenset[str]) -> None:
    if not key(headers):
        raise Invalid("Missing bearer authentication in header", 401)
    if key(headers) not in keys:
        raise Invalid("Incorrect API key provided.", 401)
    if not headers.get("content-type", "").startswith("application/json"):
        raise Invalid("Unsupported content type: the API accepts 'application/json'.")


def asked(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    request = check_body(body)
    given = request["input"]
    items = given if isinstance(given, list) else [{"type": "message", "role": "user", "content": given}]
    messages = [item for item in items if item.get("type", "message") == "message"]
    added = [tool for item in items if item.get("type") == "additional_tools" for tool in item.get("tools", [])]
    told = [texts(message["content"]) for message in messages if message["role"] in ("system", "developer")]
    said = [last_text(message["content"]) for message in messages if message["role"] == "user"]
    return Asked(
        body=request,
        model=request["model"],
        stream=bool(request.get("stream")),
        counting=path.endswith("/input_tokens"),
        system="\n".join([request.get("instructions") or "", *told]),
        tools=tuple(_names([*request.get("tools", []), *added])),
        results=tuple(_results(items)),
        said=said[-1] if said else "",
        schema=request.get("text", {}).get("format", {}).get("schema"),
    )


def spoken(answer: Answer, asked: Asked) -> Answer:
    return msgspec.structs.replace(answer, content=tuple(_spoken(content, asked) for content in answer.content))


def counted(tokens: int) -> bytes:
    return json.dumps({"object": "response.input_tokens", "input_tokens": tokens}).encode()


def models() -> bytes:
    names = ("gpt-6.1-sol", "gpt-5.4", "gpt-4.1")
    listed = [{"id": name, "object": "model", "created": 1_780_000_000, "owned_by": "openai"} for name in names]
    return json.dumps({"object": "list", "data": listed}).encode()


def error_body(status: int, message: str, type: str = "", *, retry_after: str = "") -> bytes:
    known, code = ERROR_TYPES.get(status, ("server_error", None))
    return json.dumps(
        {"error": {"message": message or "Error", "type": type or known, "param": None, "code": code}}
    ).encode()


def _names(tools: Sequence[Mapping[str, Any]], prefix: str = "") -> Iterator[str]:
    for tool in tools:
        if tool["type"] == "namespace":
            yield from _names(tool.get("tools", []), f"{tool['name']}.")
        else:
            yield prefix + tool.get("name", tool["type"])


def _results(items: Sequence[Mapping[str, Any]]) -> list[str]:
    found: list[str] = []
    for item in reversed(items):
        kind = item.get("type", "message")
        if kind in ("function_call", "custom_tool_call", "reasoning") or item.get("role") in ("user", "assistant"):
            break
        if kind.endswith("_output"):
            found.insert(0, texts(item["output"]))
    return found


def _spoken(content: Block, asked: Asked) -> Block:
    if not isinstance(content, McpCall):
        return content
    known = naming.declared(content, asked.tools)
    if known:
        namespace, _, name = known.rpartition(".")
        return Tool(name, content.arguments, pieces=content.pieces, namespace=namespace)
    if any(tool.rpartition(".")[2] == CODE_MODE for tool in asked.tools):
        return CustomTool(CODE_MODE, naming.script(content), content.pieces)
    raise naming.missing(content, asked.tools)
