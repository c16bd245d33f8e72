"""The messages between a user, a model and its tools, in the form that providers accept."""

from __future__ import annotations

from collections.abc import Sequence

from ironcurtain.llm.model import Block, ChatMessage, TextBlock, ToolResult, ToolUse


class Conversation:
    """
    Messages in which the roles alternate and every tool use has its result.

    Both hold after every method, so that a turn may be cut off anywhere.
    """

    def __init__(self) -> None:
        self._messages: list[ChatMessage] = []

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """All messages, the oldest first."""
        return tuple(self._messages)

    def say(self, text: str) -> None:
        """Add what the person says."""
        self._add_user((TextBlock(text),))

    def answer(self, content: Sequence[Block]) -> list[ToolUse]:
        """
        Add what the model says.

        :returns: the tool uses in it, which need :meth:`results` next.
        """
        blocks = tuple(content)
        if blocks:
            self._messages.append(ChatMessage("assistant", blocks))
        return [block for block in blocks if isinstance(block, ToolUse)]

    def results(self, results: Sequence[ToolResult]) -> None:
        """Add the results of the tool uses."""
        self._add_user(tuple(results))

    def interrupt(self, why: str) -> None:
        """End a turn that was cut off: results that are missing say why."""
        if not self._messages or self._messages[-1].role == "user":
            return
        uses = [block for block in self._messages[-1].content if isinstance(block, ToolUse)]
        if uses:
            self._add_user(tuple(ToolResult(use.id, why, True) for use in uses))

    def _add_user(self, blocks: tuple[Block, ...]) -> None:
        if self._messages and self._messages[-1].role == "user":
            blocks = self._messages.pop().content + blocks
        self._messages.append(ChatMessage("user", blocks))
