"""Send messages, and match the session's events to them."""

from __future__ import annotations

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.interfaces import IReactorTime

from ironcurtain.errors import IronCurtainError
from ironcurtain.operations.api import SessionApi
from ironcurtain.session.events import TurnStarted
from ironcurtain.session.model import Reply

REFUSED_SECONDS = 0.2
"""Seconds after a refusal in which events may still show that the message was begun."""

LAG_SECONDS = 2.0
"""Maximum seconds by which the events of a session in another process lag behind its replies."""


class Delivered(msgspec.Struct, frozen=True):
    """
    The outcome of a message: the reply or the error.

    :param shown: whether its last event arrived, so that it is being displayed.
    """

    reply: Reply | None
    error: IronCurtainError | None
    shown: bool


class _Sent(msgspec.Struct, eq=False):
    message: str
    started: bool = False
    finished: bool = False
    over: Deferred[None] = msgspec.field(default_factory=Deferred)

    def finish(self) -> None:
        if not self.finished:
            self.finished = True
            self.over.callback(None)


class Sender:
    """
    Sends one message at a time.

    :param number: number of the session.
    :ivar failed: whether the last message had no answer.
    """

    def __init__(self, api: SessionApi, number: int, clock: IReactorTime) -> None:
        self._api, self._number, self._clock = api, number, clock
        self.failed = False
        self._sent: _Sent | None = None

    @property
    def busy(self) -> bool:
        """Whether a message of this sender is in progress."""
        return self._sent is not None

    async def send(self, text: str, typed: str) -> Delivered:
        """
        Send a message, and wait until its events have arrived, too. Does not raise IronCurtain's errors.

        :param typed: what of it a person typed.
        """
        sent = self._sent = _Sent(text)
        reply, error = None, None
        try:
            reply = await self._api.send(self._number, text, typed)
        except IronCurtainError as e:
            error = e
        try:
            await self._caught_up(sent, REFUSED_SECONDS if error and not sent.started else LAG_SECONDS)
        finally:
            self._sent = None
        self.failed = error is not None
        return Delivered(reply, error, sent.finished)

    async def keep(self, text: str, typed: str) -> bool:
        """
        Send a message that waits, or joins what the agent works on. Its events show what becomes of it.

        :returns: whether it was sent: not all agents keep messages.
        """
        try:
            await self._api.send(self._number, text, typed)
        except IronCurtainError as e:
            return e.code != "SESSION_NOT_READY"
        return True

    def begun(self, event: TurnStarted) -> bool:
        """:returns: whether this is this sender's message."""
        if self._sent is None or self._sent.started or self._sent.message != event.message:
            return False
        self._sent.started = True
        return True

    def over(self) -> None:
        """A turn ended: this sender's, if it had begun."""
        if self._sent is not None and self._sent.started:
            self._sent.finish()

    async def _caught_up(self, sent: _Sent, patience: float) -> None:
        if sent.finished:
            return
        sent.over.addTimeout(patience, self._clock)
        try:
            await sent.over
        except DeferredTimeout:
            return
