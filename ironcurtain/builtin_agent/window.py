"""Keep a conversation within the context of its model: estimate its length, and plan what has to go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec

from ironcurtain.llm.compaction import Room, Shortened, Strategy, shorten, tokens
from ironcurtain.llm.conversation import Conversation, Exchange, Past
from ironcurtain.llm.model import (
    Block,
    ImageBlock,
    ModelError,
    ProviderBlock,
    TextBlock,
    TokenUsage,
    ToolResult,
    ToolUse,
)
from ironcurtain.llm.tokens import TokenSum

FULL, TARGET = 0.9, 0.6
"""
Shares of the context: from the first on, a conversation is shortened, to the second, so that this is rare and the
provider's cache of the prompt stays useful in between. The rest is for errors of the estimate.
"""

SUMMARY_TOKENS = 2000
"""Most tokens of a summary; in a small context a quarter of it."""

OVERFLOW = 0.75
"""The context is assumed to be so much smaller than a request that the provider refused."""


class Window:
    """
    :param tokens: of the model's context without the answer.
    :param turns: number of turns that ``sliding`` keeps.
    :param count: returns the tokens of a text, about.
    :param count_image: returns those of a picture.
    """

    def __init__(
        self,
        strategy: Strategy,
        tokens: int,
        turns: int,
        count: Callable[[str], int],
        count_image: Callable[[ImageBlock], int],
    ) -> None:
        self.strategy = strategy
        self._tokens, self._turns, self._count, self._count_image = tokens, turns, count, count_image
        self._fixed, self._read = TokenSum(count), 0
        self._reported: TokenSum | None = None

    @property
    def summary_tokens(self) -> int:
        """Most tokens of a summary."""
        return min(SUMMARY_TOKENS, self._tokens // 4)

    def always(self, *texts: str) -> None:
        """Count texts that are in every request: the system prompt and the tools."""
        self._fixed = TokenSum(self._count, 0, texts)

    def added(self, blocks: Sequence[Block]) -> None:
        """Count what the next request has and the last one had not."""
        if self._reported is not None:
            self._reported = self._reported.plus(*map(_text, blocks), counted=sum(map(self._of_images, blocks)))

    def reported(self, usage: TokenUsage) -> None:
        """The provider reported the length of a request and of its answer, if it does so."""
        known = usage.prompt_tokens + usage.output_tokens if usage.prompt_tokens else None
        self._reported = None if known is None else TokenSum(self._count, known)

    def overflowed(self, past: Past) -> bool:
        """
        The provider refused a request as too long.

        :returns: whether to try again with a shorter one.
        """
        if self.strategy is Strategy.NONE:
            return False
        self._tokens = int(min(self._tokens, self.needed(past)) * OVERFLOW)
        return True

    def needed(self, past: Past) -> int:
        """:returns: tokens of the next request, about: the last reported ones, and a count of what is new."""
        return (self._reported or self._counted(past)).value()

    def fits(self, past: Past) -> bool:
        """Whether a conversation is sent as it is."""
        return self.strategy is Strategy.NONE or (self._reported or self._counted(past)).within(self._tokens * FULL)

    def plan(self, past: Past) -> Shortened:
        """
        :param past: one that does not fit.
        :returns: what the model gets from now on.
        :raises ModelError: ``context-overflow``: the newest exchange alone is too long.
        """
        # The provider counts otherwise than we do: sizes are in its tokens.
        factor = max(1.0, self.needed(past) / max(1, self._counted(past).value()))
        plan = shorten(past, self.strategy, self._room(factor), lambda block: math.ceil(self._size(block) * factor))
        self._reported = None
        return plan

    def squeeze(self, conversation: Conversation) -> None:
        """
        While a conversation is read from its file, drop what the model could not get anyway. Called after each turn.
        """
        if self.strategy is Strategy.NONE:
            return
        self._read += tokens(conversation.newest, self._size)
        if self._fixed.value() + self._read <= self._tokens * FULL:
            return
        strategy = Strategy.TRUNCATE if self.strategy is Strategy.SUMMARISE else self.strategy
        try:
            past = shorten(conversation.past, strategy, self._room(1.0), self._size).past
        except ModelError:  # reported with the next message
            return
        conversation.replace(past)
        self._read = sum(tokens(exchange, self._size) for exchange in past.exchanges)

    def _room(self, factor: float) -> Room:
        fixed = math.ceil(self._fixed.value() * factor)
        limit, target = (max(0, int(self._tokens * share) - fixed) for share in (FULL, TARGET))
        return Room(limit, target, self.summary_tokens, self._turns)

    def _counted(self, past: Past) -> TokenSum:
        blocks = [*past.head, *(block for exchange in past.exchanges for block in _blocks(exchange))]
        return self._fixed.plus(*map(_text, blocks), counted=sum(map(self._of_images, blocks)))

    def _size(self, block: Block) -> int:
        return self._count(_text(block)) + self._of_images(block)

    def _of_images(self, block: Block) -> int:
        return sum(map(self._count_image, block.images)) if isinstance(block, ToolResult) else 0


def _blocks(exchange: Exchange) -> Iterator[Block]:
    return (block for message in exchange for block in message.content)


def _text(block: Block) -> str:
    match block:
        case TextBlock(text):
            return text
        case ToolUse(_, _, input):
            return msgspec.json.encode(input).decode()
        case ToolResult(_, content):
            return content
        case ProviderBlock(_, data):
            return msgspec.json.encode(data).decode()
