"""What every kind of session has in common: its states, its description, and who thinks in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

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

    :param kind: which kind of agent; a name from the manager's table; empty: the setting ``default_agent``.
    :param task: the first message or the label's text; may be empty.
    :param workspace: the directory that the agent works on; ``None``: a fresh one in the session's directory.
    :param options: what only this kind understands.
    :param directory: where the session keeps its files; ``None``: in the home.
    :param resume: id of a session that ended, which goes on; kind and workspace are then its own, and so are the
        options where none are given here.
    :param terminal: columns and rows of the terminal in which the agent shows its own screen; ``None``: it has none,
        and takes messages.
    """

    kind: str
    task: str = ""
    workspace: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    directory: Path | None = None
    resume: str = ""
    terminal: tuple[int, int] | None = None


class SessionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """
    A session as others see it, and as ``session.json`` keeps it.

    :param started_at: UTC in ISO 8601.
    :param turns: messages so far; of a loop, iterations.
    :param pending: escalations that wait for a person.
    :param options: what was asked for; what is given when it goes on counts once it is ready.
    :param unsandboxed: names of its MCP servers that run outside any sandbox.
    :param servers_down: for each of its MCP servers that failed and is not up again, why.
    :param terminal: whether its agent shows a screen of its own, to be attached to, and takes no messages.
    :param status: the exit status of the program in that terminal, once it has ended and as far as it is known.
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
    unsandboxed: tuple[str, ...] = ()
    servers_down: dict[str, str] = {}
    terminal: bool = False
    status: int | None = None


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """
    What lets somebody attach to the terminal of a session from another process, once and soon.

    :param session: the session's id.
    :param socket: where its terminal is served.
    """

    session: str
    socket: str
    token: str


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
