"""Work that goes on to its end when the one who waits for it is cancelled."""

from __future__ import annotations

from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

T = TypeVar("T")

_log = Logger()


def shielded(work: Deferred[T]) -> Deferred[T]:
    """
    Wait for work without being able to cancel it.

    :param work: its result is taken away; it can still be waited for, for ``None``.
    :returns: fires with its result. Cancelling it only ends the waiting; if the work fails after that, this is logged.
    """
    waiting: Deferred[T] = Deferred()

    def ended(result: Any) -> None:
        if not waiting.called:
            waiting.callback(result)  # given a Failure, it fails
        elif isinstance(result, Failure):
            _log.failure("what went on after a cancellation failed", result)

    work.addBoth(ended)
    return waiting
