"""Google's Gemini API."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ironcurtain.llm.google import GoogleDialect
from ironcurtain.llm.model import TokenUsage
from ironcurtain.providers.bodies import GATEWAYS, cut, never
from ironcurtain.providers.client_headers import COMMON
from ironcurtain.providers.provider import BodyRules, CountedTokens, ModelProvider, RequestRefusal, TokenCount, fold

_GOOGLE_OWN: Final = frozenset(("functiondeclarations", "computeruse"))
"""Google's tools that the agent runs."""


def _google_tools(tools: Any) -> str | None:
    if tools is None:
        return None
    for tool in tools if isinstance(tools, list) else [tools]:
        for name, value in tool.items() if isinstance(tool, dict) else [("?", tool)]:
            if value is not None and fold(name) not in _GOOGLE_OWN:
                return f"run the tool {cut(name)}"
    return None


FIELDS: Final = frozenset(
    (
        "cachedContent",
        "cached_content",
        "contents",
        "generationConfig",
        "generation_config",
        "labels",
        "safetySettings",
        "safety_settings",
        "serviceTier",
        "service_tier",
        "store",
        "systemInstruction",
        "system_instruction",
        "toolConfig",
        "tool_config",
        "tools",
    )
)
"""The fields of a request to a model; Google's APIs accept both spellings."""


def _nested(request: Any) -> str | None:
    unknown = [] if not isinstance(request, dict) else sorted(request.keys() - FIELDS - {"model"})
    return f"take {cut(unknown[0])}, which is unknown" if unknown else None


_BODIES: Final = BodyRules(
    {
        "cachedcontent": never("use stored content, whose tools cannot be seen here"),
        "fileuri": never("fetch an address or a stored file"),
        "generatecontentrequest": _nested,
        "tools": _google_tools,
        **{
            name: never(deed)
            for name, deed in (
                ("codeexecution", "run code"),
                ("filesearch", "search stored files"),
                ("googlemaps", "ask Google Maps"),
                ("googlesearch", "search the web"),
                ("googlesearchretrieval", "search the web"),
                ("mcpservers", "connect to MCP servers"),
                ("urlcontext", "fetch addresses"),
            )
        },
    },
    frozenset(
        (
            "args",
            "labels",
            "parameters",
            "parametersjsonschema",
            "response",
            "responsejsonschema",
            "responseschema",
        )
    ),
)
_GENERATE: Final = replace(_BODIES, fields=FIELDS, acting=GATEWAYS)
_COUNT: Final = replace(
    _BODIES, fields=FIELDS | {"generateContentRequest", "generate_content_request"}, acting=GATEWAYS
)


class _Counts(msgspec.Struct, rename="camel"):
    prompt_token_count: TokenCount = 0
    cached_content_token_count: TokenCount = 0
    tool_use_prompt_token_count: TokenCount = 0
    candidates_token_count: TokenCount = 0
    thoughts_token_count: TokenCount = 0


class _Candidate(msgspec.Struct, rename="camel"):
    finish_reason: str | None = None


class _Answer(msgspec.Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _Counts | None = None
    model_version: str | None = None


_answers = msgspec.json.Decoder(_Answer)


def _count(data: bytes | memoryview, before: TokenUsage) -> CountedTokens:
    answer = _answers.decode(data)
    if (counts := answer.usage_metadata) is None:
        return CountedTokens("", None, False)
    usage = TokenUsage(
        max(0, counts.prompt_token_count - counts.cached_content_token_count) + counts.tool_use_prompt_token_count,
        counts.candidates_token_count + counts.thoughts_token_count,
        counts.cached_content_token_count,
    )
    cut = any(candidate.finish_reason == "MAX_TOKENS" for candidate in answer.candidates or ())
    return CountedTokens(answer.model_version or "", usage, True, cut)


_ERRORS: Final = {403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}


def _error(refusal: RequestRefusal, message: str) -> dict[str, Any]:
    status = _ERRORS.get(refusal.status, "INVALID_ARGUMENT")
    return {"error": {"code": refusal.status, "message": message, "status": status}}


GOOGLE: Final = ModelProvider(
    name="google",
    host="generativelanguage.googleapis.com",
    endpoints=tuple(
        f"POST /v1beta/models/*:{call}" for call in ("generateContent", "streamGenerateContent", "countTokens")
    ),
    calls={":generateContent": _GENERATE, ":streamGenerateContent": _GENERATE, ":countTokens": _COUNT},
    headers=COMMON | {"x-gemini-api-privileged-user-id", "x-goog-api-client", "x-server-timeout"},
    key_header=GoogleDialect.key_header,
    key_prefix="AIza",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    models=GoogleDialect.models,
    other_credentials=frozenset(("x-gdata-key", "x-goog-user-project")),
    query={"alt": re.compile("sse|json")},
    bodies=_BODIES,
    error=_error,
    count=_count,
)
