"""Read a response's body as it arrives, with a time limit for silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http import PotentialDataLoss
from twisted.web.iweb import IResponse

T = TypeVar("T")


class Watch:
    """
    Cancels an awaited Deferred after a period of silence.

    :param patience: seconds.
    :ivar expired: whether it was cancelled.
    :ivar stopped: whether :meth:`stop` was called, so that later data is unwanted.
    """

    def __init__(self, clock: IReactorTime, patience: float) -> None:
        self.expired = self.stopped = False
        self._clock, self._patience = clock, patience
        self._timer: IDelayedCall | None = None
        self._awaited: Deferred[Any] | None = None

    def over(self, awaited: Deferred[T]) -> Deferred[T]:
        """Watch ``awaited`` from now on, and return it."""
        self._awaited = awaited
        self.alive()
        return awaited

    def alive(self) -> None:
        """Reset the timer, since something happened."""
        self._cancel()
        self._timer = self._clock.callLater(self._patience, self._expire)

    def stop(self) -> None:
        """Stop watching."""
        self.stopped = True
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _expire(self) -> None:
        self.expired = True
        if self._awaited is not None:
            self._awaited.cancel()


class _Body(Protocol):
    def __init__(self, take: Callable[[bytes], bool], finished: Deferred[None]) -> None:
        self._take, self._finished = take, finished

    def dataReceived(self, data: bytes) -> None:
        if self._finished.called:
            return
        try:
            enough = self._take(data)
        except Exception:
            self._finished.errback()
        else:
            if enough and not self._finished.called:
                self._finished.callback(None)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._finished.called:
            return
        if reason.check(ResponseDone, PotentialDataLoss):
            self._finished.callback(None)
        else:
            self._finished.errback(reason)


def deliver(reactor: IReactorTime, response: IResponse, take: Callable[[bytes], bool]) -> Deferred[None]:
    """
    Pass the body of a response to ``take``, piece by piece, from the reactor's next turn on.

    Not at once, since a coroutine that awaits this can be cancelled only while it waits, and ``take`` may cause a
    cancellation.

    :param take: returns whether it has enough; its exceptions end the reading.
    :returns: fires at the end of the body or once ``take`` has enough. To stop reading, close the connection.
    """
    finished: Deferred[None] = Deferred(lambda _: start.cancel() if start.active() else None)
    start = reactor.callLater(0, response.deliverBody, _Body(take, finished))
    return finished
