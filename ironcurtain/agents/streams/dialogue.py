"""The interface to one running program of an agent, and a program that says nothing until it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from ironcurtain.agents.outcome import AgentAnswer, TurnFailed, TurnOutcome
from ironcurtain.agents.streams.reports import Report, TurnOver


class Dialogue(Protocol):
    """
    What is said to one running program of an agent, and what it says. It does no I/O and never raises.

    :ivar resident: whether the program stays for further messages. Otherwise its input ends after one message, and the
        turn ends with the program.
    :ivar ready: whether a message goes to the program at once. Otherwise it waits for the end of a handshake.
    """

    @property
    def resident(self) -> bool: ...

    @property
    def ready(self) -> bool: ...

    def begin(self) -> bytes:
        """:returns: what the program gets at its start."""

    def message(self, text: str) -> bytes:
        """:returns: what begins a turn. Once the program is ready, the rest comes as :class:`Outgoing`."""

    def compact(self) -> bytes:
        """:returns: what begins a turn that shortens the conversation; empty: the program has no such command."""

    def join(self, text: str) -> bytes | None:
        """
        Hand over a further message while a turn runs.

        :returns: what the program gets, so that the message joins this turn; ``None``: it cannot take one now.
        """

    def interrupt(self) -> bytes:
        """:returns: what ends the turn, so that the program goes on; empty: nothing does."""

    def output(self, data: bytes) -> Iterable[Report]:
        """:returns: what these bytes of standard output say."""

    def error_line(self, line: str) -> Iterable[Report]:
        """:returns: what a line of standard error says."""

    def ended(self, outcome: TurnOutcome) -> TurnOver:
        """:returns: the end of the turn, since the program has ended."""


class WholeOutput:
    """
    A program that says nothing before it ends: its output is the answer.

    :param answer: finds the answer in the outcome; raises :class:`~ironcurtain.agents.outcome.TurnFailed`.
    """

    resident, ready = False, True

    def __init__(self, answer: Callable[[TurnOutcome], AgentAnswer]) -> None:
        self._answer = answer

    def begin(self) -> bytes:
        """:returns: nothing."""
        return b""

    def message(self, text: str) -> bytes:
        """:returns: the message."""
        return text.encode()

    def compact(self) -> bytes:
        """:returns: nothing."""
        return b""

    def join(self, text: str) -> None:
        """:returns: ``None``: its input has ended."""

    def interrupt(self) -> bytes:
        """:returns: nothing."""
        return b""

    def output(self, data: bytes) -> Iterable[Report]:
        """:returns: nothing yet."""
        return ()

    def error_line(self, line: str) -> Iterable[Report]:
        """:returns: nothing."""
        return ()

    def ended(self, outcome: TurnOutcome) -> TurnOver:
        """:returns: the answer."""
        try:
            answer = self._answer(outcome)
        except TurnFailed as e:
            return TurnOver(failed=e)
        return TurnOver(answer.text, usage=answer.usage)
