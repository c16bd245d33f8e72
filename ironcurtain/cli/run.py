"""Run one asynchronous command under the reactor."""

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

from ironcurtain.services.steady_clock import use_steady_clock

T = TypeVar("T")

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end a command."""


def run(
    main: Callable[[Any], Coroutine[Deferred[Any], Any, T]], on_signal: Callable[[int], bool] = lambda number: False
) -> T:
    """
    Run a coroutine until it ends.

    :param main: called with the reactor; returns the coroutine.
    :param on_signal: called with the number of SIGINT, SIGTERM or SIGHUP. It returns whether it handled the signal;
        if not, the coroutine is cancelled.
    :returns: the coroutine's result. Its exceptions are raised.
    :raises SystemExit: a signal ended the coroutine; the status is 128 plus the signal's number.
    """
    install()
    from twisted.internet import reactor as installed

    reactor: Any = installed
    use_steady_clock(reactor)
    _quiet_log()
    outcome: list[Any] = []
    signals: list[int] = []
    before = {number: signal.getsignal(number) for number in HANDLED}

    def begin() -> None:
        def signalled(number: int) -> None:
            signals.append(number)
            if not on_signal(number):
                task.cancel()

        for number in HANDLED:
            signal.signal(number, lambda number, _: reactor.callFromThread(signalled, number))
        task = Deferred.fromCoroutine(begun())
        task.addBoth(done)

    async def begun() -> T:
        return await main(reactor)  # what raises before there is a coroutine ends the command, too

    def done(result: Any) -> None:
        outcome.append(result)
        if signals:  # another one would replace the exit status
            signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
        reactor.stop()

    reactor.callLater(0, begin)  # once the loop runs
    reactor.run()
    for number, handler in before.items():  # the command may ask something yet, which Ctrl-C has to end
        signal.signal(number, handler)
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
    Log to standard error only internal failures and events with a true ``for_person`` field.

    The session's own log has all other events.
    """
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)

    @implementer(ILogObserver)
    def show(event: LogEvent) -> None:
        if event.get("log_level", LogLevel.info) >= LogLevel.critical or event.get("for_person"):
            text = eventAsText(event, includeTimestamp=False, includeSystem=not event.get("for_person"))
            sys.stderr.write(f"ironcurtain: {text}\n")

    globalLogBeginner.beginLoggingTo([show], redirectStandardIO=False, discardBuffer=True)
