"""Tests for the room that copies of other hosts' sessions take."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.fleet.copies import COPIES_LIMIT, FRESH_SECONDS, make_room
from tests.audit.doubles import scratch

NOW = 1e9


class RoomTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = scratch(self)

    def copy(self, number: int, size: int, age: float) -> Path:
        """:returns: a copy of a session, which takes no room on the disk."""
        path = self.directory / f"session-{number}"
        path.mkdir()
        with (path / "audit.jsonl").open("wb") as file:
            file.truncate(size)
        os.utime(path, (NOW - age, NOW - age))
        return path

    def test_copies_of_a_host_fill_no_more_than_the_limit(self) -> None:
        self.assertEqual(make_room(self.directory, NOW), COPIES_LIMIT)
        for number in range(4):
            self.copy(number, COPIES_LIMIT // 4, FRESH_SECONDS - 1)
        self.assertEqual(make_room(self.directory, NOW), 0)
        self.assertEqual(len(list(self.directory.iterdir())), 4)

    def test_oldest_copies_that_nobody_uses_make_room(self) -> None:
        old, older, fresh = (
            self.copy(number, COPIES_LIMIT // 3, FRESH_SECONDS + age) for number, age in enumerate((1, 2, -1))
        )
        self.assertEqual(make_room(self.directory, NOW), COPIES_LIMIT - COPIES_LIMIT // 3)
        self.assertEqual([path.exists() for path in (old, older, fresh)], [False, False, True])
        self.assertEqual(make_room(self.directory, NOW + 1e6), COPIES_LIMIT - COPIES_LIMIT // 3)
