"""Requests to and answers of a language model, the same for every provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import msgspec

from ironcurtain.errors import IronCurtainError

ErrorKind = Literal[
    "overloaded",
    "rate-limited",
    "authentication",
    "context-overflow",
    "invalid-request",
    "network",
    "stalled",
    "refused",
    "script",
]
"""
Why a model gave no answer. ``network`` includes an answer that broke off or could not be parsed; ``refused`` one that
the model or a filter ended, whose text does not count.
"""

ANSWERED = frozenset(("end_turn", "stop_sequence", "tool_use", "max_tokens", "model_context_window_exceeded", ""))
"""Reasons to stop after which there is an answer, perhaps a cut one; empty: the provider gave no reason."""


class TextBlock(msgspec.Struct, frozen=True):
    """Text from the person or from the model."""

    text: str


class ToolUse(msgspec.Struct, frozen=True):
    """The model calls a tool. ``id`` connects it with the :class:`ToolResult`."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ImageBlock:
    """
    A picture in the result of a tool. :func:`ironcurtain.llm.pictures.image_block` makes one of untrusted data.

    :ivar media_type: one of :data:`ironcurtain.llm.pictures.MEDIA_TYPES`.
    :ivar width, height: in pixels, which decide how many tokens it has.
    """

    media_type: str
    data: bytes = field(repr=False)
    width: int
    height: int


class ToolResult(msgspec.Struct, frozen=True):
    """The result of the tool call with this ``id``. ``images`` are shown to the model after ``content``."""

    id: str
    content: str
    is_error: bool
    images: tuple[ImageBlock, ...] = ()


class ProviderBlock(msgspec.Struct, frozen=True):
    """
    A block that only its provider understands, such as signed reasoning.

    It keeps its place in the conversation: it is sent back unchanged to the same provider, left out for any other, and
    never shown.

    :ivar provider: name of the provider that sent it.
    :ivar data: its JSON object.
    """

    provider: str
    data: Mapping[str, Any]


Block = TextBlock | ToolUse | ToolResult | ProviderBlock
"""One piece of a message."""


class ChatMessage(msgspec.Struct, frozen=True):
    """One turn of the conversation."""

    role: Literal["user", "assistant"]
    content: tuple[Block, ...]


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool that the model may call; ``schema`` is the JSON schema of its input."""

    name: str
    description: str
    schema: Mapping[str, Any]


class ModelRequest(msgspec.Struct, frozen=True):
    """
    The complete conversation so far, for the next turn. ``max_tokens`` bounds the answer.

    :ivar traceparent: the request's place in a trace, if the provider is to know it (W3C Trace Context).
    """

    system: str
    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...]
    model: str
    max_tokens: int
    traceparent: str = ""


class TokenUsage(msgspec.Struct, frozen=True):
    """Tokens that were paid for. The three kinds of input do not overlap; their sum is the length of the prompt."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    @property
    def prompt_tokens(self) -> int:
        """Length of the prompt: fresh, read from the cache and written to it."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens


class ModelReply(msgspec.Struct, frozen=True):
    """
    A complete answer.

    :ivar stop_reason: ``end_turn``, ``tool_use``, ``max_tokens`` (cut at the limit), ``model_context_window_exceeded``
        (cut because the context is full), or another word of the provider, such as ``refusal``: see :data:`ANSWERED`.
    :ivar usage: usage of the complete request, including failed attempts.
    :ivar model: the model that answered, as the provider names it.
    """

    content: tuple[Block, ...]
    stop_reason: str
    usage: TokenUsage
    model: str


class TextDelta(msgspec.Struct, frozen=True):
    """The next piece of text."""

    text: str


class ToolStarted(msgspec.Struct, frozen=True):
    """The model has begun to call this tool; its input follows."""

    name: str


class ToolAsked(msgspec.Struct, frozen=True):
    """A tool use is complete; the answer may go on after it, and can still fail."""

    use: ToolUse


class Retrying(msgspec.Struct, frozen=True):
    """An attempt failed before anything was shown; the next one starts in ``delay_seconds``."""

    delay_seconds: float
    reason: str


class UsageSeen(msgspec.Struct, frozen=True):
    """Usage of this request so far, including failed attempts. Replaces the previous one."""

    usage: TokenUsage


class FellBack(msgspec.Struct, frozen=True):
    """
    A model could not be reached; the next one is asked.

    :ivar from_: the one that failed, as is ``to`` the next: its provider and its name.
    """

    from_: str
    to: str
    reason: str


ModelEvent = TextDelta | ToolStarted | ToolAsked | Retrying | FellBack | UsageSeen
"""Events while an answer arrives."""


class ModelClient(Protocol):
    """A client for language models."""

    @property
    def name(self) -> str:
        """Name of the provider, for messages and for :attr:`ProviderBlock.provider`."""

    async def converse(self, request: ModelRequest, notify: Callable[[ModelEvent], None]) -> ModelReply:
        """
        Request the next turn.

        Run it with ``Deferred.fromCoroutine``; cancelling that Deferred closes the connection.

        :param notify: called with each event as it happens; must return at once. To cancel because of an event, do so
            in a later turn of the reactor: a coroutine can be cancelled only while it waits.
        :raises ModelError: there is no answer.
        """


class ModelError(IronCurtainError):
    """
    A model gave no answer.

    :ivar kind: why.
    :ivar retryable: whether the same request may succeed later. The client has already retried as often as allowed; it
        never retries once text has been shown.
    :ivar usage: usage that was paid for, if known.
    :ivar retry_after: seconds to wait, if the server requested that.
    """

    code = "MODEL_FAILED"
    exit_status = 69

    def __init__(
        self,
        kind: ErrorKind,
        detail: str,
        *,
        retryable: bool = False,
        usage: TokenUsage | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.kind = kind
        self.retryable = retryable
        self.usage = usage
        self.retry_after = retry_after
