"""Answers that hold for a while, questions that equal calls share, and limits per minute."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from ironcurtain.mcp_proxy.admission import OpenCall
from ironcurtain.policy import Decision, Verdict
from ironcurtain.providers.provider import RequestRefusal


@dataclass(slots=True)
class Meter:
    """Allows so many events within so many seconds."""

    most: int
    seconds: float
    _times: deque[float] = field(default_factory=deque)

    def take(self, now: float) -> bool:
        """:returns: whether one more is allowed, which is counted then."""
        while self._times and now - self._times[0] >= self.seconds:
            self._times.popleft()
        if len(self._times) >= self.most:
            return False
        self._times.append(now)
        return True


@dataclass(slots=True)
class Standing:
    """
    The last answer to equal calls.

    :param answer: why they are refused; ``None`` if they are not.
    :param until: when it has to be recorded, or asked, again; in seconds of the clock.
    :param repeats: number of calls since the recorded one.
    """

    call: OpenCall
    decision: Decision
    rules: frozenset[str]
    answer: RequestRefusal | None
    until: float
    repeats: int = 0

    def fits(self, verdict: Verdict, now: float) -> bool:
        """Whether it is still the answer to a call with this verdict."""
        return now < self.until and (self.decision, self.rules) == (verdict.decision, rules_of(verdict))


class SharedQuestion:
    """Equal calls that wait for one answer. If all of them are withdrawn, so is the question."""

    def __init__(self, work: Deferred[RequestRefusal | None]) -> None:
        self._work, self._waiting = work, list[Deferred[RequestRefusal | None]]()

    def wait(self) -> Deferred[RequestRefusal | None]:
        """:returns: fires with the answer."""
        waiter: Deferred[RequestRefusal | None] = Deferred(self._withdraw)
        self._waiting.append(waiter)
        return waiter

    def finish(self, answer: RequestRefusal | Failure | None) -> None:
        """Answer all."""
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            waiter.callback(answer)

    def _withdraw(self, waiter: Deferred[RequestRefusal | None]) -> None:
        self._waiting.remove(waiter)
        if not self._waiting:
            self._work.cancel()


def rules_of(verdict: Verdict) -> frozenset[str]:
    """:returns: the rules that an answer to a call depends on."""
    return frozenset((verdict.rule, *verdict.asking))
