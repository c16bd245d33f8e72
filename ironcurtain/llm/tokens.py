"""Count tokens before a provider does."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Final

CLAUDE_FACTOR: Final = 1.2
"""Claude's tokenizer is not public; on English and code it makes about a fifth more tokens than OpenAI's."""

WINDOWS: Final = {
    "claude": 200_000,
    "gpt-4.1": 1_000_000,
    "gpt-4o": 128_000,
    "gpt-5": 400_000,
    "gemini": 1_000_000,
}
"""
Context of models in tokens, prompt and answer together, by the beginning of their names: what the providers document
for every plan.
"""

UNKNOWN_WINDOW: Final = 32_000
"""Assumed for other models: smaller is safe."""


def context_window(model: str) -> int:
    """:returns: tokens of a model's context; the longest matching beginning of its name decides."""
    known = max((name for name in WINDOWS if model.startswith(name)), key=len, default="")
    return WINDOWS.get(known, UNKNOWN_WINDOW)


def count_tokens(text: str, model: str = "") -> int:
    """
    :param model: its name tells the tokenizer.
    :returns: about how many tokens a text has.
    """
    count: int = _tokenizer().count(text.encode("utf-8", "replace").decode())  # it refuses surrogates
    return math.ceil(count * CLAUDE_FACTOR) if model.startswith("claude") else count


@cache
def _tokenizer() -> Any:
    import rs_bpe  # its table takes 0.1 s to load, and most commands count nothing

    return rs_bpe.openai.o200k_base()
