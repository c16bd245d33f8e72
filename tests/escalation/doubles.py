"""A queue on a clock, requests for it, and limits of the process."""

from __future__ import annotations

import itertools
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from ironcurtain.escalation import EscalationQueue, EscalationRequest, arguments_digest

TIMEOUT = 300.0
"""Seconds that a person has."""


def make_request(
    arguments: dict[str, Any] | None = None, call_id: str = "c1", version: str = "v1"
) -> EscalationRequest:
    """:returns: a request to push."""
    arguments = {"remote": "origin"} if arguments is None else arguments
    digest = arguments_digest("git", "push", arguments)
    return EscalationRequest("s1", call_id, "git", "push", arguments, "leaves this machine", "push", version, digest)


def make_queue(
    clock: Clock,
    attended: Callable[[], bool] = lambda: True,
    now: float = 1.5e9,
    next_number: Callable[[], Deferred[int]] | None = None,
) -> EscalationQueue:
    """:returns: a queue with numbers from 1, unless told, and ids that count."""
    numbers, ids = itertools.count(1), itertools.count(1)
    return EscalationQueue(
        next_number=next_number or (lambda: succeed(next(numbers))),
        new_id=lambda: f"{next(ids):032x}",
        clock=clock,
        now=lambda: now + clock.seconds(),
        timeout=TIMEOUT,
        attended=attended,
    )


@contextmanager
def no_more_files() -> Iterator[None]:
    """This process cannot open anything more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
