"""What every agent has in common: what its adapter is told, what it gives, and how a turn ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Literal, Protocol

from ironcurtain.errors import SessionError
from ironcurtain.llm.model import TokenUsage

CALL_SECONDS = 3600
"""Seconds that a tool call may take besides the wait for a person (the limit of a turn ends it earlier)."""

Kind = Literal["quota", "overloaded", "refused", "empty", "mcp-down", "failed"]
"""
Why a turn has no answer.

``quota``: the provider wants money or patience; ``overloaded``: the provider has no capacity, or an error of its own;
``refused``: our MITM proxy let a request to the model not pass; ``empty``: the agent ended well and said nothing;
``mcp-down``: the agent had no connection to its tools; ``failed``: anything else.
"""


class TurnFailed(SessionError):
    """
    A message has no answer. The conversation can go on.

    :param detail: for the person: what the agent said, and how its output ended.
    """

    def __init__(self, kind: Kind, detail: str) -> None:
        super().__init__("MESSAGE_FAILED", detail)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Facts:
    """
    What an adapter is told about its session.

    :ivar fake_keys: by name of the provider: those of the adapter's providers that this session can reach.
    :ivar model: as the person named it; empty: the agent's default.
    :ivar orientation: what the agent is told about where it is (:mod:`ironcurtain.agents.orientation`).
    :ivar escalation_seconds: how long a tool call may wait for a person.
    :ivar resumed: whether the session was closed before, and its home has the agent's own files.
    """

    fake_keys: Mapping[str, str]
    model: str
    orientation: str
    escalation_seconds: float
    resumed: bool

    @property
    def tool_seconds(self) -> int:
        """Seconds after which the agent may give a tool call up: later than any person may answer."""
        return ceil(self.escalation_seconds) + CALL_SECONDS


@dataclass(frozen=True, slots=True)
class File:
    """
    A file that is written before the container starts.

    :ivar place: ``home``: the agent's home, writable; ``orientation``: the agent cannot change it.
    :ivar path: below the place, with ``/`` between names.
    :ivar replace: ``False``: a file that is there already, from before a resume, is left alone.
    """

    place: Literal["home", "orientation"]
    path: str
    content: str
    replace: bool = True


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """
    How the agent's command ended.

    :ivar exit_code: its exit status; 128 and more after a signal.
    :ivar stdout: what it printed. The caller bounds it: lines may be missing, or cut, at its beginning.
    :ivar stderr: likewise.
    """

    exit_code: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """
    What the agent answered.

    :ivar usage: tokens of the turn as the agent counted them; ``None`` if it did not say.
    """

    text: str
    usage: TokenUsage | None = None


class Adapter(Protocol):
    """
    One agent program.

    :ivar id: what ``--agent`` takes: small letters, digits and ``-``.
    :ivar display_name: for people.
    :ivar image: name of its image folder.
    :ivar providers: names of the model providers that it can use, the one to prefer first. No other can be reached.
    :ivar supports_pty: whether :meth:`screen` gives a full-screen interface.
    """

    @property
    def id(self) -> str: ...

    @property
    def display_name(self) -> str: ...

    @property
    def image(self) -> str: ...

    @property
    def providers(self) -> tuple[str, ...]: ...

    @property
    def supports_pty(self) -> bool: ...

    def environment(self, facts: Facts) -> Mapping[str, str]:
        """
        :returns: what the agent finds in its environment, besides what every agent gets
            (:func:`ironcurtain.agents.surroundings.environment`).
        :raises UsageError: the agent cannot work with these facts, such as a model of a provider without a key.
        """

    def files(self, facts: Facts) -> Sequence[File]:
        """:returns: the files of this session: its configuration, and the orientation."""

    def turn(self, facts: Facts, first: bool) -> tuple[str, ...]:
        """
        :param first: no message of this conversation was answered yet.
        :returns: the command that works on one message, which it reads from its standard input.
        """

    def screen(self, facts: Facts, first: bool, task: str = "") -> tuple[str, ...]:
        """
        :param first: as for :meth:`turn`.
        :param task: what the person wants done first, as one argument; empty: nothing yet.
        :returns: the command that shows the agent's own full-screen interface.
        :raises UsageError: the agent cannot begin with a task so.
        """

    def answer(self, outcome: TurnOutcome) -> Answer:
        """
        Read what the command of a turn printed.

        :raises TurnFailed: there is no answer.
        """
