"""The messages between a user, a model and its tools, in the form that providers accept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from ironcurtain.llm.model import (
    Block,
    ChatMessage,
    ModelError,
    ModelEvent,
    TextBlock,
    TextDelta,
    ToolAsked,
    ToolResult,
    ToolStarted,
    ToolUse,
)
from ironcurtain.llm.pictures import KEPT, images_of, keep_images

BROKE_OFF: Final = "the model's answer broke off: {error}. What came of it is kept: say 'go on' to continue"
"""The message for an answer that failed after a part of it was shown."""


def nothing_said(stop_reason: str) -> str:
    """:returns: the message for an answer without text."""
    return f"the model gave an empty answer ({stop_reason}): ask again"


class ShownText:
    """
    What was shown of an answer in progress, so that it is not lost if the rest never comes.

    :ivar begun: whether anything was shown.
    """

    def __init__(self) -> None:
        self.begun = False
        self._pieces: list[str] = []

    def take(self, event: ModelEvent) -> None:
        """Process an event of the answer."""
        self.begun = self.begun or isinstance(event, TextDelta | ToolStarted | ToolAsked)
        if isinstance(event, TextDelta):
            self._pieces.append(event.text)

    def kept(self, error: ModelError) -> str:
        """:returns: the text that is kept of a failed answer; empty if it is blank, or was refused."""
        text = "".join(self._pieces)
        return text if text.strip() and error.kind != "refused" else ""

    def failure(self, error: ModelError) -> str:
        """:returns: the message for a failed answer."""
        goes_on = self.begun and error.kind != "refused"
        return BROKE_OFF.format(error=str(error).rstrip(".")) if goes_on else str(error)


Exchange = tuple[ChatMessage, ...]
"""A message of the person and all that followed it, up to the next one."""

_UNRECORDED = "(not recorded)"
_DROPPED = "[IronCurtain: the {count} oldest messages of this conversation, and what followed them, were left out.]"
_SUMMARY = "[IronCurtain: the {count} oldest messages of this conversation were replaced by this summary:]\n{summary}"


class Past(msgspec.Struct, frozen=True):
    """
    A conversation as a model gets it.

    :ivar exchanges: the oldest first.
    :ivar dropped: number of exchanges before them that are left out.
    :ivar summary: of those; may be empty.
    """

    exchanges: tuple[Exchange, ...] = ()
    dropped: int = 0
    summary: str = ""

    @property
    def head(self) -> tuple[Block, ...]:
        """What the model is told of the exchanges that are left out."""
        if not self.dropped:
            return ()
        text = _SUMMARY if self.summary else _DROPPED
        return (TextBlock(text.format(count=self.dropped, summary=self.summary)),)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """All messages, the oldest first; roles alternate."""
        head = [ChatMessage("user", self.head)] if self.head else []
        return joined((*head, *(message for exchange in self.exchanges for message in exchange)))


def keep_newest(past: Past, images: int) -> Past:
    """:returns: a conversation with at most so many pictures: the newest ones."""
    exchanges: list[Exchange] = []
    for exchange in reversed(past.exchanges):
        exchanges.append(keep_images(exchange, images))
        images = max(0, images - len(images_of(exchange)))
    return replace(past, exchanges=tuple(reversed(exchanges)))


def joined(messages: Iterable[ChatMessage]) -> tuple[ChatMessage, ...]:
    """:returns: the messages; adjacent ones of the same role become one."""
    found: list[ChatMessage] = []
    for message in messages:
        if found and found[-1].role == message.role:
            message = ChatMessage(message.role, found.pop().content + message.content)
        found.append(message)
    return tuple(found)


class Conversation:
    """
    Messages in which the roles alternate and every tool use has its result.

    Both hold after every method, so that a turn may be cut off anywhere, except that tool uses of the last message wait
    for :meth:`results`, :meth:`interrupt` or :meth:`say`.
    """

    def __init__(self) -> None:
        self._exchanges: list[list[ChatMessage]] = []
        self._dropped, self._summary = 0, ""
        self._notes: list[str] = []

    @property
    def past(self) -> Past:
        """The conversation as a value."""
        return Past(tuple(map(tuple, self._exchanges)), self._dropped, self._summary)

    @property
    def newest(self) -> Exchange:
        """The last exchange; empty if there is none."""
        return tuple(self._exchanges[-1]) if self._exchanges else ()

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """All messages, the oldest first."""
        return self.past.messages

    def replace(self, past: Past) -> None:
        """Continue with a shorter form of this conversation."""
        self._exchanges = [list(exchange) for exchange in past.exchanges]
        self._dropped, self._summary = past.dropped, past.summary

    def note(self, text: str) -> None:
        """Tell the model something with the next message of the person."""
        self._notes.append(text)

    def say(self, text: str) -> None:
        """Add what the person says."""
        self._settle(_UNRECORDED)
        notes, self._notes = self._notes, []
        self._exchanges.append([ChatMessage("user", tuple(map(TextBlock, (*notes, text))))])

    def answer(self, content: Sequence[Block]) -> list[ToolUse]:
        """
        Add what the model says.

        :returns: the tool uses in it, which need :meth:`results` next.
        """
        blocks = tuple(content)
        if blocks:
            if not self._exchanges:
                self.say(_UNRECORDED)
            self._settle(_UNRECORDED)
            self._exchanges[-1] = [*joined((*self._exchanges[-1], ChatMessage("assistant", blocks)))]
        return [block for block in blocks if isinstance(block, ToolUse)]

    def results(self, results: Sequence[ToolResult]) -> None:
        """
        Add the results of the tool uses; those that belong to none are left out. Of all pictures at most
        :data:`~ironcurtain.llm.pictures.KEPT` stay.
        """
        given = {result.id: result for result in results}
        if uses := self._open():
            self._add_user(tuple(given.get(use.id) or ToolResult(use.id, _UNRECORDED, True) for use in uses))
        if any(result.images for result in results) and self._images() > KEPT:
            self.replace(keep_newest(self.past, KEPT // 2))

    def _images(self) -> int:
        return sum(len(images_of(exchange)) for exchange in self._exchanges)

    def interrupt(self, why: str) -> None:
        """End a turn that was cut off: results that are missing say why, or else a note does."""
        if not self._settle(why) and self._exchanges and self._exchanges[-1][-1].role == "user":
            self._add_user((TextBlock(f"[IronCurtain: this message got no answer: {why}]"),))

    def leave_out(self) -> bool:
        """
        Drop the newest message, to which there is no answer, since the model cannot read it. The next one says so.

        :returns: whether there was one.
        """
        if len(self.newest) != 1 or self.newest[0].role != "user":
            return False
        [message] = self._exchanges.pop()
        size = sum(len(block.text) for block in message.content if isinstance(block, TextBlock))
        self.note(f"[IronCurtain: a message of {size} characters was left out: it did not fit the model's context.]")
        return True

    def _open(self) -> list[ToolUse]:
        last = self._exchanges[-1][-1] if self._exchanges else None
        if last is None or last.role == "user":
            return []
        return [block for block in last.content if isinstance(block, ToolUse)]

    def _settle(self, why: str) -> bool:
        uses = self._open()
        if uses:
            self._add_user(tuple(ToolResult(use.id, why, True) for use in uses))
        return bool(uses)

    def _add_user(self, blocks: tuple[Block, ...]) -> None:
        self._exchanges[-1] = [*joined((*self._exchanges[-1], ChatMessage("user", blocks)))]
