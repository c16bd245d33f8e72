"""The adapters of providers behind HTTP. To add one, add a module like :mod:`~ironcurtain.llm.openai`, and a line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ironcurtain.llm.anthropic import AnthropicDialect
from ironcurtain.llm.dialect import Dialect
from ironcurtain.llm.google import GoogleDialect
from ironcurtain.llm.openai import OpenAiDialect
from ironcurtain.llm.openai_chat import OpenAiChatDialect

DIALECTS: Final[Mapping[str, Dialect]] = {
    dialect.name: dialect for dialect in (AnthropicDialect(), OpenAiDialect(), OpenAiChatDialect(), GoogleDialect())
}
"""By the name of the provider, as ``--backend`` and the settings' ``providers`` have it."""


def family_of(model: str) -> str:
    """:returns: the provider whose models have such names; empty if none has."""
    return next((name for name, dialect in DIALECTS.items() if dialect.models.match(model)), "")
