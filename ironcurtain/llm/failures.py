"""Words for failed model requests that all providers share."""

from __future__ import annotations

import msgspec

CONTEXT_FULL = "the conversation no longer fits into the model's context; start a new session. It said: {detail}"
"""Sentence for a conversation that has grown too long."""

DETAIL_LIMIT = 400
"""Most characters of a provider's own words in one of our messages."""


class ErrorWords(msgspec.Struct):
    """The ``error`` object that Anthropic and OpenAI send."""

    type: str = ""
    message: str = ""


class ErrorBody(msgspec.Struct):
    """The body around it."""

    error: ErrorWords = msgspec.field(default_factory=ErrorWords)


def plain(text: str) -> str:
    """:returns: the text on one line, safe to print on a terminal, cut at :data:`DETAIL_LIMIT`."""
    shown = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * DETAIL_LIMIT]).split())
    return shown if len(shown) <= DETAIL_LIMIT else shown[:DETAIL_LIMIT] + "..."
