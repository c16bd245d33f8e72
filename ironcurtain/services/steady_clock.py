"""A clock for the reactor that only goes on."""

from __future__ import annotations

import time
from typing import Any

CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""It goes on while the machine is asleep, where the system has such a one."""


def use_steady_clock(reactor: Any) -> None:
    """
    Have a reactor that is not used yet count its seconds from the machine's start.

    Twisted takes those since the epoch: when somebody, or a time server, sets the clock, questions would expire at once
    or never, and hosts that live would count as lost.
    """
    reactor.seconds = _seconds


def _seconds() -> float:
    return time.clock_gettime(CLOCK)
