"""Anthropic's Messages API as a server sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from tests.model_stub import naming
from tests.model_stub.anthropic_events import error_event as error_event
from tests.model_stub.anthropic_events import events as events
from tests.model_stub.anthropic_events import whole as whole
from tests.model_stub.anthropic_rules import check_body as check_body
from tests.model_stub.dialect import Asked, last_text, texts
from tests.model_stub.dialect import Invalid as Invalid
from tests.model_stub.replies import Answer, Block, CustomTool, McpCall, Tool

NAME = "anthropic"

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""The API's own words for statuses."""

_SEARCH = "ToolSearch"
"""Claude Code's tool by which the model finds others; where it is declared, those of MCP servers mostly are not."""


SUBSCRIPTION = "sk-ant-oat01-"
"""How tokens of subscriptions begin; they need the following beta."""

OAUTH_BETA = "oauth-2025-04-20"


def handles(method: str, path: str) -> bool:
    return method == "POST" and path in ("/v1/messages", "/v1/messages/count_tokens")


def key(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme == "Bearer" and token.startswith(SUBSCRIPTION) and OAUTH_BETA in headers.get("anthropic-beta", ""):
        return token
    return headers.get("x-api-key", "")


def check_headers(headers: Mapping[str, str], keys: frozenset[str]) -> None:
    """
    :param headers: with names in lower case.
    :raises Invalid: key, version or content type are missing or wrong.
    """
    if key(headers) not in keys:
        raise Invalid("invalid x-api-key" if key(headers) else "x-api-key header is required", 401)
    if headers.get("anthropic-version") not in ("2023-06-01", "2023-01-01"):
        raise Invalid("anthropic-version: header is required")
    if not headers.get("content-type", "").startswith("application/json"):
        raise Invalid("content-type must be application/json")


def asked(path: str, headers: Mapping[str, str], body: bytes) -> Asked:
    counting = path.endswith("/count_tokens")
    betas = headers.get("anthropic-beta", "").replace(" ", "").split(",")
    request = check_body(_with_limit(body) if counting else body, betas)
    messages = [message for message in request["messages"] if message["role"] != "system"]
    aside = [message for message in request["messages"] if message["role"] == "system"]
    last = messages[-1]["content"]
    blocks = last if isinstance(last, list) else [{"type": "text", "text": last}]
    said = [last_text(message["content"]) for message in messages if message["role"] == "user"]
    return Asked(
        body=request,
        model=request["model"],
        stream=bool(request.get("stream")),
        counting=counting,
        system="\n".join([texts(request.get("system")), *(texts(message["content"]) for message in aside)]),
        tools=tuple(tool["name"] for tool in request.get("tools", [])),
        results=tuple(texts(block.get("content")) for block in blocks if block["type"] == "tool_result"),
        said=next((text for text in reversed(said) if text), ""),
        schema=_schema(request),
    )


def spoken(answer: Answer, asked: Asked) -> Answer:
    return msgspec.structs.replace(answer, content=tuple(_spoken(content, asked) for content in answer.content))


def counted(tokens: int) -> bytes:
    return json.dumps({"input_tokens": tokens}).encode()


def models() -> bytes:
    names = ("claude-opus-5-5", "claude-sonnet-4-5", "claude-haiku-4-5")
    listed = [
        {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in names
    ]
    return json.dumps({"data": listed, "has_more": False, "first_id": names[0], "last_id": names[-1]}).encode()


def error_body(status: int, message: str, type: str = "", *, retry_after: str = "") -> bytes:
    error = {"type": type or ERROR_TYPES.get(status, "api_error"), "message": message or "Error"}
    return json.dumps({"type": "error", "error": error, "request_id": "req_stub"}).encode()


def _with_limit(body: bytes) -> bytes:
    # Counting takes no max_tokens; everything else is as for an answer.
    try:
        return json.dumps({**json.loads(body), "max_tokens": 1}).encode()
    except (ValueError, TypeError):
        return body


def _schema(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    wanted: Any = request.get("output_config", {}).get("format") or {}
    schema: Mapping[str, Any] | None = wanted.get("schema")
    return schema


def _spoken(content: Block, asked: Asked) -> Block:
    match content:
        case CustomTool(name):
            raise Invalid(f"the stub: this API has no tools that take any text, and {name} is to be one")
        case McpCall(name, arguments, server, pieces):
            known = naming.declared(content, asked.tools)
            if not known and _SEARCH not in asked.tools:
                raise naming.missing(content, asked.tools)
            return Tool(known or f"mcp__{server}__{name}", arguments, pieces=pieces)
    return content
