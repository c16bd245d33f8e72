"""A queue on a clock, requests for it, and limits of the process."""

from __future__ import annotations

import itertools
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from ironcurtain.escalation import EscalationRequest, Scope, arguments_digest
from ironcurtain.escalation.permission import Location
from ironcurtain.escalation.queue import LIMIT, EscalationQueue, closing_numbers

TIMEOUT = 300.0
"""Seconds that a person has."""


def make_request(
    arguments: dict[str, Any] | None = None, call_id: str = "c1", version: str = "v1", scope: Scope | None = None
) -> EscalationRequest:
    """:returns: a request to push."""
    arguments = {"remote": "origin"} if arguments is None else arguments
    digest = arguments_digest("git", "push", arguments)
    why = "leaves this machine"
    return EscalationRequest("s1", call_id, "git", "push", arguments, why, "push", version, digest, scope)


def make_queue(
    clock: Clock,
    attended: Callable[[], bool] = lambda: True,
    now: float = 1.5e9,
    next_number: Callable[[], Deferred[int]] | None = None,
    limit: int = LIMIT,
) -> EscalationQueue:
    """:returns: a queue with numbers from 1, unless told, and ids that count."""
    numbers, ids = itertools.count(1), itertools.count(1)
    return EscalationQueue(
        next_number=next_number or (lambda: succeed(next(numbers))),
        new_id=lambda: f"{next(ids):032x}",
        clock=clock,
        now=lambda: now + clock.seconds(),
        next_closing=closing_numbers(now),
        timeout=TIMEOUT,
        attended=attended,
        limit=limit,
    )


def make_scope(directory: str = "/srv/src", words: str = "git.push in /srv/src and below") -> Scope:
    """:returns: the scope of a push from a directory."""
    place = Location("read-path", directory, below=True)
    return Scope("git", "push", "d", frozenset(("push",)), "v1", (), (), (place,), words)


@contextmanager
def no_more_files() -> Iterator[None]:
    """This process cannot open anything more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
