"""
Models that a login pays for, not a key: the same formats as with a key, at other hosts or with other headers.

Agents make further requests with a login. What a turn needs is allowed; the rest gets 404, which agents take for a
service that does not exist.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from ironcurtain.providers.anthropic import ANTHROPIC
from ironcurtain.providers.code_assist import CODE_ASSIST_CALLS, count, error
from ironcurtain.providers.detection import count as count_any
from ironcurtain.providers.google import GOOGLE
from ironcurtain.providers.openai import OPENAI

NO_MODELS: Final = re.compile(r"(?!)")
"""Names of models select the provider of a key, and with it its family."""

CLAUDE: Final = replace(
    ANTHROPIC,
    name="claude",
    family="anthropic",
    account="claude",
    key_header="authorization",
    key_prefix="sk-ant-oat01-",
    key_variables=("CLAUDE_CODE_OAUTH_TOKEN",),
    models=NO_MODELS,
)
"""A Claude subscription."""

CHATGPT: Final = replace(
    OPENAI,
    name="chatgpt",
    family="openai",
    account="chatgpt",
    host="chatgpt.com",
    endpoints=("POST /backend-api/codex/responses", "POST /backend-api/codex/responses/compact"),
    key_prefix="eyJ",
    key_variables=(),
    models=NO_MODELS,
    account_header="chatgpt-account-id",
    signed_tokens=True,
    absent=(
        *("GET /backend-api/codex/models", "POST /backend-api/codex/analytics-events/events"),
        *("GET /backend-api/wham/accounts/check", "GET /backend-api/wham/settings/user", "GET /backend-api/wham/usage"),
        *("GET /backend-api/ps/plugins/*", "GET /backend-api/ps/plugins/suggested/*", "POST /backend-api/ps/mcp"),
        "GET /backend-api/plugins/export/*",
    ),
)
"""A ChatGPT plan."""

GOOGLE_LOGIN: Final = replace(
    GOOGLE,
    name="google-login",
    family="google",
    account="google",
    host="cloudcode-pa.googleapis.com",
    endpoints=tuple(
        f"POST /v1internal:{call}"
        for call in (
            *("countTokens", "generateContent", "listExperiments", "loadCodeAssist", "onboardUser"),
            "streamGenerateContent",
        )
    ),
    calls=CODE_ASSIST_CALLS,
    key_header="authorization",
    key_prefix="ya29.",
    key_variables=(),
    models=NO_MODELS,
    error=error,
    count=count,
    absent=(
        *("POST /v1internal:fetchAdminControls", "POST /v1internal:recordCodeAssistMetrics"),
        "POST /v1internal:retrieveUserQuota",
        *("GET /v1internal:getCodeAssistGlobalUserSetting", "POST /v1internal:setCodeAssistGlobalUserSetting"),
    ),
    absent_elsewhere=("GET www.googleapis.com/oauth2/v2/userinfo",),
)
"""A login with Google, which Gemini CLI uses by the Code Assist API."""

COPILOT: Final = replace(
    OPENAI,
    name="copilot",
    family="copilot",
    account="copilot",
    host="api.githubcopilot.com",
    endpoints=("GET /models", "POST /chat/completions", "POST /responses", "POST /v1/messages"),
    calls={**OPENAI.calls, **ANTHROPIC.calls},
    headers=OPENAI.headers
    | ANTHROPIC.headers
    | {
        *("copilot-integration-id", "copilot-vision-request", "editor-plugin-version", "editor-version"),
        *("openai-intent", "x-github-api-version", "x-initiator", "x-interaction-id", "x-interaction-type"),
    },
    key_prefix="gho_",
    key_variables=(),
    models=NO_MODELS,
    count=count_any,
)
"""GitHub Copilot."""
