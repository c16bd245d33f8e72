"""
Processes whose parents have ended: they stay below the shell's agent, so that agents among them are bound by it.

The kernel gives them to this process (``PR_SET_CHILD_SUBREAPER``, which none of them can change) until it ends, whether
they were started by ``nohup``, ``setsid`` or two forks. What was started through another program, such as ``systemd``,
``cron`` or a server of ``tmux`` that ran before, was never below it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Set
from contextlib import suppress
from typing import Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ironcurtain.platform import processes
from ironcurtain.process.identity import ended_children

LOOK_SECONDS: Final = 5.0
"""How often ended ones are looked for."""

GRACE_SECONDS: Final = 3600.0
"""
After which those that still are not waited for are none that this process started itself: it reads for minutes what a
program's own children print before it waits for it, and would take a status that is gone for success.
"""


class Orphans:
    """:param ended: returns the pids of children of this process that have ended and were not waited for."""

    def __init__(self, clock: IReactorTime, ended: Callable[[], Set[int]] = ended_children) -> None:
        self._clock, self._ended = clock, ended
        self._before: Set[int] = frozenset()
        self._look: IDelayedCall | None = None

    def begin(self) -> None:
        """From now on they are below this process."""
        processes.adopt_orphans()
        self._reap()

    def stop(self) -> None:
        """Look for ended ones no more."""
        if self._look is not None and self._look.active():
            self._look.cancel()

    def _reap(self) -> None:
        ended = self._ended()
        for pid in ended & self._before:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        self._before = ended - self._before
        self._look = self._clock.callLater(GRACE_SECONDS if self._before else LOOK_SECONDS, self._reap)
