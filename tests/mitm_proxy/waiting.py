"""Waiting for what happens elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

the_reactor: Any = _reactor


def sleep(seconds: float) -> Deferred[None]:
    """:returns: fires later, in real time."""
    return deferLater(the_reactor, seconds)


async def until(condition: Callable[[], object], what: str = "it", seconds: float = 60.0) -> None:
    """Wait for something that other processes do."""
    for _ in range(int(seconds / 0.01)):
        if condition():
            return
        await sleep(0.01)
    raise AssertionError(f"waited {seconds} s for {what}")
