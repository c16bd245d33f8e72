"""Google's Code Assist API: requests and responses of the Gemini API, each inside another object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ironcurtain.llm.model import TokenUsage
from ironcurtain.providers.bodies import GATEWAYS, cut
from ironcurtain.providers.google import FIELDS, GOOGLE
from ironcurtain.providers.provider import BodyRules, CountedTokens

_bodies = GOOGLE.bodies
assert _bodies is not None


def _request(request: Any) -> str | None:
    unknown = [] if not isinstance(request, dict) else sorted(request.keys() - FIELDS - {"model", "session_id"})
    return f"take {cut(unknown[0])}, which is unknown" if unknown else None


# Without enabled_credit_types, which selects who pays
_GENERATE: Final = replace(
    _bodies,
    checks={**_bodies.checks, "request": _request},
    fields=frozenset(("model", "project", "request", "user_prompt_id")),
    acting=GATEWAYS,
)
_COUNT: Final = replace(_GENERATE, fields=frozenset(("request",)))
_ACCOUNT: Final = BodyRules(
    {}, frozenset(), frozenset(("cloudaicompanionProject", "metadata", "mode", "project", "tierId")), GATEWAYS
)
"""Requests for the account's project, its plan, and what Google tries out with it."""

CODE_ASSIST_CALLS: Final[Mapping[str, BodyRules]] = {
    ":generateContent": _GENERATE,
    ":streamGenerateContent": _GENERATE,
    ":countTokens": _COUNT,
    ":loadCodeAssist": _ACCOUNT,
    ":onboardUser": _ACCOUNT,
    ":listExperiments": _ACCOUNT,
}

error = GOOGLE.error


class _Answer(msgspec.Struct):
    response: msgspec.Raw = msgspec.Raw()


_answers = msgspec.json.Decoder(_Answer)


def count(data: bytes | memoryview, before: TokenUsage) -> CountedTokens:
    """See :data:`~ironcurtain.providers.provider.Count`."""
    response = _answers.decode(data).response
    return CountedTokens("", None, False) if not bytes(response) else GOOGLE.count(memoryview(response), before)
