"""
Start parts in order, and stop them in reverse.

Twisted's ``MultiService`` starts all children at once and does not wait. In a :class:`Lifecycle`, each part is awaited
before the next starts, and a failure or a cancellation stops the started parts, one by one, each with a time limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from ironcurtain.errors import IronCurtainError

T = TypeVar("T")

STOP_SECONDS = 10.0
"""Time limit in seconds for stopping one part; then it is abandoned."""


class StartFailed(IronCurtainError):
    """
    A part did not start; all started parts have been stopped.

    :param part: the name of that part.
    """

    code = "START_FAILED"

    def __init__(self, part: str, cause: BaseException) -> None:
        super().__init__(f"{part} did not start: {cause}")
        self.part, self.cause = part, cause
        if isinstance(cause, IronCurtainError):
            self.exit_status = cause.exit_status


class Lifecycle:
    """
    An asynchronous exit stack with names.

    :param clock: for the time limits.
    :param stop_seconds: time limit in seconds for stopping one part.
    """

    log = Logger()

    def __init__(self, clock: IReactorTime, stop_seconds: float = STOP_SECONDS) -> None:
        self._clock, self._stop_seconds = clock, stop_seconds
        self._up: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        self._starting: Deferred[Any] | None = None
        self._ending: Deferred[None] | None = None

    async def start(self, name: str, start: Callable[[], Awaitable[T]], stop: Callable[[T], Awaitable[None]]) -> T:
        """
        Start one more part.

        :param name: for people, in log and errors.
        :param start: starts it; if it fails or is cancelled, it must undo everything.
        :param stop: stops it; called with the result of ``start``.
        :raises StartFailed: it failed, or :meth:`stop` was called meanwhile; all parts are stopped.
        """
        if self._ending is not None:
            raise StartFailed(name, CancelledError("stopping"))
        try:
            part = await self._start(start)
        except CancelledError:
            await self.stop()
            raise
        except Exception as e:
            await self.stop()
            raise StartFailed(name, e) from e
        self._up.append((name, lambda: stop(part)))
        if self._ending is not None:
            await (self._unwind() if self._ending.called else self.stop())
            raise StartFailed(name, CancelledError("stopping"))
        return part

    async def _start(self, start: Callable[[], Awaitable[T]]) -> T:
        self._starting = starting = Deferred.fromCoroutine(_awaited(start))
        try:
            return await starting
        finally:
            self._starting = None

    async def stop(self) -> None:
        """
        Stop all parts, last one first; one that is starting is cancelled. A second call waits for the first.

        Cancelling only ends the wait: the parts are stopped anyway.
        """
        if self._ending is None:
            self._ending = Deferred()  # first, since a cancelled part calls this again
            Deferred.fromCoroutine(self._unwind()).addBoth(self._ending.callback)
        done: Deferred[None] = Deferred()

        def ended(result: object) -> object:
            if not done.called:
                done.callback(None)
            return result

        self._ending.addBoth(ended)
        await done

    async def _unwind(self) -> None:
        if (starting := self._starting) is not None:
            await self._within_limit(starting, cancel_first=True)
        while self._up:
            name, undo = self._up.pop()
            undoing = Deferred.fromCoroutine(_awaited(undo))
            undoing.addErrback(self._unclean, name)
            if not await self._within_limit(undoing):
                self.log.error("{part} did not stop in time and is abandoned", part=name)

    async def _within_limit(self, work: Deferred[Any], cancel_first: bool = False) -> bool:
        """:returns: whether the work ended. At the limit it is cancelled, and abandoned if that does not end it."""
        over: Deferred[None] = Deferred()

        def ended(result: T) -> T:
            if not over.called:
                over.callback(None)
            return result

        def late() -> None:
            work.cancel()
            if not over.called:
                over.callback(None)

        work.addBoth(ended)
        if cancel_first:
            work.cancel()
        timer = self._clock.callLater(self._stop_seconds, late)
        await over
        if timer.active():
            timer.cancel()
        return bool(work.called)

    def _unclean(self, failure: Failure, name: str) -> None:
        self.log.failure("{part} did not stop cleanly", failure, part=name)


class Startable(Protocol):
    """A part that can be started."""

    async def start(self) -> None:
        """Start; on failure, undo everything."""


S = TypeVar("S", bound=Startable)


async def started(part: S) -> S:
    """
    Start a part.

    :returns: the part.
    """
    await part.start()
    return part


async def to_its_end(work: Awaitable[T]) -> T:
    """
    Wait for a clean-up that must not be interrupted: a cancellation ends neither it nor the wait.

    A command can get several signals when a terminal's window is closed. So the clean-up must have a time limit, as
    :meth:`Lifecycle.stop` has.
    """
    outcome: list[Any] = []
    waiting: Deferred[None] = Deferred()

    def over(result: Any) -> None:
        outcome.append(result)
        if not waiting.called:
            waiting.callback(None)

    Deferred.fromCoroutine(_awaited(lambda: work)).addBoth(over)
    while not outcome:
        waiting = Deferred()
        with suppress(CancelledError):
            await waiting
    (result,) = outcome
    if isinstance(result, Failure):
        result.raiseException()
    return result  # type: ignore[no-any-return]


async def _awaited(function: Callable[[], Awaitable[T]]) -> T:
    return await function()
