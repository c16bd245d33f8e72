"""Gateways and clouds that serve the models of several vendors, or one vendor's under an account of their own."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from ironcurtain.providers.anthropic import ANTHROPIC
from ironcurtain.providers.detection import count as count_any
from ironcurtain.providers.logins import NO_MODELS
from ironcurtain.providers.openai import OPENAI
from ironcurtain.providers.provider import BodyRules

_messages: Final = ANTHROPIC.calls["/messages"]
assert _messages.fields is not None
_CLOUD_MESSAGES: Final = replace(_messages, fields=_messages.fields | {"anthropic_beta", "anthropic_version"})
_completions: Final = OPENAI.calls["/completions"]
assert _completions.fields is not None

CLOUD_CALLS: Final[dict[str, BodyRules]] = {
    ending: _CLOUD_MESSAGES
    for ending in ("/invoke", "/invoke-with-response-stream", ":rawPredict", ":streamRawPredict")
}
"""The Messages API as clouds serve it: the model is in the path."""

OPENROUTER: Final = replace(
    OPENAI,
    name="openrouter",
    family="openrouter",
    host="openrouter.ai",
    endpoints=("POST /api/v1/chat/completions",),
    calls={**OPENAI.calls, "/completions": replace(_completions, fields=_completions.fields | {"usage"})},
    key_prefix="sk-or-v1-",
    key_variables=("OPENROUTER_API_KEY",),
    models=NO_MODELS,
    count=count_any,
)
"""OpenRouter."""

BEDROCK: Final = replace(
    ANTHROPIC,
    name="bedrock",
    family="anthropic",
    host="bedrock-runtime.{region}.amazonaws.com",
    endpoints=("POST /model/*/invoke", "POST /model/*/invoke-with-response-stream"),
    calls=CLOUD_CALLS,
    headers=ANTHROPIC.headers
    | {"amz-sdk-invocation-id", "amz-sdk-request", "x-amz-user-agent", "x-amzn-bedrock-accept"},
    key_header="authorization",
    key_prefix="ABSK",
    key_variables=("AWS_BEARER_TOKEN_BEDROCK",),
    models=NO_MODELS,
    absent_elsewhere=("GET bedrock.{region}.amazonaws.com/inference-profiles",),
)
"""Claude in Amazon Bedrock, with a bearer token."""

VERTEX: Final = replace(
    ANTHROPIC,
    name="vertex",
    family="anthropic",
    host="{region}-aiplatform.googleapis.com",
    endpoints=tuple(
        f"POST /v1/projects/{{project}}/locations/{{region}}/publishers/anthropic/models/*:{call}"
        for call in ("rawPredict", "streamRawPredict")
    ),
    calls=CLOUD_CALLS,
    key_header="authorization",
    key_prefix="ya29.",
    key_variables=(),
    models=NO_MODELS,
    other_credentials=frozenset(("x-goog-user-project",)),
)
"""Claude in Google's Vertex AI, with an access token."""

FOUNDRY: Final = replace(
    ANTHROPIC,
    name="foundry",
    family="anthropic",
    host="{resource}.services.ai.azure.com",
    endpoints=("POST /anthropic/v1/messages", "POST /anthropic/v1/messages/count_tokens"),
    key_prefix="ic",
    key_variables=("ANTHROPIC_FOUNDRY_API_KEY",),
    models=NO_MODELS,
)
"""Claude in Microsoft Foundry."""
