"""The triggers of this installation, by their kinds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ironcurtain.home.layout import Home
from ironcurtain.text.quantities import counted
from ironcurtain.watchers.file_trigger import FileTrigger, InThread
from ironcurtain.watchers.model import Kind, Watcher
from ironcurtain.watchers.record import Records
from ironcurtain.watchers.schedule_trigger import ScheduleTrigger
from ironcurtain.watchers.trigger import Trigger


class Triggers(msgspec.Struct, frozen=True):
    """
    Makes triggers for the watchers of a home.

    :param reactor: provides time, and reads descriptors.
    :param environ: the environment with the desktop's variables.
    :param now: returns seconds since the epoch.
    :param say: called with what people should know of a watcher: its name, and a sentence.
    """

    reactor: Any
    environ: Mapping[str, str]
    home: Home
    records: Records
    now: Callable[[], float]
    in_thread: InThread
    say: Callable[[str, str], None]

    def make(self, watcher: Watcher) -> Trigger:
        """:returns: the trigger of a watcher whose kind is not ``stdin``."""
        name = watcher.name
        if watcher.trigger is Kind.FILE_CHANGE:
            own = own_places(self.home)
            return FileTrigger(watcher, self.reactor, self.in_thread, own, lambda why: self._note(name, why))
        if watcher.trigger is Kind.SCHEDULE:
            ticked = self.records.read(name).ticked
            return ScheduleTrigger(
                watcher, self.reactor, self.now, ticked, lambda until, missed: self._tick(name, until, missed)
            )
        from ironcurtain.watchers.desktop_triggers import audio_trigger, screen_trigger

        make = screen_trigger if watcher.trigger is Kind.SCREEN_CHANGE else audio_trigger
        return make(watcher, self.reactor, self.environ, lambda why: self._note(name, why))

    def _note(self, name: str, why: str) -> None:
        with self.records.change(name) as record:
            record.trouble = why
        self.say(name, why)

    def _tick(self, name: str, until: float, missed: int) -> None:
        with self.records.change(name) as record:
            record.ticked, record.missed = until, record.missed + missed
        if missed:
            self.say(name, f"missed {counted(missed, 'time')} while nothing followed it: they are not made up for")


def own_places(home: Home) -> frozenset[str]:
    """:returns: real paths of the directories that no watcher watches."""
    return frozenset((os.path.realpath(home.path), os.path.realpath(home.run)))
