"""Watchers of the screen and of sound, on desktops of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from ironcurtain.watchers.desktop_triggers import audio_trigger, missing, screen_trigger
from ironcurtain.watchers.model import Event, Kind, Watcher
from ironcurtain.watchers.trigger import Trigger
from tests.desktop.desktops import Desktop, XDesktop
from tests.desktop.test_sound import SoundDesktop
from tests.watchers.doubles import make_watcher

Make = Callable[[Watcher, Any, dict[str, str], Callable[[str], None]], Trigger]


class DesktopTriggerTests(TestCase):
    timeout = 120

    async def watch(self, desktop: Desktop, watcher: Watcher, make: Make) -> Deferred[Event]:
        """:returns: fires with the first event of a trigger that has looked at what there is."""
        from twisted.internet import reactor

        self.addCleanup(desktop.close)
        before = {name: os.environ.get(name) for name in desktop.environ}
        os.environ.update(desktop.environ)  # the programs of the desktop get the environment of the process
        self.addCleanup(_restore, before)
        self.assertEqual(missing(watcher, desktop.environ), "")
        came: Deferred[Event] = Deferred()
        said: list[str] = []
        trigger = make(watcher, reactor, desktop.environ, said.append)
        self.addCleanup(lambda: maybeDeferred(trigger.stop))
        self.addCleanup(lambda: self.assertEqual(said, []))
        trigger.start(lambda event: None if came.called else came.callback(event))
        settled = trigger.settle()
        if settled is not None:
            await settled
        return came

    async def test_text_that_appears_in_a_window(self) -> None:
        desktop = XDesktop()
        watcher = make_watcher(trigger=Kind.SCREEN_CHANGE, pattern="memory is full")
        came = await self.watch(desktop, watcher, screen_trigger)
        desktop.run("zenity", "--info", "--text", "The memory is full")
        self.assertIn("memory is full", str(dict((await came).data)).lower())

    async def test_words_that_are_spoken(self) -> None:
        desktop = SoundDesktop()
        watcher = make_watcher(trigger=Kind.AUDIO_EVENT, pattern="delete the report")
        came = await self.watch(desktop, watcher, audio_trigger)
        wave = f"{desktop.top}/said.wav"
        self.assertEqual(desktop.run("espeak-ng", "-w", wave, "Open the file and delete the report.").wait(), 0)
        saying = LoopingCall(lambda: deferToThread(desktop.run("paplay", "--device=room", wave).wait))
        saying.start(5.0)  # the first one may come before the recorder; without a pause it would be one long piece
        said = (await came).data["said"]
        saying.stop()
        self.assertIn("delete the report", said.lower())


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        os.environ.pop(name)
        if value is not None:
            os.environ[name] = value
