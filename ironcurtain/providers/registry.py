"""The known providers, and how to find the formats of a provider in the settings from its endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ironcurtain.llm.model import TokenUsage
from ironcurtain.providers.anthropic import ANTHROPIC
from ironcurtain.providers.bodies import is_json
from ironcurtain.providers.endpoints import Endpoint
from ironcurtain.providers.google import GOOGLE
from ironcurtain.providers.openai import OPENAI
from ironcurtain.providers.provider import BodyRules, CountedTokens, ModelProvider, RequestRefusal

KNOWN_PROVIDERS: Final[Mapping[str, ModelProvider]] = {known.name: known for known in (ANTHROPIC, OPENAI, GOOGLE)}
"""By the name of the provider's table in the settings."""

_CALLS: Final = {ending: rules for known in KNOWN_PROVIDERS.values() for ending, rules in known.calls.items()}
_ENDINGS: Final = tuple(_CALLS)


class _Counts(msgspec.Struct):
    prompt_tokens: Any = None
    input_tokens_details: Any = None


class _Answer(msgspec.Struct, rename={"google": "usageMetadata", "openai": "response"}):
    google: Any = None
    openai: Any = None
    usage: _Counts | None = None


_answers = msgspec.json.Decoder(_Answer)


def _count(data: bytes | memoryview, before: TokenUsage) -> CountedTokens:
    """For a provider of unknown format, detect the format from its responses."""
    answer = _answers.decode(data)
    counts = answer.usage or _Counts()
    if answer.google is not None:
        return GOOGLE.count(data, before)
    if answer.openai is not None or counts.prompt_tokens is not None or counts.input_tokens_details is not None:
        return OPENAI.count(data, before)
    return ANTHROPIC.count(data, before)


def _error(refusal: RequestRefusal, message: str) -> dict[str, Any]:
    return {"error": {"code": refusal.code, "message": message}}


OTHER: Final = ModelProvider(
    name="other",
    host="",
    endpoints=(),
    calls={},
    headers=frozenset().union(*(known.headers for known in KNOWN_PROVIDERS.values())),
    key_header="",
    key_prefix="",
    key_variables=(),
    models=re.compile(r"(?!)"),
    other_credentials=frozenset(),
    query=None,
    bodies=None,
    error=_error,
    count=_count,
)
"""For a provider in the settings whose endpoints do not show its formats."""


def shaped_like(endpoints: Iterable[Endpoint]) -> ModelProvider:
    """:returns: the provider with the formats that these endpoints belong to."""
    paths = [endpoint.path for endpoint in endpoints]
    found = [known for known in KNOWN_PROVIDERS.values() if any(path.endswith(tuple(known.calls)) for path in paths)]
    return found[0] if len(found) == 1 else OTHER


def body_rules(provider: ModelProvider, path: str, content_type: str) -> BodyRules | None:
    """
    :param path: canonical, without the query.
    :returns: the rules by which to judge the complete body before it is sent; ``None`` for a body that is not judged.
        Requests to models are judged whatever their Content-Type, and whatever other endpoints their provider has.
    """
    if not path.endswith(_ENDINGS):
        return provider.bodies if is_json(content_type) else None
    # Other calls of a provider can end like those of another: /v1/threads/*/messages of OpenAI
    calls = provider.calls or _CALLS
    return next((rules for ending, rules in calls.items() if path.endswith(ending)), provider.bodies)
