"""
The one module where asyncio and Deferreds meet.

A coroutine lives in one world: it awaits Deferreds, or it awaits asyncio's things. These two functions cross over;
cancelling on one side cancels on the other. They need the asyncio reactor to be running.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import Deferred

T = TypeVar("T")


def from_asyncio(coroutine: Coroutine[Any, Any, T]) -> Deferred[T]:
    """:returns: fires with what the asyncio coroutine returns; cancelling it cancels the coroutine's task."""
    return Deferred.fromFuture(asyncio.ensure_future(coroutine))


def to_asyncio(deferred: Deferred[T]) -> asyncio.Future[T]:
    """:returns: a future that asyncio code may await; cancelling it cancels the Deferred."""
    return deferred.asFuture(asyncio.get_running_loop())
