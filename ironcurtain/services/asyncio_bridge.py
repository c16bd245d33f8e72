"""
The only module that connects asyncio and Deferreds.

A coroutine awaits either Deferreds or asyncio's awaitables, never both. These functions convert one to the other;
cancelling one side cancels the other. They require a running asyncio reactor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

T = TypeVar("T")


def from_asyncio(coroutine: Coroutine[Any, Any, T]) -> Deferred[T]:
    """
    :returns: fires with the asyncio coroutine's result. Cancelling it cancels the coroutine's task, and then it fails
        with Twisted's ``CancelledError``.
    """
    return Deferred.fromFuture(asyncio.ensure_future(coroutine)).addErrback(_translated)


def _translated(failure: Failure) -> Failure:
    return Failure(CancelledError()) if failure.check(asyncio.CancelledError) else failure


def to_asyncio(deferred: Deferred[T]) -> asyncio.Future[T]:
    """:returns: a future that asyncio code can await; cancelling it cancels the Deferred."""
    return deferred.asFuture(asyncio.get_running_loop())


def soon(function: Callable[[], None]) -> None:
    """
    Run a function in the loop's next turn; where none runs yet, at once.

    A call of the reactor's costs 40 us for the same, more than most of what is put off.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        function()
    else:
        loop.call_soon(function)
