"""
What is written while several events are handled goes out once all of them have been: that wakes the other sides once.

Waking a processor that has gone idle takes longer than sending. Sixteen connections through the MITM proxy take a
seventh less processor time, and answers come no later (``benchmarks/mitm.py``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from twisted.logger import Logger


class Cork:
    """
    :ivar on: whether what is written waits.
    """

    log = Logger()

    def __init__(self) -> None:
        self.on = False
        self._waiting: deque[Callable[[], None]] = deque()

    def put_off(self, send: Callable[[], None]) -> None:
        """:param send: is called, once, when it is released."""
        self._waiting.append(send)

    def release(self) -> None:
        """Nothing waits from now on; what waited is sent, in the order in which it was put off."""
        self.on = False
        while self._waiting:
            try:
                self._waiting.popleft()()
            except Exception:
                self.log.failure("what was written could not be sent")


cork: Final = Cork()
"""This process's one: the reactor puts it on, streams look at it."""
