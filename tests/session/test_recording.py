from __future__ import annotations

import json

import msgspec
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.home.layout import private_directory
from ironcurtain.home.sections import Terminal
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.home.settings import Settings
from ironcurtain.session.parts import Services
from ironcurtain.session.terminal import open_recording
from ironcurtain.terminal.recording import Recording
from tests.audit.doubles import scratch
from tests.session.doubles import NOW, World


class RecordingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.services = World(scratch(self)).services
        self.paths = SessionPaths(private_directory(scratch(self) / "session"))

    def opened(self, services: Services | None = None) -> Recording | None:
        """:returns: the recording, to be ended in the end."""
        made = open_recording(self.paths, services or self.services, (90, 30), "Agent")
        if made is not None:
            self.addCleanup(made.end)
        return made

    def test_what_it_says_of_itself(self) -> None:
        self.opened()
        head = json.loads(self.paths.recording.read_text())
        wanted = {"version": 2, "width": 90, "height": 30, "timestamp": int(NOW), "title": "Agent"}
        self.assertEqual(head, wanted)
        self.assertEqual(self.paths.recording.stat().st_mode & 0o777, 0o600)

    def test_earlier_ones_are_kept(self) -> None:
        for number in range(3):
            made = self.opened()
            assert made is not None
            made.output(0.0, b"%d" % number)
            made.flush()
        names = ("recording.1.cast", "recording.2.cast", "recording.cast")
        said = [json.loads((self.paths.directory / name).read_text().splitlines()[1])[2] for name in names]
        self.assertEqual(said, ["0", "1", "2"])

    def test_the_settings_say_whether_and_how_much(self) -> None:
        self.assertIsNone(self.opened(self.with_settings(record=False)))
        self.assertFalse(self.paths.recording.exists())
        made = self.opened(self.with_settings(recording_mb=0.001))
        assert made is not None
        for _ in range(100):
            made.output(0.0, b"x" * 100)
        self.assertLess(self.paths.recording.stat().st_size, 1200)

    def with_settings(self, **changes: object) -> Services:
        """:returns: the services with other settings."""
        terminal = msgspec.structs.replace(Terminal(), **changes)
        return replace(self.services, settings=msgspec.structs.replace(Settings(), terminal=terminal))
