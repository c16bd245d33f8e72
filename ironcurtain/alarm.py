"""A timer that is a descriptor: who waits for descriptors anyway need not give the kernel a timeout each time."""

from __future__ import annotations

import ctypes
import os
import time

_ABSOLUTE = 1
"""``TFD_TIMER_ABSTIME`` (timerfd_create(2))."""


class _Setting(ctypes.Structure):
    """``struct itimerspec``."""

    _fields_ = tuple((name, ctypes.c_long) for name in ("every_s", "every_ns", "at_s", "at_ns"))


class Alarm:
    """
    Python has these only from 3.13 on.

    :ivar descriptor: can be read once the time has come.
    :raises OSError: there are too many descriptors.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor: int = self._libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise _error()
        self._at: float | None = None

    def by(self, at: float) -> None:
        """
        Ring at a time, or earlier.

        :param at: in seconds of :func:`time.monotonic`; what has passed rings at once.
        """
        if self._at is None or at < self._at:
            seconds, rest = divmod(max(at, 0.0), 1)
            setting = _Setting(0, 0, int(seconds), max(int(rest * 1e9), 1))
            if self._libc.timerfd_settime(self.descriptor, _ABSOLUTE, ctypes.byref(setting), None):
                raise _error()
            self._at = at

    def rang(self) -> None:
        """It can be read: that has been seen."""
        self._at = None  # first: better one that rings in vain than none
        os.read(self.descriptor, 8)

    def close(self) -> None:
        """It rings no more."""
        os.close(self.descriptor)


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
