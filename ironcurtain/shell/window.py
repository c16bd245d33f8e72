"""The conversation of a shell with its model, kept within what the model can read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ironcurtain.llm.conversation import Conversation, joined
from ironcurtain.llm.model import Block, ChatMessage, TextBlock, TokenUsage, ToolResult, ToolUse
from ironcurtain.llm.tokens import TokenSum
from ironcurtain.shell.context import Prompt, summary
from ironcurtain.text.display import shorten

KEPT_TURNS: Final = 16
"""Turns that are kept whole if they fit."""

TURNS_LEFT: Final = 0.5
"""
Part of them that stays whole once there are too many, so that the beginning then stays the same for some turns and is
read from a cache.
"""

TRIMMED_TO: Final = 0.75
"""Part of the tokens' limit that is left after trimming, for the same reason."""

SUMMARY_LIMIT: Final = 200
"""Most characters of an instruction, and of its outcome, in a line that stands for a turn."""

SUMMARIES: Final = 50
"""Most such lines."""

OUTPUT_LEFT_OUT: Final = "[this output was left out: the conversation is long]"
"""Stands for the result of a step that no longer fits."""


class _Turn(msgspec.Struct):
    prompt: Prompt
    rest: Conversation = msgspec.field(default_factory=Conversation)
    """It begins with the prompt, whose text may have become shorter since."""
    left_out: int = 0
    """How many of its results were left out."""

    def __post_init__(self) -> None:
        self.rest.say(self.prompt.text)

    def messages(self) -> list[ChatMessage]:
        left, messages = self.left_out, list[ChatMessage]()
        first, *others = self.rest.messages
        opening = ChatMessage("user", (TextBlock(self.prompt.text), *first.content[1:]))
        for message in (opening, *others):
            results = sum(isinstance(block, ToolResult) for block in message.content)
            messages.append(_shortened(message, left) if left > 0 and results else message)
            left -= results
        return messages

    def results(self) -> list[ToolResult]:
        return [b for message in self.rest.messages for b in message.content if isinstance(b, ToolResult)]

    def line(self) -> tuple[str, str]:
        texts = [
            block.text
            for message in self.rest.messages
            if message.role == "assistant"
            for block in message.content
            if isinstance(block, TextBlock) and block.text.strip()
        ]
        outcome = shorten(texts[-1], SUMMARY_LIMIT) if texts else "no answer"
        return shorten(self.prompt.instruction, SUMMARY_LIMIT), outcome


class ContextWindow:
    """
    What was said, in turns: an instruction with all that follows it. With too many turns, the oldest become a line
    each. Over the limit, the oldest lines of terminals go first; then the oldest turns become a line each; then results
    of the current turn are left out, the oldest first.

    :param count: says how many tokens a text has.
    :param limit: gives the most tokens, as soon as the model is known.
    :param turns: most turns that are kept whole.
    :param fixed: tokens of the system prompt and the tools.
    """

    def __init__(
        self,
        count: Callable[[str], int],
        limit: Callable[[], int],
        *,
        turns: int = KEPT_TURNS,
        fixed: int = 0,
    ) -> None:
        self._count, self._limit, self._kept, self._fixed = count, limit, turns, fixed
        self._turns: list[_Turn] = []
        self._lines: list[tuple[str, str]] = []
        self._sum = TokenSum(count, fixed)

    @property
    def tokens(self) -> int:
        """How many there are now, as far as is known."""
        return self._sum.value()

    def instruct(self, prompt: Prompt) -> None:
        """A turn begins."""
        self._turns.append(_Turn(prompt))
        self._sum = self._sum.plus(prompt.text)
        if len(self._turns) > self._kept:
            while len(self._turns) > max(self._kept * TURNS_LEFT, 1):
                self._forget_turn()

    def say(self, text: str) -> None:
        """:param text: what the user adds to their instruction, or what this program has to say."""
        self._turns[-1].rest.say(text)
        self._sum = self._sum.plus(text)

    def answer(self, content: Sequence[Block], usage: TokenUsage | None = None) -> list[ToolUse]:
        """
        Add what the model says.

        :param usage: of its last request alone, if it is known.
        :returns: the tool uses in it, which need :meth:`results` next.
        """
        uses = self._turns[-1].rest.answer(content)
        if usage is not None and usage.prompt_tokens:
            self._sum = TokenSum(self._count, usage.prompt_tokens + usage.output_tokens)
        else:
            self._sum = self._sum.plus(*map(_text, content))
        return uses

    def results(self, results: Sequence[ToolResult]) -> None:
        """Add the results of the tool uses."""
        self._turns[-1].rest.results(results)
        self._sum = self._sum.plus(*(result.content for result in results))

    def interrupt(self, why: str) -> None:
        """End a turn that was cut off: results that are missing say why."""
        if self._turns:
            self._turns[-1].rest.interrupt(why)

    def messages(self) -> tuple[ChatMessage, ...]:
        """:returns: what is to be sent, within the limit as far as that can be."""
        limit = self._limit()
        if not self._sum.within(limit):
            self._trim(int(limit * TRIMMED_TO))
        messages = [message for turn in self._turns for message in turn.messages()]
        if self._lines:
            first = TextBlock(summary(self._lines))
            messages.insert(0, ChatMessage("user", (first,)))
        return joined(messages)

    def _trim(self, wanted: int) -> None:
        for turn in self._turns:
            self._drop_lines(turn, wanted)
        while self.tokens > wanted and len(self._turns) > 1:
            self._forget_turn()
        if self._turns:
            self._leave_out_results(self._turns[-1], wanted)

    def _drop_lines(self, turn: _Turn, wanted: int) -> None:
        while self.tokens > wanted and turn.prompt.terminal:
            lines = max(1, len(turn.prompt.terminal) // 4)
            self._subtract(self._count("\n".join(turn.prompt.terminal[:lines])))
            turn.prompt = turn.prompt.without(lines)

    def _forget_turn(self) -> None:
        turn = self._turns.pop(0)
        texts = (_text(block) for message in turn.messages() for block in message.content)
        self._lines.append(turn.line())
        self._subtract(sum(map(self._count, texts)) - self._count(" ".join(self._lines[-1])))
        del self._lines[:-SUMMARIES]

    def _leave_out_results(self, turn: _Turn, wanted: int) -> None:
        results = turn.results()
        while self.tokens > wanted and turn.left_out < len(results) - 1:  # the newest one stays
            content = results[turn.left_out].content
            self._subtract(max(0, self._count(content) - self._count(OUTPUT_LEFT_OUT)))
            turn.left_out += 1

    def _subtract(self, tokens: int) -> None:
        self._sum = TokenSum(self._count, max(self.tokens - tokens, self._fixed))


def _shortened(message: ChatMessage, count: int) -> ChatMessage:
    """:returns: a message without the content of its first ``count`` results."""
    content = list[Block]()
    for block in message.content:
        if isinstance(block, ToolResult) and count > 0:
            block, count = replace(block, content=OUTPUT_LEFT_OUT), count - 1
        content.append(block)
    return ChatMessage(message.role, tuple(content))


def _text(block: Block) -> str:
    match block:
        case TextBlock(text):
            return text
        case ToolUse(_, name, input):
            return " ".join((name, *map(str, input.values())))
        case ToolResult(_, content):
            return content
    return ""
