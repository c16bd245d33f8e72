"""What waits in a queue of escalations, and what is remembered of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall

from ironcurtain.escalation.model import Answer, Escalation, EscalationRequest

HISTORY = 1000
"""How many closed escalations a session remembers, for views and for late answers."""

HISTORY_BYTES = 16 * 1024 * 1024
"""Most bytes of arguments that the remembered ones have together; the newest is always there."""

_encoder = msgspec.json.Encoder()


@dataclass(slots=True, eq=False)
class Question:
    """
    Equal calls that wait for one decision.

    :param answers: one for each call, in the order in which they came.
    :param escalation: ``None`` until it has its number.
    :param timer: runs out when nobody decided.
    """

    request: EscalationRequest
    answers: list[Deferred[Answer]]
    escalation: Escalation | None = None
    timer: IDelayedCall | None = None
    size: int = field(init=False)
    """Bytes of the arguments as JSON."""

    def __post_init__(self) -> None:
        self.size = len(_encoder.encode(self.request.arguments))

    @property
    def number(self) -> int:
        """The escalation's; 0 while there is none."""
        return self.escalation.number if self.escalation is not None else 0

    def is_equal(self, request: EscalationRequest) -> bool:
        """Whether another call is the same in all that a person is shown and decides."""
        return self.request.digest == request.digest and self.request == replace(request, call_id=self.request.call_id)


class History:
    """The escalations that got their outcome, oldest first, as many as may be remembered."""

    def __init__(self) -> None:
        self._closed: deque[tuple[Escalation, int]] = deque()
        self._bytes = 0

    def __iter__(self) -> Iterator[Escalation]:
        return (escalation for escalation, _ in self._closed)

    def add(self, escalation: Escalation, size: int) -> None:
        """:param size: bytes of its arguments."""
        self._closed.append((escalation, size))
        self._bytes += size
        while len(self._closed) > HISTORY or (self._bytes > HISTORY_BYTES and len(self._closed) > 1):
            self._bytes -= self._closed.popleft()[1]
