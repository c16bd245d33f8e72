"""The messages of a session: one is worked on, and others wait until the agent takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from ironcurtain.session import events
from ironcurtain.session.agent_events import AgentToolStarted
from ironcurtain.session.message_queue import JoiningAgent, MessageQueue
from ironcurtain.session.model import Cancelled, Reply
from ironcurtain.session.parts import SessionAgent
from ironcurtain.session.turns import Turns


class Messages:
    """
    :param turns: runs one turn at a time.
    :param clock: the reactor.
    :param begun: called when a turn begins.
    :param ended: called when it ended; returns whether another one may begin.
    """

    def __init__(
        self, turns: Turns, queue: MessageQueue, clock: Any, begun: Callable[[], None], ended: Callable[[], bool]
    ) -> None:
        self._turns, self._queue, self._clock, self._begun, self._ended = turns, queue, clock, begun, ended
        self._current: Deferred[Reply] | None = None
        self._agent: SessionAgent | None = None

    def begin(self, agent: SessionAgent, text: str) -> Deferred[Reply]:
        """:returns: fires with the reply. Cancelling it cancels the message."""
        self._agent = agent
        self._begun()
        work = Deferred.fromCoroutine(self._work(agent, text))
        self._current = None if work.called else work
        return work

    def keep(self, agent: JoiningAgent, text: str) -> Deferred[Reply]:
        """
        Let a message wait, or join the one that is worked on.

        :returns: fires with the reply of the turn that took it. Cancelling it takes it back.
        """
        queued = self._queue.add(text)
        self._queue.offer(agent)
        return queued.answered

    def withdraw(self, number: int = 0) -> str:
        """See :meth:`~ironcurtain.session.message_queue.MessageQueue.withdraw`."""
        return self._queue.withdraw(number)

    def heard(self, event: events.SessionEvent) -> None:
        """An event of the session: an agent that begins to use a tool may take messages that wait."""
        if isinstance(event, AgentToolStarted | events.ToolCallRaised) and isinstance(self._agent, JoiningAgent):
            self._queue.offer(self._agent)

    def cancel(self) -> Cancelled:
        """Cancel the current message, and take back those that wait: they were written for another situation."""
        if self._current is None:
            return Cancelled(False)
        taken_back = self._queue.clear("the message before it was cancelled")
        self._current.cancel()
        return Cancelled(True, tuple(taken_back))

    def close(self) -> None:
        """The session ends."""
        self._queue.clear("the session ended")
        if (current := self._current) is not None:
            current.addErrback(lambda _: None)
            current.cancel()

    def answered(self) -> None:
        """The agent is done with the current message."""
        self._current = None

    async def _work(self, agent: SessionAgent, text: str) -> Reply:
        outcome: Reply | Failure | None = None
        try:
            reply = outcome = await self._turns.run(agent, text)
            return reply
        except BaseException:
            outcome = Failure()
            raise
        finally:
            if outcome is not None:
                self._queue.turn_over(outcome)
            if self._ended() and len(self._queue):
                self._clock.callLater(0, self._next, agent)

    def _next(self, agent: SessionAgent) -> None:
        if self._ended() and (queued := self._queue.next()) is not None:
            self.begin(agent, queued.text).addBoth(queued.settle)
