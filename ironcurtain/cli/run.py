"""Run one asynchronous command under the reactor, and leave when it is done."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from twisted.internet.asyncioreactor import install
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import ILogObserver, LogEvent, LogLevel, eventAsText, globalLogBeginner
from twisted.python.failure import Failure
from zope.interface import implementer

T = TypeVar("T")


def run(
    main: Callable[[Any], Coroutine[Deferred[Any], Any, T]], on_signal: Callable[[int], bool] = lambda number: False
) -> T:
    """
    Run a coroutine until it ends.

    :param main: gets the reactor.
    :param on_signal: is told of SIGINT, SIGTERM and SIGHUP; says whether it did something about it. If not, the
        coroutine is cancelled.
    :returns: what the coroutine returned, or raises what it raised.
    :raises SystemExit: a signal ended it: 130 or 143, as a shell would say.
    """
    install()
    from twisted.internet import reactor as installed

    reactor: Any = installed
    _quiet_log()
    outcome: list[Any] = []
    signals: list[int] = []

    def begin() -> None:
        def signalled(number: int) -> None:
            signals.append(number)
            if not on_signal(number):
                task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: reactor.callFromThread(signalled, number))
        task = Deferred.fromCoroutine(begun())
        task.addBoth(done)

    async def begun() -> T:
        return await main(reactor)  # what raises before there is a coroutine ends the command, too

    def done(result: Any) -> None:
        outcome.append(result)
        reactor.stop()

    reactor.callLater(0, begin)  # once the loop runs
    reactor.run()
    if not outcome:  # Twisted's own handlers were still in place
        raise SystemExit(128 + signal.SIGTERM)
    result = outcome[0]
    if isinstance(result, Failure):
        if signals and result.check(CancelledError):
            raise SystemExit(128 + signals[0])
        result.raiseException()
    return result  # type: ignore[no-any-return]


def _quiet_log() -> None:
    """
    Only what went wrong inside reaches standard error, and what has a field ``for_person``; all else is in the
    session's own log.
    """
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)

    @implementer(ILogObserver)
    def show(event: LogEvent) -> None:
        if event.get("log_level", LogLevel.info) >= LogLevel.critical or event.get("for_person"):
            text = eventAsText(event, includeTimestamp=False, includeSystem=not event.get("for_person"))
            sys.stderr.write(f"ironcurtain: {text}\n")

    globalLogBeginner.beginLoggingTo([show], redirectStandardIO=False, discardBuffer=True)
