"""
Requests as the agents were seen to send them, their prompts shortened.

The first four are of Claude Code 2.1.329, Codex 0.169.0, OpenCode 1.18.33 and Gemini CLI 0.61.0; those after them, of
Claude Code 2.1.332, Codex 0.171.0, OpenCode 1.18.34 and Gemini CLI 0.61.0, asked through this proxy. Claude Code began
to compact at ``/compact``, and to count tokens at ``/context``. Goose could not be had.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ironcurtain.http.head import RequestHead

ID = "01a1fe22-b2bc-7841-a44b-1ff761847681"
SCHEMA = {
    "type": "object",
    "properties": {"file_id": {"type": "string"}, "url": {"type": "string"}, "mcp_servers": {"type": "array"}},
    "required": ["file_id"],
}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def request(method: str, target: str, *headers: tuple[str, str]) -> RequestHead:
    """:returns: the head that a request line and headers make."""
    path, _, query = target.partition("?")
    return RequestHead(method, target, path, query, headers)


@dataclass(frozen=True)
class Sent:
    """:param headers: without Host and key."""

    provider: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: Mapping[str, Any]


CLAUDE_CODE = Sent(
    "anthropic",
    "/v1/messages?beta=true",
    (
        ("accept", "application/json"),
        ("content-type", "application/json"),
        ("user-agent", "claude-cli/2.1.329 (external, sdk-cli)"),
        ("x-claude-code-session-id", ID),
        ("x-stainless-arch", "x64"),
        ("x-stainless-lang", "js"),
        ("x-stainless-os", "Linux"),
        ("x-stainless-package-version", "0.128.0"),
        ("x-stainless-retry-count", "0"),
        ("x-stainless-runtime", "node"),
        ("x-stainless-runtime-version", "v26.12.1"),
        ("x-stainless-timeout", "600"),
        ("anthropic-beta", "claude-code-20250219,interleaved-thinking-2025-05-14,effort-2025-11-24"),
        ("anthropic-dangerous-direct-browser-access", "true"),
        ("anthropic-version", "2023-06-01"),
        ("x-app", "cli"),
        ("x-claude-1p-request-class", "main"),
        ("x-claude-code-prompt-id", ID),
        ("x-client-request-id", ID),
        ("connection", "keep-alive"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("content-length", "49204"),
    ),
    {
        "model": "claude-opus-5-5",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What does note.txt say?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "hello"}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool_use",
                        "id": "toolu_1",
                        "name": "mcp__ironcurtain__fetch",
                        "input": {"source": {"type": "url", "url": "https://example.com"}, "mcp_servers": [1]},
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": [
                            {"type": "text", "text": '{"mcp_servers": []}'},
                            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                            {"type": "search_result", "source": "https://example.com", "title": "x", "content": []},
                        ],
                    }
                ],
            },
            {"role": "system", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]},
        ],
        "system": [{"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}}],
        "tools": [
            {"name": "Bash", "description": "Runs a command", "input_schema": SCHEMA},
            {"name": "DeferredToolPlaceholder", "description": "", "input_schema": SCHEMA, "defer_loading": True},
            {"type": "custom", "name": "Read", "input_schema": SCHEMA},
            {"type": "bash_20250124", "name": "bash"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"},
        ],
        "metadata": {"user_id": "user"},
        "max_tokens": 128000,
        "thinking": {"type": "adaptive", "display": "omitted"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "output_config": {"effort": "medium"},
        "diagnostics": {"previous_message_id": None},
        "stream": True,
    },
)

CODEX = Sent(
    "openai",
    "/v1/responses",
    (
        ("x-codex-beta-features", "remote_compaction_v2"),
        ("x-codex-window-id", f"{ID}:0"),
        ("x-codex-turn-metadata", f'{{"session_id":"{ID}","request_kind":"turn"}}'),
        ("x-openai-internal-codex-responses-lite", "true"),
        ("x-client-request-id", ID),
        ("session-id", ID),
        ("thread-id", ID),
        ("accept", "text/event-stream"),
        ("content-type", "application/json"),
        ("originator", "codex_exec"),
        ("user-agent", "codex_exec/0.169.0 (Debian 12.0.0; x86_64) dumb (codex_exec; 0.169.0)"),
        ("content-length", "68229"),
    ),
    {
        "model": "gpt-6.1-sol",
        "stream": True,
        "input": [
            {
                "type": "additional_tools",
                "role": "developer",
                "tools": [
                    {
                        "type": "namespace",
                        "name": "functions",
                        "tools": [
                            {"type": "custom", "name": "exec", "format": {"type": "grammar", "definition": "x"}},
                            {"type": "function", "name": "wait", "strict": False, "parameters": SCHEMA},
                        ],
                    },
                ],
            },
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What does note.txt say?"},
                    {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"},
                ],
            },
            {"type": "function_call", "call_id": "1", "name": "wait", "arguments": '{"file_id": "x"}'},
            {"type": "function_call_output", "call_id": "1", "output": "done"},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "configuration_update", "reasoning": {"effort": "low"}},
        ],
        "tools": [
            {"type": "function", "name": "exec_command", "strict": False, "parameters": SCHEMA},
            {"type": "namespace", "name": "mcp__ironcurtain", "tools": []},
            {"type": "local_shell"},
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "low", "context": "all_turns"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": ID,
        "text": {"verbosity": "low"},
        "client_metadata": {"x-codex-installation-id": ID},
    },
)

OPENCODE = Sent(
    "anthropic",
    "/v1/messages",
    (
        ("content-type", "application/json"),
        ("user-agent", "opencode/1.18.33 ai-sdk/provider-utils/4.0.46 runtime/bun/1.3.14"),
        ("anthropic-beta", "structured-outputs-2025-11-13,fine-grained-tool-streaming-2025-05-14"),
        ("anthropic-version", "2023-06-01"),
        ("x-session-affinity", "ses_e01de765cffe45VKmtdFn2VYiL"),
        ("x-session-id", "ses_e01de765cffe45VKmtdFn2VYiL"),
        ("connection", "keep-alive"),
        ("accept", "*/*"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("content-length", "38134"),
    ),
    {
        "model": "claude-sonnet-4-5",
        "max_tokens": 32000,
        "system": [{"type": "text", "text": "You are an agent."}],
        "messages": [{"role": "user", "content": "What does note.txt say?"}],
        "tools": [{"name": "webfetch", "input_schema": SCHEMA, "eager_input_streaming": True}],
        "tool_choice": {"type": "auto"},
        "stream": True,
    },
)

GEMINI = Sent(
    "google",
    "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse",
    (
        ("connection", "keep-alive"),
        ("user-agent", "GeminiCLI-tui/0.61.0/gemini-3.1-pro-preview (linux; x64; terminal)"),
        ("x-goog-api-client", "google-genai-sdk/1.30.0 gl-node/v20.20.2"),
        ("content-type", "application/json"),
        ("accept", "*/*"),
        ("accept-language", "*"),
        ("sec-fetch-mode", "cors"),
        ("accept-encoding", "br, gzip, deflate"),
        ("content-length", "58792"),
    ),
    {
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "What does note.txt say?"},
                    {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
                ],
            },
            {
                "role": "model",
                "parts": [{"functionCall": {"name": "fetch", "args": {"fileUri": "https://example.com"}}}],
            },
            {"role": "user", "parts": [{"functionResponse": {"name": "fetch", "response": {"googleSearch": {}}}}]},
        ],
        "systemInstruction": {"role": "user", "parts": [{"text": "You are an agent."}]},
        "tools": [{"functionDeclarations": [{"name": "fetch", "parametersJsonSchema": SCHEMA}]}],
        "generationConfig": {"temperature": 1, "topP": 0.95, "topK": 64, "thinkingConfig": {"includeThoughts": True}},
    },
)

CLAUDE_CODE_NOW = replace(
    CLAUDE_CODE,
    headers=(
        *(header for header in CLAUDE_CODE.headers if header[0] != "user-agent"),
        ("user-agent", "claude-cli/2.1.332 (external, sdk-cli)"),
        ("x-claude-code-request-class", "main"),
        ("x-claude-code-sandy-plover", "[]"),
    ),
    body={
        "model": "claude-haiku-4-5",
        "messages": [{"role": "user", "content": "Say hello"}],
        "system": [{"type": "text", "text": "You are an agent."}],
        "tools": CLAUDE_CODE.body["tools"],
        "metadata": {"user_id": f'{{"account_uuid":"","session_id":"{ID}"}}'},
        "max_tokens": 32000,
        "thinking": {"budget_tokens": 31999, "type": "enabled", "display": "omitted"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "diagnostics": {"previous_message_id": None},
        "stream": True,
    },
)
CLAUDE_CODE_COMPACTING = replace(
    CLAUDE_CODE_NOW,
    headers=(
        *(header for header in CLAUDE_CODE_NOW.headers if header[0] != "x-claude-code-request-class"),
        ("x-cc-compaction-request", "manual"),
        ("x-claude-code-compaction", "manual"),
        ("x-claude-code-request-class", "compaction"),
    ),
    body={
        **CLAUDE_CODE_NOW.body,
        "thinking": {"type": "adaptive", "display": "omitted"},
        "fallbacks": [{"model": "claude-opus-5"}],
        "output_config": {"effort": "medium"},
        "diagnostics": {"previous_message_id": "msg_1"},
    },
)
CLAUDE_CODE_COUNTING = replace(
    CLAUDE_CODE_NOW,
    target="/v1/messages/count_tokens?beta=true",
    body={"model": "claude-opus-5-5", "messages": CLAUDE_CODE_NOW.body["messages"], "tools": []},
)

CODEX_WITH_FUNCTIONS = replace(
    CODEX,
    body={
        "model": "gpt-4.1",
        "stream": True,
        "input": CODEX.body["input"],
        "tools": CODEX.body["tools"],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"summary": "auto"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": ID,
        "client_metadata": {"x-codex-installation-id": ID},
    },
)

OPENCODE_AT_OPENAI = Sent(
    "openai",
    "/v1/responses",
    (
        ("content-type", "application/json"),
        ("user-agent", "opencode/1.18.34 (linux 6.18; x64) ai-sdk/provider-utils/4.0.40 runtime/bun/1.3.14"),
        ("originator", "opencode"),
        ("session-id", "ses_de4d2989bffebJ4zoc0Z3SZOSP"),
        ("x-opencode-session-id", "ses_de4d2989bffebJ4zoc0Z3SZOSP"),
        ("x-session-affinity", "ses_de4d2989bffebJ4zoc0Z3SZOSP"),
        ("x-session-id", "ses_de4d2989bffebJ4zoc0Z3SZOSP"),
        ("accept", "*/*"),
    ),
    {
        "model": "gpt-5.4-nano",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "Say hello"}]}],
        "temperature": 0.5,
        "text": {"verbosity": "low"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "ses_de4d2989bffebJ4zoc0Z3SZOSP",
        "reasoning": {"effort": "none", "summary": "auto"},
        "tools": [{"type": "function", "name": "bash", "parameters": SCHEMA}],
        "tool_choice": "auto",
        "stream": True,
    },
)
OPENCODE_AT_GOOGLE = Sent(
    "google",
    "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
    tuple(header for header in OPENCODE_AT_OPENAI.headers if header[0] not in ("originator", "session-id")),
    {
        "generationConfig": {"maxOutputTokens": 32000, "temperature": 1, "thinkingConfig": {"includeThoughts": True}},
        "contents": [{"role": "user", "parts": [{"text": "Say hello"}]}],
        "systemInstruction": {"parts": [{"text": "You are an agent."}]},
        "tools": [{"functionDeclarations": [{"name": "bash", "parameters": SCHEMA}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    },
)

GEMINI_ROUTING = replace(
    GEMINI,
    target="/v1beta/models/gemini-3.5-flash-lite:generateContent",
    headers=(*GEMINI.headers, ("x-gemini-api-privileged-user-id", ID)),
    body={
        "contents": [{"role": "user", "parts": [{"text": "Say hello"}]}],
        "systemInstruction": {"role": "user", "parts": [{"text": "Choose a model."}]},
        "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA},
    },
)

ALL = (
    CLAUDE_CODE,
    CODEX,
    OPENCODE,
    GEMINI,
    CLAUDE_CODE_NOW,
    CLAUDE_CODE_COMPACTING,
    CLAUDE_CODE_COUNTING,
    CODEX_WITH_FUNCTIONS,
    OPENCODE_AT_OPENAI,
    OPENCODE_AT_GOOGLE,
    GEMINI_ROUTING,
)
