"""Messages that were sent while another one is worked on: they wait, are shown, and can be taken back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, runtime_checkable

import msgspec
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from ironcurtain.errors import NotFound, SessionError
from ironcurtain.session.agent_events import AgentEvent, MessageQueued, MessageTaken, MessageWithdrawn
from ironcurtain.session.model import Reply

MOST = 50
"""Maximum number of messages that wait."""


@runtime_checkable
class JoiningAgent(Protocol):
    """An agent for which messages are kept while it works."""

    def join(self, message: str, taken: Callable[[], None]) -> bool:
        """
        Hand over a message that waits, if it can join the message that is worked on.

        :param taken: called when it is part of the conversation, at most once. Otherwise it has to be sent again.
        :returns: whether the agent has it now, so that it cannot be taken back.
        """


class Queued(msgspec.Struct, eq=False):
    """
    A message that waits.

    :ivar handed: whether the agent has it already, and may take it any time.
    :ivar answered: fires with the reply of the turn that took it; fails with
        :class:`~ironcurtain.errors.SessionError` if it was taken back.
    """

    number: int
    text: str
    handed: bool = False
    answered: Deferred[Reply] = msgspec.field(default_factory=Deferred)

    def settle(self, outcome: Reply | Failure) -> None:
        """Tell who sent it, unless that is not awaited any longer."""
        if not self.answered.called:
            self.answered.callback(outcome)  # a Deferred that gets a Failure fails


class MessageQueue:
    """
    :param emit: takes the events.
    :param redact: replaces live secrets in a text.
    """

    def __init__(self, emit: Callable[[AgentEvent], None], redact: Callable[[str], str]) -> None:
        self._emit, self._redact = emit, redact
        self._waiting: list[Queued] = []
        self._joined: list[Queued] = []
        self._numbers = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def joined(self) -> list[str]:
        """The messages that joined the one that is worked on."""
        return [queued.text for queued in self._joined]

    def add(self, text: str) -> Queued:
        """
        Let a message wait. Cancelling :attr:`Queued.answered` takes it back.

        :raises SessionError: too many wait.
        """
        if len(self._waiting) >= MOST:
            raise SessionError("SESSION_NOT_READY", f"{MOST} messages wait already: let the agent take some")
        self._numbers += 1
        queued = Queued(self._numbers, text)
        queued.answered = Deferred(lambda _: self._abandon(queued))
        self._waiting.append(queued)
        self._emit(MessageQueued(number=queued.number, message=self._redact(text)))
        return queued

    def offer(self, agent: JoiningAgent) -> None:
        """Hand messages to an agent that can take them into the turn that runs, in their order."""
        for queued in list(self._waiting):
            if not queued.handed:
                queued.handed = agent.join(queued.text, partial(self._taken, queued))
                if not queued.handed:
                    return

    def next(self) -> Queued | None:
        """:returns: the oldest, which begins a turn of its own and waits no longer; ``None``: none waits."""
        if not self._waiting:
            return None
        queued = self._waiting.pop(0)
        self._emit(MessageTaken(number=queued.number))
        return queued

    def withdraw(self, number: int = 0) -> str:
        """
        Take a message back.

        :param number: 0 for the newest that can be taken back.
        :returns: its text.
        :raises NotFound: no such message waits.
        :raises SessionError: the agent has it already.
        """
        found = [queued for queued in self._waiting if number in (0, queued.number)]
        if not found:
            raise NotFound("no message waits" if not number else f"no message {number} waits in the queue")
        free = [queued for queued in found if not queued.handed]
        if not free:
            raise SessionError("SESSION_NOT_READY", "the agent has it already: it cannot be taken back")
        self._drop(free[-1], "it was taken back")
        return free[-1].text

    def clear(self, why: str) -> list[str]:
        """
        Take all messages back, also those that the agent has but did not take.

        :returns: their texts, in their order.
        """
        waiting = list(self._waiting)
        for queued in waiting:
            self._drop(queued, why)
        return [queued.text for queued in waiting]

    def turn_over(self, outcome: Reply | Failure) -> None:
        """A turn ended: it answers what joined it too."""
        joined, self._joined = self._joined, []
        for queued in joined:
            queued.settle(outcome)

    def _taken(self, queued: Queued) -> None:
        if queued in self._waiting:
            self._waiting.remove(queued)
            self._joined.append(queued)
            self._emit(MessageTaken(number=queued.number))

    def _drop(self, queued: Queued, why: str) -> None:
        self._waiting.remove(queued)
        self._emit(MessageWithdrawn(number=queued.number))
        queued.settle(Failure(SessionError("MESSAGE_FAILED", f"the message waited, and {why}")))

    def _abandon(self, queued: Queued) -> None:
        if queued in self._waiting and not queued.handed:
            self._waiting.remove(queued)
            self._emit(MessageWithdrawn(number=queued.number))
