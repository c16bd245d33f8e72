"""What the adapters of all providers' APIs have in common: their interface, and the errors that they explain."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec

from ironcurtain.http.sse import ServerEvent
from ironcurtain.llm.model import (
    ANSWERED,
    ErrorKind,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextDelta,
    TokenUsage,
    UsageSeen,
)
from ironcurtain.text.display import shorten

CONTEXT_FULL: Final = (
    "the conversation no longer fits into the model's context; start a new session. Its message: {detail}"
)
"""The message for a conversation that is too long."""

REFUSED: Final = (
    "the model, or a filter of its provider, refused to answer: say it differently. "
    "What came of this answer is not used ({})"
)
PAUSED: Final = "the provider paused the answer: ask again. What came of it is not used ({})"
"""The messages for an answer that is none; they have the provider's word for it."""

_FILTERED: Final = ("content_filter", "content_policy", "policy_violation", "safety", "refusal")
"""What codes of errors say, in lower case, if a filter of the provider made them."""

DETAIL_LIMIT: Final = 400
"""Maximum length in characters of the provider's text in a message."""

CONTENT_LIMIT: Final = 16 * 1024 * 1024
"""Maximum length in characters of an answer: 16 Mi (the longest possible answer, 128,000 tokens, is below 1 Mi)."""

_KINDS: Final[dict[int, ErrorKind]] = {
    401: "authentication",
    402: "authentication",
    403: "authentication",
    429: "rate-limited",
}


class ReplyInProgress(Protocol):
    """
    One answer in progress; pure, one class per provider.

    :ivar usage: tokens reported so far.
    :ivar shown: whether text or the name of a tool was shown, so that a retry would repeat it.
    :ivar reply: the complete answer, once it has arrived.
    """

    usage: TokenUsage
    shown: bool
    reply: ModelReply | None

    def feed(self, event: ServerEvent) -> list[ModelEvent]:
        """Process one event of the stream, and return the resulting events, or raise :class:`ModelError`."""

    def close(self) -> list[ModelEvent]:
        """The stream has ended, and not by a broken connection. Returns and raises the same as :meth:`feed`."""


class Dialect(Protocol):
    """
    The wire format of one provider's API; pure, one class per provider.

    :ivar name: of the provider, as ``--backend`` and the settings' ``providers`` have it.
    :ivar models: prefixes of names of its models, by which ``--model`` selects it.
    :ivar key_header: the header with the key, unless the settings name another; in lower case.
    :ivar headers: the provider's other headers.
    :ivar default_url: base URL of the provider; empty if the settings have to name one.
    :ivar default_model: empty if a model has to be named.
    """

    name: str
    models: re.Pattern[str]
    key_header: str
    headers: Mapping[str, str]
    default_url: str
    default_model: str

    def path(self, request: ModelRequest) -> str:
        """Path of the endpoint, with the version, and possibly a query."""

    def body(self, request: ModelRequest) -> bytes:
        """The request as JSON."""

    def reply(self) -> ReplyInProgress:
        """A new answer in progress."""

    def failure(self, status: int, body: bytes) -> ModelError:
        """The error of a response other than 200; its body can be anything."""


class GrowingReply:
    """
    The part of an answer in progress that does not depend on the provider.

    :cvar vendor: the provider's name for people.
    :param limit: maximum length in characters of the answer.
    """

    vendor = ""

    def __init__(self, limit: int = CONTENT_LIMIT) -> None:
        self.usage = TokenUsage()
        self.shown = False
        self.reply: ModelReply | None = None
        self._size, self._limit = 0, limit

    def close(self) -> list[ModelEvent]:
        """See :meth:`ReplyInProgress.close`. Here, an event of the stream has to say that the answer is complete."""
        return []

    def grow(self, piece: str) -> None:
        """:raises ModelError: with this piece, the answer is too long."""
        self._size += len(piece)
        if self._size > self._limit:
            raise self.unreadable(f"the answer is longer than {self._limit} characters")

    def show(self, text: str) -> list[ModelEvent]:
        """:returns: the event for the next piece of text."""
        if not text:
            return []
        self.shown = True
        return [TextDelta(text)]

    def count(self, usage: TokenUsage) -> list[ModelEvent]:
        """:returns: the event for new totals of usage."""
        self.usage = usage
        return [UsageSeen(usage)]

    def input_of(self, written: str) -> dict[str, Any]:
        """:raises ModelError: the input of a tool is not a JSON object."""
        try:
            return msgspec.json.decode(written, type=dict[str, Any]) if written.strip() else {}
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self.unreadable("the input of a tool is not JSON") from None

    def unreadable(self, detail: str) -> ModelError:
        """:returns: the error for a stream that violates the format."""
        return ModelError("network", f"{self.vendor}'s answer could not be understood: {plain(detail)}", retryable=True)

    def broken_off(self, code: str, message: str, kind: ErrorKind, *, passing: bool) -> ModelError:
        """
        :param passing: whether the same request may succeed later.
        :returns: the error for an error in the stream.
        """
        detail = f"{self.vendor} broke off its answer: {plain(message) or 'no explanation'}"
        if code:
            detail = f"{detail} ({plain(code)})"
        if mentions(code, _FILTERED):
            return ModelError("refused", REFUSED.format(detail))
        if kind == "context-overflow":
            detail = CONTEXT_FULL.format(detail=detail)
        return ModelError(kind, detail, retryable=passing)


def require_answer(reply: ModelReply) -> None:
    """:raises ModelError: the model or a filter of its provider ended the reply, so that it is no answer."""
    if reply.stop_reason not in ANSWERED:
        message = PAUSED if reply.stop_reason == "pause_turn" else REFUSED
        raise ModelError("refused", message.format(plain(reply.stop_reason)))


def key_scheme(header: str) -> str:
    """
    :param header: the header with a key, in lower case.
    :returns: the word before the key in it; empty for none.
    """
    return "Bearer" if header == "authorization" else ""


def key_value(header: str, key: str) -> str:
    """:returns: the value of the header with a key."""
    return f"{key_scheme(header)} {key}".lstrip()


def plain(text: str) -> str:
    """:returns: a provider's text, cut and printable."""
    return shorten(text[: 4 * DETAIL_LIMIT], DETAIL_LIMIT)


def mentions(text: str, phrases: Iterable[str]) -> bool:
    """:returns: whether one of the phrases, which are in lower case, occurs in the text."""
    lower = text.lower()
    return any(phrase in lower for phrase in phrases)


def response_error(
    vendor: str, status: int, code: str, message: str, *, full: bool = False, kind: ErrorKind | None = None
) -> ModelError:
    """
    Explain a response other than 200.

    :param code: the provider's word for the error; may be empty.
    :param full: whether it says that the conversation is too long.
    :param kind: if that is known better than from the status; such an error is final.
    """
    said = plain(message) or "no explanation"
    detail = f"{said} ({plain(code)}, HTTP {status})" if code else f"{said} (HTTP {status})"
    if full or status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return ModelError("context-overflow", CONTEXT_FULL.format(detail=detail))
    if kind is None and (status == HTTPStatus.TOO_MANY_REQUESTS or 500 <= status <= 599):  # a temporary failure
        return ModelError(_KINDS.get(status, "overloaded"), f"{vendor}: {detail}", retryable=True)
    return ModelError(kind or _KINDS.get(status, "invalid-request"), f"{vendor}: {detail}")
