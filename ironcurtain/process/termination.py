"""
End a command and all processes that it started: SIGTERM, SIGKILL after a grace period, and a limit on late output.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IDelayedCall, IReactorTime

GRACE_SECONDS = 5.0
"""Seconds between SIGTERM and SIGKILL."""

DRAIN_SECONDS = 1.0
"""How long to wait for a command's last output after its end (it normally arrives at once)."""


def signal_group(group: int, number: int) -> None:
    """
    Signal a process group, if there is one that may be signalled.

    :param group: its number; 0, which stands for the caller's own group, is the number of none.
    """
    if group > 0:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


class Termination:
    """
    The termination of one command. Call :meth:`began` first and :meth:`over` last.

    :param groups: returns the process groups that belong to the command now, in addition to its own.
    :ivar exited: whether the command has exited.
    """

    def __init__(self, clock: IReactorTime, groups: Callable[[], set[int]] = set) -> None:
        self._clock, self._groups = clock, groups
        self._process: Any = None
        self._signalled: set[int] = set()
        self._timer: IDelayedCall | None = None
        self.exited = False

    def began(self, process: Any) -> None:
        """:param process: the command's transport. It leads a process group, or will soon."""
        self._process = process

    def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        """
        Send a signal, and SIGKILL after :data:`GRACE_SECONDS`. Can be called again, also after the end.

        :param first: the first signal.
        """
        if not self.exited and self._timer is None:
            self._signal(first)
            self._timer = self._clock.callLater(GRACE_SECONDS, self.kill)

    def kill(self) -> None:
        """Send SIGKILL."""
        if not self.exited:
            self._cancel()
            self._signal(signal.SIGKILL)

    def exit(self, drained: Callable[[], object]) -> None:
        """
        The command exited, but other processes may still hold its output open.

        :param drained: called if they do so for :data:`DRAIN_SECONDS`.
        """
        self.exited = True
        self._cancel()
        for group in self._signalled:  # end the processes that it started
            signal_group(group, signal.SIGKILL)
        self._timer = self._clock.callLater(DRAIN_SECONDS, drained)

    def over(self) -> None:
        """The command's output has ended: cancel all timers."""
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def _signal(self, number: signal.Signals) -> None:
        pid = self._process.pid if self._process is not None else None
        self._signalled |= ({pid} if pid else set()) | self._groups()
        for group in self._signalled:
            signal_group(group, number)
        with suppress(ProcessExitedAlready):  # the group exists only after the process has called setsid
            if self._process is not None:
                self._process.signalProcess(number.name.removeprefix("SIG"))
