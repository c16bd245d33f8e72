"""What is remembered of a watcher between runs: in a small file each, which the daemon, shells and commands share."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from ironcurtain.errors import Unavailable
from ironcurtain.files.atomic import write_atomically
from ironcurtain.files.locks import locked
from ironcurtain.files.private import read_private
from ironcurtain.home.layout import private_directory

FAILURES = 3
"""Number of failed runs in a row after which a watcher is paused."""

HOUR = 3600.0
"""Seconds for which ``max_per_hour`` counts."""

RUN_SECONDS = 3600.0
"""Time limit in seconds for one run, whatever its budget."""

LINGER_SECONDS = 2.0
"""
Seconds after a run in which events without a digest are still taken for the run's, such as lines that it wrote into a
file that ``tail -f`` follows, and all events for those of a run in another process.
"""

MOST_RUNS = 60
"""Maximum number of runs that are remembered, and of ``max_per_hour``."""

TEXT_LIMIT = 500
"""Maximum number of characters of a kept reason."""

RECORD_LIMIT = 64 * 1024
"""Maximum size in bytes of a file."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """
    A run of a watcher.

    :param at: seconds since the epoch.
    :param session: number of its session; 0: none was started.
    :param error: why it failed; empty if it did not.
    """

    at: float
    session: int = 0
    error: str = ""


class Record(msgspec.Struct, kw_only=True):
    """
    :ivar paused: why it is paused; empty if it is not. ``paused_at`` in seconds since the epoch.
    :ivar failures: number of failed runs since the last one that did not fail.
    :ivar runs: begin of each run within the last hour, in seconds since the epoch, oldest first.
    :ivar running: the run that goes on, if any.
    :ivar last: the last one that ended, at ``ended`` in seconds since the epoch.
    :ivar dropped: number of events since then that came too close to a run of its own, or of one that it would set off.
    :ivar ticked: until when its schedule was followed, in seconds since the epoch; 0: never.
    :ivar missed: number of times that its schedule came while nothing followed it, before the last start.
    :ivar trouble: why it cannot watch; empty if it can.
    """

    version: int = 1
    paused: str = ""
    paused_at: float = 0.0
    failures: int = 0
    runs: list[float] = []
    running: Run | None = None
    last: Run | None = None
    ended: float = 0.0
    dropped: int = 0
    ticked: float = 0.0
    missed: int = 0
    trouble: str = ""

    def begin(self, now: float, session: int) -> None:
        """
        A run begins. It stays noted on disk, so that one that kills this process counts as failed.

        :param session: its number; 0: it has none.
        """
        self.runs = [*self._recent(now), now][-MOST_RUNS:]
        self.running, self.dropped = Run(at=now, session=session), 0

    def abandon(self) -> None:
        """The run is ended by the end of its process, which is not its fault."""
        if (ended := self.running) is not None:
            self.running, self.last = None, msgspec.structs.replace(ended, error="the process that ran it ended")

    def end(self, now: float, error: str) -> None:
        """
        The run has ended.

        :param error: why it failed; empty if it did not.
        """
        begun = self.running or Run(at=now)
        self.running, self.last, self.ended = None, msgspec.structs.replace(begun, error=_short(error)), now
        self.failures = self.failures + 1 if error else 0
        if self.failures >= FAILURES and not self.paused:
            self.pause(now, f"{self.failures} runs in a row failed")

    def is_run_elsewhere(self, now: float, known: float) -> bool:
        """
        :param known: end of the last run of this process, which goes on with none.
        :returns: whether what happens now may be the doing of a run in another process.
        """
        running = self.running is not None and abs(now - self.running.at) < RUN_SECONDS  # clocks are set back
        return running or (self.ended != known and 0 <= now - self.ended < LINGER_SECONDS)

    def pause(self, now: float, why: str) -> None:
        """:param why: for people."""
        self.paused, self.paused_at = _short(why), now

    def resume(self) -> None:
        """Begin anew, also to count failures."""
        self.paused, self.paused_at, self.failures = "", 0.0, 0

    def free_at(self, now: float, most: int) -> float:
        """
        :param most: maximum number of runs in an hour.
        :returns: when the next run may begin: now, or once the oldest of so many runs is an hour ago.
        """
        recent = self._recent(now)
        return now if len(recent) < most else recent[-most] + HOUR

    def _recent(self, now: float) -> list[float]:
        # A clock that was set back must not stop a watcher for longer than an hour.
        return [at for at in self.runs if now - HOUR < at <= now]


class Records:
    """
    The records of a home.

    :param directory: of the files.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, name: str) -> Record:
        """
        :param name: of a watcher.
        :returns: its record; a new one if there is none, and a paused one if it cannot be read.
        """
        path = self._path(name)
        if not path.exists():
            return Record()
        try:
            record = msgspec.json.decode(read_private(path, RECORD_LIMIT), type=Record)
        except Exception as e:  # whatever is wrong with it: nobody knows whether it had been paused
            return Record(paused=_short(f"{path} cannot be read: {e}"))
        return record if math.isfinite(sum(record.runs)) else Record(paused=f"{path} is wrong")

    @contextmanager
    def change(self, name: str) -> Iterator[Record]:
        """
        Change a record, alone.

        :raises Unavailable: it cannot be written.
        """
        try:
            private_directory(self._directory)
            with locked(self._directory / f"{name}.lock"):
                record = self.read(name)
                yield record
                write_atomically(self._path(name), msgspec.json.encode(record), durable=False)
        except OSError as e:
            raise Unavailable(f"the record of watcher {name} cannot be written: {e.strerror}") from None

    def turn(self, name: str) -> Path:
        """:returns: the file that the process locks which follows the watcher."""
        private_directory(self._directory)
        return self._directory / f"{name}.turn"

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.json"


def _short(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else f"{text[: TEXT_LIMIT - 1]}…"
