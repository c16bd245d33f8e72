"""OpenAI's Responses and Chat Completions APIs."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ironcurtain.llm.model import TokenUsage
from ironcurtain.llm.openai import OpenAiDialect, separated
from ironcurtain.providers.bodies import GATEWAYS, content, cut, kinds, never, not_of_type, only_data
from ironcurtain.providers.client_headers import COMMON, GENERATED_CLIENTS
from ironcurtain.providers.provider import BodyRules, CountedTokens, ModelProvider, RequestRefusal, TokenCount

_IN_CONTAINER: Final = "run commands in a container"


def _stored_prompt(prompt: Any) -> str | None:
    return "use a stored prompt, whose tools cannot be seen here" if isinstance(prompt, dict) else None


def _hosted_environment(environment: Any) -> str | None:
    hosted = isinstance(environment, dict) and environment.get("type") != "local"
    return _IN_CONTAINER if hosted else None


def _searching_model(model: Any) -> str | None:
    if not isinstance(model, str):
        return None
    if "@preset" in model.lower():
        return "use stored settings, whose tools cannot be seen here"
    searches = re.search(r"(?i)-search|deep-research|:online", model)
    return f"search the web, as the model {cut(model)} always does" if searches else None


_own_kind: Final = kinds(
    re.compile(
        r"function|custom|namespace|apply_patch|computer|computer_use_preview|image_generation|local_shell|shell"
        r"|tool_search"
    ),
    frozenset(
        (
            "allowed_callers",
            "cache_control",
            "custom",
            "environment",
            "format",
            "function",
            "input_image_mask",
            "output_schema",
            "parameters",
            "reasoning",
            "tools",
        )
    ),
    untyped=False,
)


def _tools(tools: Any) -> str | None:
    if tools is None:
        return None
    if (deed := _own_kind(tools)) is not None:
        return deed
    for tool in tools if isinstance(tools, list) else [tools]:
        environment = tool.get("environment")
        local = isinstance(environment, dict) and environment.get("type") == "local"
        if tool["type"] == "shell" and not local:
            return _IN_CONTAINER
    return None


_BODIES: Final = BodyRules(
    {
        "audiourl": only_data("fetch an address"),
        "background": never("work in the background, where the tokens cannot be counted"),
        "connectorid": never("connect to a service"),
        "data": content("fetch an address"),
        "environment": _hosted_environment,
        "filedata": content("fetch an address"),
        "fileid": never("use a stored file"),
        "fileids": never("use stored files"),
        "fileurl": never("fetch an address"),
        "imageurl": only_data("fetch an address"),
        "model": _searching_model,
        "plugins": never("run plugins"),
        "prompt": _stored_prompt,
        "serverurl": never("connect to an MCP server"),
        "tools": _tools,
        "type": not_of_type(re.compile(r"(?i:code_interpreter|file_search|mcp|web_search(?!_call).{0,24})")),
        "vectorstoreids": never("search stored files"),
        "videourl": only_data("fetch an address"),
        "websearchoptions": never("search the web"),
    },
    frozenset(("arguments", "clientmetadata", "metadata", "parameters", "schema")),
)
_ACTING: Final = {
    **GATEWAYS,
    "conversation": "continue a stored conversation",
    "datasources": "search stored data",
    "enablesearch": "search the web",
    "searchoptions": "search the web",
    "searchparameters": "search the web",
}
_BOTH: Final = frozenset(
    (
        "metadata",
        "model",
        "moderation",
        "parallel_tool_calls",
        "prompt",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "stream",
        "stream_options",
        "temperature",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "user",
    )
)
_RESPONSES: Final = replace(
    _BODIES,
    fields=_BOTH
    | {
        "background",
        "client_metadata",
        "context_management",
        "image",
        "include",
        "input",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "previous_response_id",
        "reasoning",
        "text",
        "truncation",
    },
    acting=_ACTING,
)
_COMPLETIONS: Final = replace(
    _BODIES,
    # Chat Completions, the older Completions, and at the end how other servers with these APIs sample and think
    fields=_BOTH
    | {
        "audio",
        "best_of",
        "echo",
        "frequency_penalty",
        "function_call",
        "functions",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "modalities",
        "n",
        "prediction",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "seed",
        "stop",
        "suffix",
        "verbosity",
        "web_search_options",
        "enable_thinking",
        "min_p",
        "reasoning",
        "repetition_penalty",
        "thinking",
        "top_k",
    },
    acting=_ACTING,
)
_HEADERS: Final = (
    COMMON
    | GENERATED_CLIENTS
    | {
        "openai-beta",
        # Codex
        "conversation_id",
        "originator",
        "session-id",
        "session_id",
        "thread-id",
        "version",
        "x-codex-beta-features",
        "x-codex-inference-call-id",
        "x-codex-installation-id",
        "x-codex-parent-thread-id",
        "x-codex-root-turn-id",
        "x-codex-turn-metadata",
        "x-codex-turn-state",
        "x-codex-window-id",
        "x-openai-internal-codex-responses-lite",
        "x-openai-memgen-request",
        "x-openai-subagent",
        "x-responsesapi-include-timing-metrics",
        # OpenCode and Goose, for gateways that list the programs that use them
        "http-referer",
        "x-title",
    }
)


class _Cached(msgspec.Struct):
    cached_tokens: TokenCount | None = None
    cache_write_tokens: TokenCount | None = None


class _Counts(msgspec.Struct):
    # Responses
    input_tokens: TokenCount | None = None
    output_tokens: TokenCount | None = None
    input_tokens_details: _Cached | None = None
    # Chat Completions
    prompt_tokens: TokenCount | None = None
    completion_tokens: TokenCount | None = None
    prompt_tokens_details: _Cached | None = None


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _Response(msgspec.Struct):
    incomplete_details: _Incomplete | None = None
    model: str | None = None
    usage: _Counts | None = None


class _Answer(_Response):
    response: _Response | None = None


_answers = msgspec.json.Decoder(_Answer)


def _count(data: bytes | memoryview, before: TokenUsage) -> CountedTokens:
    answer = _answers.decode(data)
    model, usage, cut = "", None, False
    for part in (answer.response, answer):
        if part is not None:
            model = part.model or model
            cut = cut or (part.incomplete_details is not None and part.incomplete_details.reason == "max_output_tokens")
            usage = _usage(part.usage) if part.usage is not None else usage
    return CountedTokens(model, usage, usage is not None, cut)


def _usage(counts: _Counts) -> TokenUsage:
    prompt: int | None
    if counts.prompt_tokens is not None:
        prompt, output, details = counts.prompt_tokens, counts.completion_tokens, counts.prompt_tokens_details
    else:
        prompt, output, details = counts.input_tokens, counts.output_tokens, counts.input_tokens_details
    cached = details or _Cached()
    return separated(prompt, output, cached.cached_tokens, cached.cache_write_tokens)


def _error(refusal: RequestRefusal, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": refusal.code}}


OPENAI: Final = ModelProvider(
    name="openai",
    host="api.openai.com",
    endpoints=("POST /v1/responses", "POST /v1/responses/compact", "POST /v1/chat/completions"),
    calls={"/responses": _RESPONSES, "/responses/compact": _RESPONSES, "/completions": _COMPLETIONS},
    headers=_HEADERS,
    key_header=OpenAiDialect.key_header,
    key_prefix="sk-proj-",
    key_variables=("OPENAI_API_KEY",),
    models=OpenAiDialect.models,
    other_credentials=frozenset(("chatgpt-account-id", "openai-organization", "openai-project")),
    query={"api-version": re.compile(r"[0-9A-Za-z-]{1,32}")},
    bodies=_BODIES,
    error=_error,
    count=_count,
)
