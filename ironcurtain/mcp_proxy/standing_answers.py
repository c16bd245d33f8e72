"""Answers that hold for a while, and questions that equal calls share."""

from __future__ import annotations

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure

from ironcurtain.mcp_proxy.admission import OpenCall
from ironcurtain.policy.verdict import Decision, Verdict
from ironcurtain.providers.provider import RequestRefusal

LINGER_SECONDS = 60.0
"""Seconds for which a question stays though nobody waits any more: pip gives up after 15 and tries again."""


class Standing(msgspec.Struct):
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
    """
    Equal calls that wait for one answer. The question stays for a while after all of them were withdrawn, since many
    programs wait for seconds only, and try again.

    :param work: fires with the answer. Cancelling it withdraws the question.
    """

    def __init__(self, work: Deferred[RequestRefusal | None], clock: IReactorTime) -> None:
        self._work, self._clock = work, clock
        self._waiting: list[Deferred[RequestRefusal | None]] = []
        self._leaving: IDelayedCall | None = None

    def wait(self) -> Deferred[RequestRefusal | None]:
        """:returns: fires with the answer."""
        self._stay()
        waiter: Deferred[RequestRefusal | None] = Deferred(self._withdraw)
        self._waiting.append(waiter)
        return waiter

    def finish(self, answer: RequestRefusal | Failure | None) -> None:
        """Answer all."""
        self._stay()
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            waiter.callback(answer)

    def end(self) -> None:
        """Withdraw the question."""
        self._work.cancel()

    def _withdraw(self, waiter: Deferred[RequestRefusal | None]) -> None:
        self._waiting.remove(waiter)
        if not self._waiting:
            self._leaving = self._clock.callLater(LINGER_SECONDS, self.end)

    def _stay(self) -> None:
        leaving, self._leaving = self._leaving, None
        if leaving is not None and leaving.active():
            leaving.cancel()


def rules_of(verdict: Verdict) -> frozenset[str]:
    """:returns: the rules that an answer to a call depends on."""
    return frozenset((verdict.rule, *verdict.asking))
