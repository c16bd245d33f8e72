"""What an agent's program reports, in a form that is the same for all agents."""

from __future__ import annotations

from typing import Literal

import msgspec

from ironcurtain.agents.outcome import Kind, TurnFailed
from ironcurtain.llm.model import TokenUsage

ToolStatus = Literal["success", "error", "cancelled"]


class Outgoing(msgspec.Struct, frozen=True):
    """The protocol has to answer: bytes for the program."""

    data: bytes


class Named(msgspec.Struct, frozen=True):
    """The conversation's id, by which a later program resumes it."""

    conversation: str


class Text(msgspec.Struct, frozen=True):
    """A piece of the agent's text."""

    text: str


class TextDropped(msgspec.Struct, frozen=True):
    """The text since the last block will not be completed."""


class Activity(msgspec.Struct, frozen=True):
    """What the agent does now, in a word. ``answering`` begins a block of text."""

    state: str


class ToolStarted(msgspec.Struct, frozen=True):
    """
    One of its own tools began.

    :ivar what: the argument in one line.
    :ivar parent: ``tool_id`` of the sub-agent that uses it; empty: the agent itself does.
    """

    tool_id: str
    name: str
    what: str = ""
    parent: str = ""


class ToolFinished(msgspec.Struct, frozen=True):
    """
    One of its own tools ended.

    :ivar what: the result in one line.
    :ivar diff: the change of a file as a unified diff; empty: there is none.
    """

    tool_id: str
    status: ToolStatus
    what: str = ""
    diff: str = ""


class Waiting(msgspec.Struct, frozen=True):
    """
    The model gave no answer, and is asked again.

    :ivar seconds: until then; 0 if the agent does not say.
    """

    seconds: float
    reason: str


class Taken(msgspec.Struct, frozen=True):
    """A message that was handed over during a turn is part of the conversation now."""

    message: str


class Remark(msgspec.Struct, frozen=True):
    """Something that the person has to know, such as that a conversation could not be resumed."""

    text: str


class Failed(msgspec.Struct, frozen=True):
    """
    Why a turn has no complete answer.

    :ivar reason: the agent's own words; may be empty.
    :ivar status: the HTTP status of the model's response, if the agent reports it.
    :ivar kind: ``None``: derived from the others.
    """

    reason: str = ""
    status: int | None = None
    kind: Kind | None = None


class TurnOver(msgspec.Struct, frozen=True):
    """
    The turn ended, but the program may go on.

    :ivar answer: complete, unless ``failed`` says otherwise.
    :ivar failed: why it is incomplete, also as a whole explanation.
    :ivar usage: tokens of the turn as the agent counted them; ``None`` if unknown.
    """

    answer: str = ""
    failed: Failed | TurnFailed | None = None
    usage: TokenUsage | None = None


Report = (
    Outgoing | Named | Text | TextDropped | Activity | ToolStarted | ToolFinished | Waiting | Taken | Remark | TurnOver
)
