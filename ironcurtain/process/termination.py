"""End a command with all that it started: SIGTERM, after a grace SIGKILL, and a limit to what comes after its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IDelayedCall, IReactorTime

GRACE_SECONDS = 5.0
"""How long the command has after SIGTERM, before SIGKILL."""

DRAIN_SECONDS = 1.0
"""How long the command's last output is waited for once it has ended (it is there at once)."""


class Termination:
    """
    Of one command, from :meth:`began` to :meth:`over`.

    :param groups: says which process groups are the command's now, besides its own.
    :ivar exited: whether it has ended, so that nothing more can be done about it.
    """

    def __init__(self, clock: IReactorTime, groups: Callable[[], set[int]] = set) -> None:
        self._clock, self._groups = clock, groups
        self._process: Any = None
        self._signalled: set[int] = set()
        self._timer: IDelayedCall | None = None
        self.exited = False

    def began(self, process: Any) -> None:
        """:param process: its transport; it leads a group, or will soon."""
        self._process = process

    def stop(self, first: signal.Signals = signal.SIGTERM) -> None:
        """
        End it; after :data:`GRACE_SECONDS` by SIGKILL. Harmless once it has ended, or is ending.

        :param first: the signal that it gets at once.
        """
        if not self.exited and self._timer is None:
            self._signal(first)
            self._timer = self._clock.callLater(GRACE_SECONDS, self.kill)

    def kill(self) -> None:
        """SIGKILL."""
        if not self.exited:
            self._cancel()
            self._signal(signal.SIGKILL)

    def exit(self, drained: Callable[[], object]) -> None:
        """
        It ended, but others may still write where it wrote.

        :param drained: called if they do so for :data:`DRAIN_SECONDS`.
        """
        self.exited = True
        self._cancel()
        for group in self._signalled:  # what it started is to end with it
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        self._timer = self._clock.callLater(DRAIN_SECONDS, drained)

    def over(self) -> None:
        """Nothing more comes of it."""
        self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None

    def _signal(self, number: signal.Signals) -> None:
        pid = self._process.pid if self._process is not None else None
        self._signalled |= ({pid} if pid else set()) | self._groups()
        for group in self._signalled:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)
        with suppress(ProcessExitedAlready):  # its group is there only once it has made its session
            if self._process is not None:
                self._process.signalProcess(number.name.removeprefix("SIG"))
