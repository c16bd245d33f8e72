"""What agents ask for besides models: lists, settings, telemetry. Answered so that they go on."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.model_stub import (
    anthropic,
    bedrock,
    code_assist,
    copilot,
    foundry,
    gateway,
    google,
    openai,
    openai_chat,
    openrouter,
    vertex,
)
from tests.model_stub.dialect import Dialect, Invalid

ANTHROPIC: Dialect = anthropic
OPENAI: Dialect = openai
GOOGLE: Dialect = google
OPENAI_CHAT: Dialect = openai_chat
CODE_ASSIST: Dialect = code_assist
COPILOT: Dialect = copilot
CLOUDS: tuple[Dialect, ...] = (bedrock, vertex, foundry, gateway, openrouter)

_ANSWERS = (
    ("telemetry", "POST", r"/api/event_logging/.*|/api/eval/.*|/log|/otlp/v1/.*", 200, "{}"),
    ("greeting", "GET", r"/api/hello|/v1/oauth/hello", 200, '{"message": "hello"}'),
    # Claude Code asks again and again for these unless the shape is right, or there is none.
    ("settings", "GET", r"/api/claude_code/policy_limits", 200, '{"restrictions": {}}'),
    ("settings", "GET", r"/api/claude_code/organizations/metrics_enabled", 200, '{"metrics_logging_enabled": false}'),
    ("settings", "GET", r"/api/directory/server-urls", 200, '{"urls": []}'),
    ("settings", "GET", r"/api/claude_c.*", 404, "{}"),
    ("models", "GET", r"/backend-api/codex/models", 200, '{"models": []}'),
    ("models", "GET", r"/api\.json", 200, "{}"),
    ("models", "GET", r"/models", 200, copilot.models().decode()),
    ("account", "POST", r"/v1internal:loadCodeAssist", 200, code_assist.LOADED),
    ("settings", "POST", r"/v1internal:listExperiments", 200, '{"experimentIds": [], "flags": []}'),
)
"""Purpose, method, pattern of the path, and the answer: its status and body."""


def aside(method: str, path: str, headers: Mapping[str, str]) -> tuple[str, int, bytes] | None:
    """:returns: what such a request is for, and status and body of its answer; ``None`` for all others."""
    if method == "GET" and re.fullmatch(r"/v1(beta)?/models", path):
        return "models", 200, _provider(path, headers).models()
    for purpose, known, pattern, status, body in _ANSWERS:
        if method == known and re.fullmatch(pattern, path):
            return purpose, status, body.encode()
    return None


def dialect(method: str, path: str, headers: Mapping[str, str]) -> Dialect:
    """
    :returns: the API that a request belongs to.
    :raises Invalid: it belongs to none.
    """
    for known in (ANTHROPIC, OPENAI, GOOGLE, OPENAI_CHAT, CODE_ASSIST, COPILOT, *CLOUDS):
        if known.handles(method, path):
            return known
    if method == "GET" and path == "/v1/responses" and "upgrade" in headers:
        raise Invalid("WebSocket is not spoken here.", 426, {"upgrade": "HTTP/1.1"})
    raise Invalid("Not found", 404)


def _provider(path: str, headers: Mapping[str, str]) -> Dialect:
    if path.startswith("/v1beta/"):
        return GOOGLE
    return ANTHROPIC if anthropic.key(headers) else OPENAI


def errors_of(path: str) -> Dialect:
    """:returns: the API in whose shape errors are told for a path that is none of its own."""
    if path.startswith(("/v1beta/", "/v1internal:")):
        return GOOGLE
    return OPENAI if path.startswith(("/v1/responses", "/v1/chat", "/responses")) else ANTHROPIC
