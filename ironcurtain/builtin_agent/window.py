"""Keep a conversation within the context of its model: estimate its length, and plan what has to go."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from ironcurtain.llm.compaction import Room, Shortened, Strategy, shorten, tokens
from ironcurtain.llm.conversation import Conversation, Past
from ironcurtain.llm.model import Block, ModelError, ProviderBlock, TextBlock, TokenUsage, ToolResult, ToolUse

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
    """

    def __init__(self, strategy: Strategy, tokens: int, turns: int, count: Callable[[str], int]) -> None:
        self.strategy = strategy
        self._tokens, self._turns, self._count = tokens, turns, count
        self._fixed, self._read = 0, 0
        self._known: int | None = None
        self._new = 0

    @property
    def summary_tokens(self) -> int:
        """Most tokens of a summary."""
        return min(SUMMARY_TOKENS, self._tokens // 4)

    def always(self, *texts: str) -> None:
        """Count texts that are in every request: the system prompt and the tools."""
        if self.strategy is not Strategy.NONE:
            self._fixed = sum(map(self._count, texts))

    def added(self, blocks: Sequence[Block]) -> None:
        """Count what the next request has and the last one had not."""
        if self.strategy is not Strategy.NONE:
            self._new += sum(map(self._size, blocks))

    def reported(self, usage: TokenUsage) -> None:
        """The provider reported the length of a request and of its answer, if it does so."""
        self._known = usage.prompt_tokens + usage.output_tokens if usage.prompt_tokens else None
        self._new = 0

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
        return self._counted(past) if self._known is None else self._known + self._new

    def plan(self, past: Past) -> Shortened | None:
        """
        :returns: what the model gets from now on; ``None``: the conversation fits as it is.
        :raises ModelError: ``context-overflow``: the newest exchange alone is too long.
        """
        if self.strategy is Strategy.NONE or (needed := self.needed(past)) <= self._tokens * FULL:
            return None
        # The provider counts otherwise than we do: sizes are in its tokens.
        factor = max(1.0, needed / max(1, self._counted(past)))
        plan = shorten(past, self.strategy, self._room(factor), lambda block: math.ceil(self._size(block) * factor))
        self._known = None
        return plan

    def squeeze(self, conversation: Conversation) -> None:
        """
        While a conversation is read from its file, drop what the model could not get anyway. Called after each turn.
        """
        if self.strategy is Strategy.NONE:
            return
        self._read += tokens(conversation.newest, self._size)
        if self._fixed + self._read <= self._tokens * FULL:
            return
        strategy = Strategy.TRUNCATE if self.strategy is Strategy.SUMMARISE else self.strategy
        try:
            past = shorten(conversation.past, strategy, self._room(1.0), self._size).past
        except ModelError:  # reported with the next message
            return
        conversation.replace(past)
        self._read = sum(tokens(exchange, self._size) for exchange in past.exchanges)

    def _room(self, factor: float) -> Room:
        fixed = math.ceil(self._fixed * factor)
        limit, target = (max(0, int(self._tokens * share) - fixed) for share in (FULL, TARGET))
        return Room(limit, target, self.summary_tokens, self._turns)

    def _counted(self, past: Past) -> int:
        exchanges = sum(tokens(exchange, self._size) for exchange in past.exchanges)
        return self._fixed + exchanges + sum(map(self._size, past.head))

    def _size(self, block: Block) -> int:
        match block:
            case TextBlock(text):
                return self._count(text)
            case ToolUse(_, _, input):
                return self._count(msgspec.json.encode(input).decode())
            case ToolResult(_, content, _):
                return self._count(content)
            case ProviderBlock(_, data):
                return self._count(msgspec.json.encode(data).decode())
