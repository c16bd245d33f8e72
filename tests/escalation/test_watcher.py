from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.escalation import watcher
from ironcurtain.escalation.watcher import SCAN_SECONDS_UNWATCHED, DirectoryWatcher
from tests.audit.doubles import open_files, scratch
from tests.escalation.doubles import no_more_files


class PollingTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        with no_more_files():
            self.watcher = DirectoryWatcher(self.clock)
        self.seen: list[str] = []

    def test_it_looks_twice_a_second(self) -> None:
        self.watcher.add(Path("/a"), lambda: self.seen.append("a"))
        self.watcher.add(Path("/b"), lambda: self.seen.append("b"))
        self.assertEqual(self.seen, [])
        self.clock.pump([SCAN_SECONDS_UNWATCHED] * 2)
        self.assertEqual(self.seen, ["a", "b"] * 2)

    def test_one_that_fails_does_not_stop_the_others(self) -> None:
        self.watcher.add(Path("/a"), lambda: self.fail("no look"))
        self.watcher.add(Path("/b"), lambda: self.seen.append("b"))
        self.clock.pump([SCAN_SECONDS_UNWATCHED] * 2)
        self.assertEqual(self.seen, ["b", "b"])
        self.assertEqual(len(self.flushLoggedErrors(self.failureException)), 2)

    def test_one_may_be_removed_while_it_is_looked_at(self) -> None:
        self.watcher.add(Path("/a"), lambda: self.watcher.remove(Path("/b")))
        self.watcher.add(Path("/b"), lambda: self.seen.append("b"))
        self.clock.advance(SCAN_SECONDS_UNWATCHED)
        self.assertEqual(self.seen, [])

    def test_without_directories_nothing_runs(self) -> None:
        self.watcher.add(Path("/a"), lambda: None)
        self.watcher.remove(Path("/a"))
        self.watcher.remove(Path("/a"))
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.watcher.add(Path("/a"), lambda: self.seen.append("a"))
        self.clock.advance(SCAN_SECONDS_UNWATCHED)
        self.watcher.stop()
        self.assertEqual((self.seen, self.clock.getDelayedCalls()), (["a"], []))


class NotifiedTests(TestCase):
    def setUp(self) -> None:
        from twisted.internet import reactor

        self.patch(watcher, "SCAN_SECONDS", 1000.0)
        self.before = open_files(alone=True)
        self.watcher = DirectoryWatcher(reactor)
        self.directory = scratch(self)
        self.addCleanup(self.watcher.stop)

    def watch(self, directory: Path, until: Callable[[], bool]) -> Deferred[None]:
        """:returns: fires when a look finds what it waits for."""
        found: Deferred[None] = Deferred()
        self.watcher.add(directory, lambda: found.callback(None) if until() and not found.called else None)
        return found

    async def heard(self, change: Callable[[Path], object]) -> None:
        found = self.watch(self.directory, (self.directory / "file").exists)
        change(self.directory / "file")
        await found

    async def test_a_file_that_is_written(self) -> None:
        await self.heard(lambda path: path.write_bytes(b"x"))

    async def test_a_file_that_is_renamed_into_place(self) -> None:
        (self.directory / "other").touch()
        await self.heard((self.directory / "other").rename)

    async def test_a_file_that_is_linked_into_place(self) -> None:
        (self.directory / "other").touch()
        await self.heard(lambda path: os.link(self.directory / "other", path))

    async def test_a_file_that_vanishes(self) -> None:
        path = self.directory / "file"
        path.touch()
        found = self.watch(self.directory, lambda: not path.exists())
        path.unlink()
        await found

    async def test_a_file_that_is_written_slowly(self) -> None:
        """It is looked at again when its writer is done."""
        path = self.directory / "file"
        begun = self.watch(self.directory, path.exists)
        with open(path, "wb") as file:
            await begun
            self.watcher.remove(self.directory)
            ended = self.watch(self.directory, lambda: path.read_bytes() == b"end")
            file.write(b"end")
        await ended

    async def test_a_directory_that_vanishes_does_not_deafen_the_others(self) -> None:
        gone = scratch(self)
        noticed = self.watch(gone, lambda: not gone.exists())
        shutil.rmtree(gone)
        await noticed
        await self.heard(Path.touch)
        self.watcher.remove(gone)

    async def test_one_that_cannot_be_watched_is_scanned(self) -> None:
        later = self.directory / "later"
        self.watcher.add(self.directory, lambda: None)
        found = self.watch(later, later.exists)
        later.mkdir()
        await found

    def test_stopping_gives_everything_back(self) -> None:
        self.watcher.add(self.directory, lambda: None)
        self.watcher.stop()
        self.watcher.stop()
        self.assertEqual(open_files(), self.before)
