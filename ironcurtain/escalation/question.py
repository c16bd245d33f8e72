"""The entries of a queue of escalations: pending ones, and the history."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from ironcurtain.escalation.model import Answer, Escalation, EscalationRequest

HISTORY = 1000
"""Maximum number of closed escalations that a session remembers, for views and late answers."""

HISTORY_BYTES = 16 * 1024 * 1024
"""Maximum size in bytes of the arguments of all remembered escalations. The newest is always remembered."""

_encoder = msgspec.json.Encoder()


@dataclass(slots=True, eq=False)
class PendingEscalation:
    """
    Equal calls that wait for one decision.

    :param answers: one for each call, in order of arrival.
    :param escalation: ``None`` until it has its number.
    :param permitted: number of the calls that all approvals so far permit; ``None`` before the first.
    :param timer: the delayed call that expires it.
    """

    request: EscalationRequest
    answers: list[Deferred[Answer]]
    escalation: Escalation | None = None
    timer: IDelayedCall | None = None
    permitted: int | None = None
    size: int = field(init=False)
    """Size of the arguments as JSON, in bytes."""

    def __post_init__(self) -> None:
        self.size = len(_encoder.encode(self.request.arguments))

    @property
    def number(self) -> int:
        """The number of the escalation; 0 until it has one."""
        return self.escalation.number if self.escalation is not None else 0

    def approve(self, calls: int | None) -> int:
        """
        Count an approval.

        :param calls: the number of equal calls that were shown, if known.
        :returns: the number of calls, from the oldest, that all approvals permit.
        """
        shown = len(self.answers[:calls])
        self.permitted = shown if self.permitted is None else min(self.permitted, shown)
        return self.permitted

    def is_equal(self, request: EscalationRequest) -> bool:
        """Whether another call is equal in everything that the person who decides sees. No form is equal to another."""
        if request.form is not None:
            return False
        return self.request.digest == request.digest and self.request == replace(request, call_id=self.request.call_id)


class EscalationHistory:
    """The escalations that got their outcome, oldest first, within the limits of this module."""

    def __init__(self) -> None:
        self._closed: deque[tuple[Escalation, int]] = deque()
        self._bytes = 0

    def __iter__(self) -> Iterator[Escalation]:
        return (escalation for escalation, _ in self._closed)

    def add(self, escalation: Escalation, size: int) -> None:
        """:param size: size of its arguments in bytes."""
        self._closed.append((escalation, size))
        self._bytes += size
        while len(self._closed) > HISTORY or (self._bytes > HISTORY_BYTES and len(self._closed) > 1):
            self._bytes -= self._closed.popleft()[1]
