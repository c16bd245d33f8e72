"""A model that a test answers by hand."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import Deferred

from ironcurtain.llm.model import (
    Block,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TextBlock,
    TokenUsage,
    ToolAsked,
    ToolResult,
    ToolUse,
)

USAGE = TokenUsage(input_tokens=10, output_tokens=2)
"""Of each answer."""


class HandModel:
    """
    :ivar requests: that it got, the oldest first.
    :ivar cancelled: how many of them were cancelled.
    :ivar usage: that it says of each answer.
    """

    name = "hand"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.cancelled = 0
        self.usage = USAGE
        self.notify: Callable[[ModelEvent], None]
        self._waiting: Deferred[ModelReply] | None = None
        self._uses = 0

    async def converse(self, request: ModelRequest, notify: Callable[[ModelEvent], None]) -> ModelReply:
        self.requests.append(request)
        self.notify = notify
        self._waiting = Deferred(self._cancel)
        return await self._waiting

    def _cancel(self, waiting: Deferred[ModelReply]) -> None:
        self.cancelled += 1

    @property
    def asked(self) -> bool:
        """Whether a request waits for its answer."""
        return self._waiting is not None and not self._waiting.called

    def answer(self, *content: Block, stop_reason: str = "end_turn") -> None:
        """Answer the request that waits."""
        assert self._waiting is not None
        for block in content:
            if isinstance(block, ToolUse):
                self.notify(ToolAsked(block))
        self._waiting.callback(ModelReply(content, stop_reason, self.usage, "m-1"))

    def say(self, text: str) -> None:
        """Answer with words."""
        self.answer(TextBlock(text))

    def plan(self, *commands: object) -> None:
        """Answer with a plan of these commands."""
        self.answer(*(self.use({"command": command, "purpose": "why not"}) for command in commands))

    def use(self, arguments: dict[str, object], name: str = "shell") -> ToolUse:
        """:returns: a new use of the tool."""
        self._uses += 1
        return ToolUse(f"use-{self._uses}", name, arguments)

    def fail(self, error: Exception) -> None:
        """Give no answer."""
        assert self._waiting is not None
        self._waiting.errback(error)


def last_results(request: ModelRequest) -> list[ToolResult]:
    """:returns: the results in the last message of a request."""
    return [block for block in request.messages[-1].content if isinstance(block, ToolResult)]


def last_words(request: ModelRequest) -> str:
    """:returns: the text in the last message of a request."""
    return "\n".join(block.text for block in request.messages[-1].content if isinstance(block, TextBlock))


def problems(request: ModelRequest) -> list[str]:
    """:returns: why a provider would refuse a conversation."""
    found: list[str] = []
    open_uses: list[str] = []
    role = "assistant"
    for message in request.messages:
        if message.role == role:
            found.append(f"two messages of the {role} in a row")
        role = message.role
        if not message.content or any(isinstance(block, TextBlock) and not block.text for block in message.content):
            found.append(f"an empty message of the {role}")
        results = [block.id for block in message.content if isinstance(block, ToolResult)]
        if results != open_uses:
            found.append(f"results {results} for {open_uses}")
        open_uses = [block.id for block in message.content if isinstance(block, ToolUse)]
    return found + [f"no result for {use}" for use in open_uses]
