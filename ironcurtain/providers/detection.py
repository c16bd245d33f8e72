"""Read the token counts of responses whose format is known only from the responses themselves."""

from __future__ import annotations

from typing import Any

import msgspec

from ironcurtain.llm.model import TokenUsage
from ironcurtain.providers.anthropic import ANTHROPIC
from ironcurtain.providers.google import GOOGLE
from ironcurtain.providers.openai import OPENAI
from ironcurtain.providers.provider import CountedTokens


class _Counts(msgspec.Struct):
    prompt_tokens: Any = None
    input_tokens_details: Any = None


class _Answer(msgspec.Struct, rename={"google": "usageMetadata", "openai": "response"}):
    google: Any = None
    openai: Any = None
    usage: _Counts | None = None


_answers = msgspec.json.Decoder(_Answer)


def count(data: bytes | memoryview, before: TokenUsage) -> CountedTokens:
    """See :data:`~ironcurtain.providers.provider.Count`."""
    answer = _answers.decode(data)
    counts = answer.usage or _Counts()
    if answer.google is not None:
        return GOOGLE.count(data, before)
    if answer.openai is not None or counts.prompt_tokens is not None or counts.input_tokens_details is not None:
        return OPENAI.count(data, before)
    return ANTHROPIC.count(data, before)
