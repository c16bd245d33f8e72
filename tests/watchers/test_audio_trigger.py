from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import TestCase

from ironcurtain.errors import Unavailable
from ironcurtain.senses.client import SensesWorker
from ironcurtain.senses.model import RATE, Utterance
from ironcurtain.watchers.audio_trigger import AGAIN_SECONDS, AudioTrigger
from ironcurtain.watchers.model import Event, Kind, Watcher
from tests.audit.doubles import scratch
from tests.machine import demand_sandbox
from tests.mitm_proxy.waiting import sleep, the_reactor, until
from tests.programs import program
from tests.senses.sounds import spoken

SILENCE = bytes(2 * RATE * 2)


class Interrupted(SensesWorker):
    """Listens while the watcher's own run ends."""

    trigger: AudioTrigger | None = None
    heard, writes = 0, True

    async def transcribe(self, pcm: bytes) -> list[Utterance]:
        if not self.writes:
            raise Unavailable("the Python package for it is missing")
        found = await super().transcribe(pcm)
        if self.trigger is not None:
            self.trigger.settle()
            self.heard += 1
        return found


class AudioTriggerTests(TestCase):
    def setUp(self) -> None:
        demand_sandbox()
        self.said, self.fired = list[str](), list[Event]()
        self.worker, self.recorders, self.clock = Interrupted(), 0, Clock()

    def trigger(self, sound: bytes, pattern: str = "") -> AudioTrigger:
        """:returns: a trigger whose recorder gives a sound and then goes on without end."""
        path = scratch(self) / "sound"
        path.write_bytes(sound)
        line = (program("dash"), "-c", f"cat '{path}'; exec sleep 600")
        return self.start(lambda: succeed(line), the_reactor, pattern)

    def start(self, recorder: Callable[[], Deferred[Sequence[str]]], reactor: Any, pattern: str = "") -> AudioTrigger:
        watcher = Watcher("ears", Kind.AUDIO_EVENT, "Look.", pattern=pattern)
        environ = {"PATH": os.defpath}
        made = AudioTrigger(watcher, reactor, self.worker, recorder, environ, self.said.append)
        self.addCleanup(made.stop)
        made.start(self.fired.append)
        return made

    async def test_speech_with_the_pattern_is_an_event(self) -> None:
        sounds = (SILENCE, spoken("Good morning."), SILENCE, spoken("Open the file and delete the report."), SILENCE)
        self.trigger(b"".join(sounds), "delete*report")
        await until(lambda: self.fired, "an event")
        [event] = self.fired
        self.assertEqual(event.data["said"], "Open the file and delete the report.")
        self.assertIn("speech", event.data["heard"])
        self.assertEqual(self.said, [])

    async def test_what_is_heard_while_the_own_run_ends_is_no_event(self) -> None:
        self.worker.trigger = self.trigger(SILENCE + spoken("Delete the report.") + SILENCE)
        await until(lambda: self.worker.heard, "the sound")
        await sleep(0.0)  # what was said is known in a later turn
        self.assertEqual(self.fired, [])

    async def test_speech_that_nothing_can_write_down_is_an_event(self) -> None:
        self.worker.writes = False
        self.trigger(SILENCE + spoken("Delete the report.") + SILENCE)
        await until(lambda: self.fired, "an event")
        self.assertIn("speech", self.fired[0].data["heard"])
        self.assertEqual((self.fired[0].data["said"], self.said), ("", []))

    async def test_missing_source_is_said_once_and_tried_again(self) -> None:
        def recorder() -> Deferred[Sequence[str]]:
            self.recorders += 1
            return fail(Unavailable("there is no microphone"))

        self.start(recorder, self.clock)
        self.clock.advance(AGAIN_SECONDS)
        self.assertEqual((self.recorders, self.said), (2, ["there is no microphone"]))

    async def test_recorder_that_ends_is_said(self) -> None:
        self.start(lambda: succeed((program("dash"), "-c", "exit 3")), the_reactor)
        await until(lambda: self.said, "a word")
        self.assertRegex(self.said[0], "dash ended with status 3")
