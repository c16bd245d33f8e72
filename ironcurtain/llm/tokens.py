"""Count tokens before a provider does."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

CLAUDE_FACTOR: Final = 1.2
"""Claude's tokenizer is not public; on English and code it makes about a fifth more tokens than OpenAI's."""

MOST_TOKENS_A_BYTE: Final = 2
"""A token of OpenAI's stands for at least one byte, and :data:`CLAUDE_FACTOR`, rounded up, at most doubles a number."""

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


def known_window(model: str) -> int | None:
    """:returns: tokens of a model's context, if it is known; the longest matching beginning of its name decides."""
    return WINDOWS.get(max((name for name in WINDOWS if model.startswith(name)), key=len, default=""))


def context_window(model: str) -> int:
    """:returns: tokens of a model's context, or :data:`UNKNOWN_WINDOW`."""
    return known_window(model) or UNKNOWN_WINDOW


def count_tokens(text: str, model: str = "") -> int:
    """
    :param model: its name tells the tokenizer.
    :returns: about how many tokens a text has.
    """
    count: int = _tokenizer().count(text.encode("utf-8", "replace").decode())  # it refuses surrogates
    return math.ceil(count * CLAUDE_FACTOR) if model.startswith("claude") else count


class TokenSum:
    """
    How many tokens some texts have together. They are counted only if their length leaves it open whether they fit,
    since the tokenizer takes 0.1 s to load.

    :param count: returns the tokens of a text, at most :data:`MOST_TOKENS_A_BYTE` for each of its bytes in UTF-8.
    :param counted: tokens that are known already.
    """

    def __init__(self, count: Callable[[str], int], counted: int = 0, texts: tuple[str, ...] = ()) -> None:
        self._count, self._counted, self._texts = count, counted, texts

    def plus(self, *texts: str, counted: int = 0) -> TokenSum:
        """:returns: a sum with more texts, and with tokens that are known already."""
        return TokenSum(self._count, self._counted + counted, (*self._texts, *texts))

    def value(self) -> int:
        """:returns: the tokens, counted now."""
        self._counted += sum(map(self._count, self._texts))
        self._texts = ()
        return self._counted

    def within(self, limit: float) -> bool:
        """Whether there are at most so many tokens."""
        size = sum(len(text.encode("utf-8", "replace")) for text in self._texts)
        return self._counted + size * MOST_TOKENS_A_BYTE <= limit or self.value() <= limit


@cache
def _tokenizer() -> Any:
    import rs_bpe  # its table takes 0.1 s to load, and short conversations need no count

    return rs_bpe.openai.o200k_base()
