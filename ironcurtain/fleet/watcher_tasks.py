"""Runs of watchers on other hosts, as tasks that wait for one."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from ironcurtain.errors import IronCurtainError, SessionError
from ironcurtain.fleet.reach import require_member
from ironcurtain.fleet.task_files import TaskFiles
from ironcurtain.fleet.tasks import Body, State, Task, new_task
from ironcurtain.home.host_numbers import ANY_HOST
from ironcurtain.home.layout import Home
from ironcurtain.watchers.decision import Batch
from ironcurtain.watchers.message import message
from ironcurtain.watchers.model import Ask, Watcher
from ironcurtain.watchers.record import RUN_SECONDS
from ironcurtain.watchers.watching import Run

LOOK_SECONDS = 1.0
"""Seconds between two looks at what became of a task."""


class WatcherTasks:
    """
    A :class:`~ironcurtain.watchers.watching.Run` that gives a watcher's instruction to another host.

    :param here: runs the watchers of this host.
    :param clock: the reactor.
    :param now: returns seconds since the epoch.
    """

    def __init__(self, home: Home, here: Run, clock: IReactorTime, now: Callable[[], float]) -> None:
        self._home, self._here, self._clock, self._now = home, here, clock, now
        self._tasks = TaskFiles(home)

    async def __call__(self, watcher: Watcher, batch: Batch, begun: Callable[[int], None]) -> None:
        """
        Run it where it says, and wait for the end.

        :raises IronCurtainError: that fails, or no host has room for an hour.
        """
        if not watcher.on:
            await self._here(watcher, batch, begun)
            return
        require_member(self._home)
        body = Body(
            task=message(watcher.instruction, batch, secrets.token_hex(8)),
            budget=watcher.budget,
            attended=watcher.ask is Ask.CONSOLE,
        )
        on = "" if watcher.on == ANY_HOST else watcher.on
        task = new_task(watcher.principal, watcher.agent, body, watcher.labels, on, at=self._now())
        self._tasks.add(task)
        try:
            await self._wait(task, begun)
        finally:
            with suppress(IronCurtainError):  # a host has begun it
                self._tasks.change(task.id, Task.withdraw)

    async def _wait(self, task: Task, begun: Callable[[int], None]) -> None:
        until, known, told = self._clock.seconds() + RUN_SECONDS, task, False
        while known.state is not State.ENDED:
            if known.running and not told:
                told = True
                begun(0)
            if known.state not in (State.WAITING, State.TAKEN) and not known.running:
                raise SessionError("MESSAGE_FAILED", f"its task {task.id} is {known.state}: {known.started.why}")
            if self._clock.seconds() > until:
                raise SessionError("MESSAGE_FAILED", f"its task {task.id} took more than {RUN_SECONDS:g} seconds")
            await deferLater(self._clock, LOOK_SECONDS, lambda: None)
            known = self._tasks.read(task.id)
        if not told:
            begun(0)
