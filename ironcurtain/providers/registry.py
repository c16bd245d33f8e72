"""The known providers, and how to find the formats of a provider in the settings from its endpoints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ironcurtain.providers.anthropic import ANTHROPIC
from ironcurtain.providers.bodies import is_json
from ironcurtain.providers.clouds import BEDROCK, CLOUD_CALLS, FOUNDRY, OPENROUTER, VERTEX
from ironcurtain.providers.code_assist import CODE_ASSIST_CALLS
from ironcurtain.providers.detection import count
from ironcurtain.providers.endpoints import Endpoint
from ironcurtain.providers.google import GOOGLE
from ironcurtain.providers.logins import CHATGPT, CLAUDE, COPILOT, GOOGLE_LOGIN
from ironcurtain.providers.openai import OPENAI
from ironcurtain.providers.provider import BodyRules, ModelProvider, RequestRefusal

_FORMATS: Final = (ANTHROPIC, OPENAI, GOOGLE)
_OTHERS: Final = (CLAUDE, CHATGPT, GOOGLE_LOGIN, COPILOT, OPENROUTER, BEDROCK, VERTEX, FOUNDRY)
KNOWN_PROVIDERS: Final[Mapping[str, ModelProvider]] = {known.name: known for known in (*_FORMATS, *_OTHERS)}
"""By the name of the provider's table in the settings."""

_CALLS: Final = {**CLOUD_CALLS, **{ending: rules for known in _FORMATS for ending, rules in known.calls.items()}}
_ENDINGS: Final = (*_CALLS, *CODE_ASSIST_CALLS)


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
    count=count,
)
"""For a provider in the settings whose endpoints do not show its formats."""


def family(provider: str) -> str:
    """:returns: name of the provider whose models a provider serves, which is often itself."""
    known = KNOWN_PROVIDERS.get(provider)
    return (known.family if known is not None else "") or provider


def shaped_like(endpoints: Iterable[Endpoint]) -> ModelProvider:
    """:returns: the provider with the formats that these endpoints belong to."""
    paths = [endpoint.path for endpoint in endpoints]
    found = [known for known in _FORMATS if any(path.endswith(tuple(known.calls)) for path in paths)]
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
