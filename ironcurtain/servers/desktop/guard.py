"""Whether a process is the application that a call names, and may get input."""

from __future__ import annotations

import os
from collections.abc import Callable

from ironcurtain.servers.desktop.model import DesktopError, shown
from ironcurtain.servers.desktop.processes import (
    Processes,
    above,
    app_name,
    holds_terminal,
    may_run_commands,
    own_windows,
    read_processes,
)


class Guard:
    """
    What is known of processes at one moment.

    :param notifier: id of the process that shows notifications; 0 if there is none.
    :param own: id of this process.
    """

    def __init__(
        self,
        notifier: int = 0,
        processes: Processes | None = None,
        own: int | None = None,
        holds: Callable[[int], bool] = holds_terminal,
    ) -> None:
        self._processes = read_processes() if processes is None else processes
        self._notifier, self._holds = notifier, holds
        self._own = own_windows(self._processes, os.getpid() if own is None else own)

    def app(self, pid: int) -> str:
        """:returns: the name of a process's application; empty if it cannot be known."""
        process = self._processes.get(pid)
        return "" if process is None else shown(app_name(process), 100)

    def is_above(self, pid: int, other: int) -> bool:
        """Whether a process is another one, or has started it, maybe through others."""
        return pid in above(other, self._processes)

    def belongs(self, pid: int, app: str) -> bool:
        """Whether a process is of an application, or a helper that it started, such as one for pages of the web."""
        return any(self.app(each) == app for each in above(pid, self._processes))

    def check_app(self, pid: int, app: str, what: str) -> None:
        """
        :param what: what the process has, such as "the window".
        :raises DesktopError: it is another application.
        """
        if not (found := self.app(pid)):
            raise DesktopError(f"{what} belongs to no process that can be seen here; nothing was done")
        if found != app:
            raise DesktopError(f"{what} belongs to {found}, not to {shown(app, 100)}; nothing was done")

    def check_input(self, pid: int, app: str, terminal: bool, what: str) -> None:
        """
        :param terminal: whether the call said that the application runs commands, so that a person was asked.
        :raises DesktopError: the process must get no input, or is another application.
        """
        self.check_app(pid, app, what)
        if pid in self._own:
            raise DesktopError(
                f"{what} is one in which IronCurtain runs or asks; it gets no input from agents; nothing was done"
            )
        if pid == self._notifier:
            raise DesktopError(f"{what} shows notifications, which agents do not answer; nothing was done")
        if not terminal and may_run_commands(self._processes[pid], self._processes, self._holds(pid)):
            raise DesktopError(
                f"{app} runs commands that are typed in it: say terminal = true in the call, and a person is asked."
                " Nothing was done"
            )
