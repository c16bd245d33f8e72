"""What every kind of session has in common: its states, its description, and who thinks in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import msgspec


class State(StrEnum):
    """``initializing -> ready <-> processing -> closed``."""

    INITIALIZING = "initializing"
    READY = "ready"
    PROCESSING = "processing"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """
    What somebody wants started.

    :param kind: which kind of agent; a name from the manager's table.
    :param task: the first message or the label's text; may be empty.
    :param workspace: the directory that the agent works on; ``None``: a fresh one in the session's directory.
    :param options: what only this kind understands.
    :param directory: where the session keeps its files; ``None``: in the home.
    :param resume: id of a session that ended, which goes on; kind and workspace are then its own, and so are the
        options where none are given here.
    """

    kind: str
    task: str = ""
    workspace: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    directory: Path | None = None
    resume: str = ""


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """
    A session as others see it, and as ``session.json`` keeps it.

    :param started_at: UTC in ISO 8601.
    :param turns: messages so far.
    :param pending: escalations that wait for a person.
    :param options: what was asked for when it first started.
    """

    version: int = 1
    id: str
    number: int
    kind: str
    label: str
    state: str
    started_at: str
    workspace: str
    turns: int = 0
    pending: int = 0
    reason: str = ""
    options: dict[str, Any] = {}


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """
    What a turn used; tokens as the provider counted them, cost in US dollars where it is known.

    :param token_tracking_available: whether the tokens are known; if not, the other numbers mean nothing.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    token_tracking_available: bool = True


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """
    One message and its answer.

    :param timestamp: UTC in ISO 8601, of the message.
    :param error: why there is no answer; empty if there is one.
    """

    number: int
    message: str
    answer: str
    usage: Usage
    timestamp: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent answered, and what it used."""

    text: str
    usage: Usage


class Agent(Protocol):
    """Who thinks in a session. One message at a time; a message is cancelled by cancelling its Deferred."""

    async def start(self) -> None:
        """Get ready; on failure leave nothing behind."""

    async def respond(self, message: str) -> Reply:
        """
        Work on a message.

        :raises SessionError: ``MESSAGE_FAILED``, with the reason; the conversation can go on.
        """

    async def stop(self) -> None:
        """Give everything back."""

    def usage(self) -> Usage:
        """:returns: what the message that is being worked on, or was last, used so far."""
