"""What an agent's program reports, in a form that is the same for all agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ironcurtain.agents.outcome import Kind, TurnFailed
from ironcurtain.llm.model import TokenUsage

ToolStatus = Literal["success", "error", "cancelled"]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The protocol has to answer: bytes for the program."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Named:
    """The conversation's id, by which a later program resumes it."""

    conversation: str


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the agent's text."""

    text: str


@dataclass(frozen=True, slots=True)
class TextDropped:
    """The text since the last block will not be completed."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What the agent does now, in a word. ``answering`` begins a block of text."""

    state: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """
    One of its own tools began.

    :ivar what: the argument in one line.
    :ivar parent: ``tool_id`` of the sub-agent that uses it; empty: the agent itself does.
    """

    tool_id: str
    name: str
    what: str = ""
    parent: str = ""


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """
    One of its own tools ended.

    :ivar what: the result in one line.
    :ivar diff: the change of a file as a unified diff; empty: there is none.
    """

    tool_id: str
    status: ToolStatus
    what: str = ""
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """
    The model gave no answer, and is asked again.

    :ivar seconds: until then; 0 if the agent does not say.
    """

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Taken:
    """A message that was handed over during a turn is part of the conversation now."""

    message: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that the person has to know, such as that a conversation could not be resumed."""

    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """
    Why a turn has no complete answer.

    :ivar reason: the agent's own words; may be empty.
    :ivar status: the HTTP status of the model's response, if the agent reports it.
    :ivar kind: ``None``: derived from the others.
    """

    reason: str = ""
    status: int | None = None
    kind: Kind | None = None


@dataclass(frozen=True, slots=True)
class TurnOver:
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
