"""Anthropic's Messages API."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ironcurtain.llm.anthropic import AnthropicDialect
from ironcurtain.llm.model import TokenUsage
from ironcurtain.providers.bodies import GATEWAYS, kinds, never, not_of_type, quote
from ironcurtain.providers.client_headers import COMMON, GENERATED_CLIENTS
from ironcurtain.providers.provider import BodyRules, CountedTokens, ModelProvider, RequestRefusal, TokenCount


def _anthropic_source(source: Any) -> str | None:
    if not isinstance(source, dict) or source.get("type") in ("base64", "text", "content"):
        return None  # in search results it is a title
    return f"get content from a source of type {quote(source.get('type'))}"


_OF_FALLBACKS: Final = frozenset(("max_tokens", "model", "output_config", "speed", "thinking"))


def _fallbacks(fallbacks: Any) -> str | None:
    if fallbacks in (None, "default"):
        return None
    for other in fallbacks if isinstance(fallbacks, list) else [fallbacks]:
        if not isinstance(other, dict) or not other.keys() <= _OF_FALLBACKS:
            return "use another model in an unknown way"
    return None


_OWN: Final = r"custom|(?:bash|computer|memory|text_editor|tool_search_tool_(?:bm25|regex))_\d{8}"
"""Types of tools that the agent runs."""

_OF_TOOLS: Final = frozenset(
    ("allowed_callers", "cache_control", "definition", "input_examples", "input_schema", "ownership_metadata")
)

_tools: Final = kinds(re.compile(_OWN), _OF_TOOLS, untyped=True)
_added_tools: Final = kinds(re.compile(rf"tool_definition|tool_reference|{_OWN}"), _OF_TOOLS, untyped=True)


def _added_tool(tool: Any) -> str | None:
    return _added_tools(tool) if isinstance(tool, dict) else None


_BODIES: Final = BodyRules(
    {
        "container": never("run code in a container"),
        "definition": _tools,
        "fallbacks": _fallbacks,
        "fileid": never("use a stored file"),
        "mcpservers": never("connect to MCP servers"),
        "source": _anthropic_source,
        "tool": _added_tool,
        "tools": _tools,
        "type": not_of_type(
            re.compile(r"(?i:container_upload|mcp_toolset|(?:code_execution|web_fetch|web_search)(?:_\d+)?)")
        ),
    },
    frozenset(("input", "inputexamples", "inputschema", "metadata", "schema")),
)
_MESSAGES: Final = replace(
    _BODIES,
    # The Messages API with its betas, without what selects who pays (billing_policy, user_profile_id, workspace_id)
    fields=frozenset(
        (
            "cache_control",
            "compaction",
            "container",
            "context_management",
            "diagnostics",
            "fallback_credit_token",
            "fallbacks",
            "inference_geo",
            "max_tokens",
            "mcp_servers",
            "messages",
            "metadata",
            "model",
            "output_config",
            "output_format",
            "service_tier",
            "speed",
            "stop_sequences",
            "stream",
            "system",
            "temperature",
            "thinking",
            "tool_choice",
            "tools",
            "top_k",
            "top_p",
        )
    ),
    acting={**GATEWAYS, "thread": "continue a stored conversation"},
)
_HEADERS: Final = (
    COMMON
    | GENERATED_CLIENTS
    | {
        "anthropic-beta",
        "anthropic-dangerous-direct-browser-access",
        "anthropic-version",
        # Claude Code
        "x-anthropic-additional-protection",
        "x-app",
        "x-cc-atis",
        "x-cc-compaction-request",
        "x-claude-1p-request-class",
        "x-claude-code-agent-id",
        "x-claude-code-agent-type",
        "x-claude-code-auxiliary-type",
        "x-claude-code-compaction",
        "x-claude-code-context-compacted",
        "x-claude-code-parent-agent-id",
        "x-claude-code-prev-tool-durations",
        "x-claude-code-prompt-id",
        "x-claude-code-request-class",
        "x-claude-code-sandy-plover",
        "x-claude-code-session-id",
        "x-claude-code-wiggly-dove",
        "x-client-app",
    }
)


class _Counts(msgspec.Struct):
    input_tokens: TokenCount | None = None
    output_tokens: TokenCount | None = None
    cache_read_input_tokens: TokenCount | None = None
    cache_creation_input_tokens: TokenCount | None = None


class _Delta(msgspec.Struct):
    stop_reason: str | None = None


class _Message(msgspec.Struct):
    model: str | None = None
    usage: _Counts | None = None
    stop_reason: str | None = None


class _Answer(_Message):
    delta: _Delta | None = None
    message: _Message | None = None


_answers = msgspec.json.Decoder(_Answer)


def _count(data: bytes | memoryview, before: TokenUsage) -> CountedTokens:
    # A stream has the prompt's count at its start, in `message`, and all counts at its end.
    answer = _answers.decode(data)
    model, usage, complete = "", None, False
    for part, whole in ((answer.message, False), (answer, True)):
        if part is not None:
            model = part.model or model
            if part.usage is not None:
                usage, complete = _usage(part.usage, usage or before), whole
    stop = answer.stop_reason or (answer.delta.stop_reason if answer.delta is not None else None)
    return CountedTokens(model, usage, complete, stop == "max_tokens")


def _usage(counts: _Counts, before: TokenUsage) -> TokenUsage:
    return TokenUsage(
        _latest(counts.input_tokens, before.input_tokens),
        _latest(counts.output_tokens, before.output_tokens),
        _latest(counts.cache_read_input_tokens, before.cache_read_tokens),
        _latest(counts.cache_creation_input_tokens, before.cache_write_tokens),
    )


def _latest(now: int | None, before: int) -> int:
    return before if now is None else now


_ERRORS: Final = {403: "permission_error", 413: "request_too_large", 503: "overloaded_error"}


def _error(refusal: RequestRefusal, message: str) -> dict[str, Any]:
    kind = _ERRORS.get(refusal.status, "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


ANTHROPIC: Final = ModelProvider(
    name="anthropic",
    host="api.anthropic.com",
    endpoints=("POST /v1/messages", "POST /v1/messages/count_tokens"),
    calls={"/messages": _MESSAGES, "/count_tokens": _MESSAGES},
    headers=_HEADERS,
    key_header=AnthropicDialect.key_header,
    key_prefix="sk-ant-api03-",
    key_variables=("ANTHROPIC_API_KEY",),
    models=AnthropicDialect.models,
    other_credentials=frozenset(),
    query={"beta": re.compile("true|false")},
    bodies=_BODIES,
    error=_error,
    count=_count,
    absent=(
        *("GET /api/claude_code/policy_limits", "GET /api/claude_code/settings", "GET /api/claude_cli/bootstrap"),
        *("GET /api/oauth/profile", "GET /api/oauth/usage", "GET /api/oauth/account/settings", "GET /v1/mcp_servers"),
        *("GET /api/oauth/claude_cli/roles", "GET /api/directory/server-urls", "POST /api/event_logging/v2/batch"),
        *("POST /api/eval/*", "GET /api/claude_code_penguin_mode", "GET /api/claude_code/organizations/*"),
    ),
)
