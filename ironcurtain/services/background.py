"""Work that blocks, in threads which do not keep the process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.python.failure import Failure

T = TypeVar("T")


def in_background(reactor: IReactorFromThreads, work: Callable[[], T]) -> Deferred[T]:
    """
    Run a function in a daemon thread, which does not delay the end of the process as the reactor's threads do.

    :returns: fires with its result; fails with its exception.
    """
    done: Deferred[T] = Deferred()

    def run() -> None:
        result: T | Failure
        try:
            result = work()
        except Exception:
            result = Failure()
        with suppress(RuntimeError):  # the reactor has ended
            reactor.callFromThread(done.callback, result)

    Thread(target=run, daemon=True).start()
    return done
