"""The cost of a request, for models with a known price."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from ironcurtain.llm.model import TokenUsage

PRICES_KNOWN_ON = "2026-11-10"
"""
Date of the list prices below, from https://platform.claude.com/docs/en/about-claude/pricing (cache writes are those
that last 5 minutes, the only ones in use), https://developers.openai.com/api/docs/pricing and
https://ai.google.dev/gemini-api/docs/pricing (text). Prices that are announced to change soon are left out.
"""

_DATED = re.compile(r"-\d{4}-?\d{2}-?\d{2}$")


class TokenPrice(msgspec.Struct, frozen=True):
    """
    List price of one model, in US dollars for a million tokens.

    :ivar above: prompts longer than this many tokens are charged by ``long`` instead, answer included.
    """

    input: float
    output: float
    cache_read: float
    cache_write: float
    above: int | None = None
    long: TokenPrice | None = None

    def cost(self, usage: TokenUsage) -> float:
        """:returns: US dollars for one request."""
        if self.above is not None and self.long is not None and usage.prompt_tokens > self.above:
            return self.long.cost(usage)
        millionths = (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * self.cache_read
            + usage.cache_write_tokens * self.cache_write
        )
        return millionths / 1_000_000


_OPUS = TokenPrice(5, 25, 0.5, 6.25)
_LONG_OPENAI = 272_000
_LONG_GEMINI = 200_000


def _openai(input: float, output: float, cached: float, written: float | None = None) -> TokenPrice:
    """:returns: a price with OpenAI's surcharge: for a long prompt, twice as much in and half as much again out."""
    store = input if written is None else written  # older models store without a charge of their own
    long = TokenPrice(2 * input, 1.5 * output, 2 * cached, 2 * store)
    return TokenPrice(input, output, cached, store, above=_LONG_OPENAI, long=long)


def _flat(input: float, output: float, cached: float) -> TokenPrice:
    return TokenPrice(input, output, cached, input)


PRICES: Mapping[str, TokenPrice] = {
    "claude-fable-5-1": TokenPrice(10, 50, 0.25, 12.5),
    "claude-fable-5": TokenPrice(10, 50, 1, 12.5),
    "claude-opus-5-5": TokenPrice(4, 20, 0.2, 5),
    "claude-opus-5": _OPUS,
    "claude-opus-4-8": _OPUS,
    "claude-opus-4-7": _OPUS,
    "claude-opus-4-6": _OPUS,
    "claude-opus-4-5": _OPUS,
    "claude-sonnet-5-5": TokenPrice(2, 10, 0.1, 2.5),
    "claude-sonnet-5": TokenPrice(2, 10, 0.2, 2.5),
    "claude-sonnet-4-6": TokenPrice(3, 15, 0.3, 3.75),
    "claude-sonnet-4-5": TokenPrice(3, 15, 0.3, 3.75),
    "claude-haiku-5-5": TokenPrice(0.1, 0.5, 0.01, 0.125, above=100_000, long=TokenPrice(0.5, 2.5, 0.05, 0.625)),
    "claude-haiku-4-5": TokenPrice(1, 5, 0.1, 1.25),
    "gpt-6.2-astra": _openai(8, 40, 0.4, 10),
    "gpt-6.2-sol": _openai(2, 10, 0.1, 2.5),
    "gpt-6.1-sol": _openai(2, 10, 0.1, 2.5),
    "gpt-6-sol": _openai(2, 10, 0.2, 2.5),
    "gpt-6-luna": _openai(0.1, 0.5, 0.01, 0.125),
    "gpt-5.5": _openai(5, 30, 0.5),
    "gpt-5.4": _openai(2.5, 15, 0.25),
    "gpt-5.4-mini": _flat(0.75, 4.5, 0.075),
    "gpt-5.4-nano": _flat(0.2, 1.25, 0.02),
    "gpt-5.2": _flat(1.75, 14, 0.175),
    "gpt-5.1": _flat(1.25, 10, 0.125),
    "gpt-5": _flat(1.25, 10, 0.125),
    "gpt-5-mini": _flat(0.25, 2, 0.025),
    "gpt-4.1": _flat(2, 8, 0.5),
    "gpt-4.1-mini": _flat(0.4, 1.6, 0.1),
    "gemini-3.5-flash": _flat(1.5, 9, 0.15),
    "gemini-3.1-pro-preview": TokenPrice(2, 12, 0.2, 2, above=_LONG_GEMINI, long=_flat(4, 18, 0.4)),
    "gemini-3.1-flash-lite": _flat(0.25, 1.5, 0.025),
    "gemini-3-flash-preview": _flat(0.5, 3, 0.05),
    "gemini-2.5-pro": TokenPrice(1.25, 10, 0.125, 1.25, above=_LONG_GEMINI, long=_flat(2.5, 15, 0.25)),
    "gemini-2.5-flash": _flat(0.3, 2.5, 0.03),
    "gemini-2.5-flash-lite": _flat(0.1, 0.4, 0.01),
}
"""Price by model, as known on :data:`PRICES_KNOWN_ON`."""


def cost(model: str, usage: TokenUsage, overrides: Mapping[str, TokenPrice] | None = None) -> float | None:
    """
    Compute the cost of one request.

    :param model: the model that answered; a date at its end (``-20251001``, ``-2026-03-17``) is ignored.
    :param usage: usage of that one request: prices may depend on the length of its prompt.
    :param overrides: prices from the settings, which take precedence over :data:`PRICES`.
    :returns: US dollars, or ``None`` if the price is unknown; never an estimate.
    """
    price = _price(model, overrides)
    return None if price is None else price.cost(usage)


def fresh_tokens(model: str, usage: TokenUsage, overrides: Mapping[str, TokenPrice] | None = None) -> float:
    """
    :param model: as ``overrides``, as for :func:`cost`.
    :returns: how many tokens some are worth if those read from a cache and written to it count as much as they cost
        compared with others of the prompt; all of them if the price is unknown.
    """
    price = _price(model, overrides)
    if price is None or not price.input:
        return usage.prompt_tokens + usage.output_tokens
    cached = usage.cache_read_tokens * price.cache_read + usage.cache_write_tokens * price.cache_write
    return usage.input_tokens + cached / price.input + usage.output_tokens


def _price(model: str, overrides: Mapping[str, TokenPrice] | None) -> TokenPrice | None:
    for name in (model, _DATED.sub("", model)):
        price = (overrides or {}).get(name) or PRICES.get(name)
        if price is not None:
            return price
    return None
