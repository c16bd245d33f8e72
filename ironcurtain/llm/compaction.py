"""
Shorten a conversation that no longer fits into a model's context.

First pictures go, the oldest first, then the code and the results of old turns, the oldest first, then the oldest
turns. Of the newest turn nothing but pictures goes, and a tool use is never without its result.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from ironcurtain.llm.conversation import Exchange, Past, joined, keep_newest
from ironcurtain.llm.model import Block, ChatMessage, ModelError, TextBlock, ToolResult, ToolUse
from ironcurtain.llm.pictures import LEFT_OUT, images_of

NOTE_TOKENS = 50
"""Tokens reserved for the note that turns were dropped."""

_LEAN = TextBlock("[IronCurtain: the programs of this turn and their results were left out.]")


class Strategy(StrEnum):
    """
    What becomes of the oldest turns: nothing, so that a long conversation ends in an error; they are dropped as
    necessary; a summary replaces them; or only a number of turns is kept.
    """

    NONE = "none"
    TRUNCATE = "truncate"
    SUMMARISE = "summarise"
    SLIDING = "sliding"


class Room(msgspec.Struct, frozen=True):
    """
    :ivar limit: tokens that the messages may have.
    :ivar target: tokens to which they are shortened, at most the limit.
    :ivar summary: tokens of ``target`` that a summary will take.
    :ivar turns: number of turns that ``sliding`` keeps.
    """

    limit: int
    target: int
    summary: int
    turns: int


class Shortened(msgspec.Struct, frozen=True):
    """
    :ivar past: what the model gets from now on; with ``summarise``, its summary does not cover ``gone`` yet.
    :ivar gone: the oldest exchanges, which are not in it any longer.
    :ivar lean: number of exchanges in it, the oldest, whose programs and results are left out.
    :ivar images: number of pictures, the newest, that were kept before that.
    """

    past: Past
    gone: tuple[Exchange, ...]
    lean: int
    images: int = 0


def lean(exchange: Exchange) -> Exchange:
    """:returns: an exchange without its tool uses and their results, and a note that they are missing."""
    if not any(isinstance(block, ToolUse) for message in exchange for block in message.content):
        return exchange
    texts = [
        ChatMessage(message.role, kept)
        for message in exchange
        if (kept := tuple(block for block in message.content if isinstance(block, TextBlock)))
    ]
    first, *others = texts
    return joined((ChatMessage("user", (*first.content, _LEAN)), *others))


def tokens(exchange: Exchange, size: Callable[[Block], int]) -> int:
    """:returns: the sum of the sizes of all blocks."""
    return sum(size(block) for message in exchange for block in message.content)


def shorten(past: Past, strategy: Strategy, room: Room, size: Callable[[Block], int]) -> Shortened:
    """
    Shorten a conversation.

    :param past: at least one exchange.
    :param size: returns the tokens of a block.
    :raises ModelError: ``context-overflow``: the newest exchange alone is too long.
    """
    past, images = _with_fewer_images(past, room.target, size)
    *old, newest = past.exchanges
    sizes = [tokens(exchange, size) for exchange in old]
    fixed = tokens(newest, size)
    total, thin = sum(map(size, past.head)) + sum(sizes) + fixed, 0
    while thin < len(old) and total > room.target:
        old[thin] = lean(old[thin])
        total -= sizes[thin]
        sizes[thin] = tokens(old[thin], size)
        total += sizes[thin]
        thin += 1
    gone = _gone(sizes, fixed, strategy, room) if total > room.target else 0
    summary = past.summary if strategy is Strategy.SUMMARISE or not gone else ""
    kept = Past((*old[gone:], newest), past.dropped + gone, summary)
    head = room.summary if gone and strategy is Strategy.SUMMARISE else sum(map(size, kept.head))
    if head + sum(sizes[gone:]) + fixed > room.limit:
        raise ModelError("context-overflow", "the newest message, with what followed it, is too long for the model")
    return Shortened(kept, tuple(old[:gone]), max(0, thin - gone), images)


def _with_fewer_images(past: Past, target: int, size: Callable[[Block], int]) -> tuple[Past, int]:
    """:returns: a conversation without as many of its oldest pictures as exceed a target, and how many it has left."""
    images = [image for exchange in past.exchanges for image in images_of(exchange)]
    if not images:
        return past, 0
    over = sum(map(size, past.head)) + sum(tokens(exchange, size) for exchange in past.exchanges) - target
    gone, note = 0, size(TextBlock(LEFT_OUT))
    while gone < len(images) and over > 0:
        over -= size(ToolResult("", "", False, (images[gone],))) - note
        gone += 1
    kept = len(images) - gone
    return keep_newest(past, kept) if gone else past, kept


def _gone(sizes: list[int], fixed: int, strategy: Strategy, room: Room) -> int:
    """
    :param sizes: of the old exchanges.
    :param fixed: size of all that stays.
    :returns: how many of the old exchanges have to go.
    """
    gone = max(0, len(sizes) - room.turns + 1) if strategy is Strategy.SLIDING else 0
    head = room.summary if strategy is Strategy.SUMMARISE else NOTE_TOKENS
    left = sum(sizes[gone:])
    while gone < len(sizes) and head + left + fixed > room.target:
        left -= sizes[gone]
        gone += 1
    return gone
