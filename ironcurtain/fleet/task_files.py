"""The tasks of this host in its home: commands add them, and its daemon gives them to others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from ironcurtain.errors import NotFound
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import locked
from ironcurtain.fleet.tasks import State, Task
from ironcurtain.home.layout import Home, private_directory

KEPT_SECONDS = 7 * 24 * 3600.0
"""How long a task is listed after it was given, once it waits no longer."""


class TaskFiles:
    """A file for each task. Each change is made under a lock, so that one of two wins."""

    def __init__(self, home: Home) -> None:
        self._directory = home.path / "fleet-tasks"

    @property
    def stamp(self) -> int:
        """Changes whenever a task does."""
        try:
            return self._directory.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def add(self, task: Task) -> None:
        """Keep a task."""
        private_directory(self._directory)
        self._write(task)

    def all(self) -> list[Task]:
        """:returns: the tasks, oldest first."""
        found = [self._read(path) for path in self._directory.glob("*.json")]
        return sorted((task for task in found if task is not None), key=lambda task: task.at)

    def read(self, task: str) -> Task:
        """
        :param task: its id.
        :raises NotFound: there is none with this id.
        """
        if (known := self._read(self._path(task))) is None:
            raise NotFound(f"there is no task {task}")
        return known

    def change(self, task: str, how: Callable[[Task], Task]) -> Task:
        """
        :param task: its id.
        :param how: returns it changed, or raises an error, and then nothing changes.
        :returns: the changed task.
        :raises NotFound: there is none with this id.
        """
        private_directory(self._directory)
        with locked(self._directory / "tasks.lock"):
            self._write(changed := how(self.read(task)))
        return changed

    def forget(self, now: float) -> None:
        """:param now: seconds since the epoch; the tasks that are over since long are removed."""
        for task in self.all():
            needed = task.state in (State.WAITING, State.TAKEN) or (task.running and task.body.restart)
            if not needed and now - task.at > KEPT_SECONDS:
                self._path(task.id).unlink(missing_ok=True)

    def _path(self, task: str) -> Path:
        return self._directory / f"{task}.json"

    def _write(self, task: Task) -> None:
        write_atomically(self._path(task.id), msgspec.json.encode(task))

    def _read(self, path: Path) -> Task | None:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Task)
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
