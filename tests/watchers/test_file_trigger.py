from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThreadPool
from twisted.trial.unittest import TestCase

from ironcurtain.errors import UsageError
from ironcurtain.escalation.watcher import DirectoryWatcher
from ironcurtain.watchers import followed
from ironcurtain.watchers.file_trigger import FileTrigger
from ironcurtain.watchers.model import Event, Kind
from tests.audit.doubles import scratch
from tests.watchers.doubles import make_watcher
from tests.watchers.test_tree import HOSTILE


class FileTriggerTests(TestCase):
    def setUp(self) -> None:
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.root = Path(os.path.realpath(scratch(self)))
        (self.root / "below").mkdir()
        (self.root / "a.py").write_text("1")
        self.events: list[Event] = []
        self.said: list[str] = []
        self.waiting: Deferred[Event] | None = None

    async def watch(self, path: Path | None = None) -> FileTrigger:
        """:returns: a trigger that knows what there is."""
        watcher = make_watcher(trigger=Kind.FILE_CHANGE, path=path or self.root)
        pool = self.reactor.getThreadPool()
        trigger = FileTrigger(
            watcher, self.reactor, lambda work: deferToThreadPool(self.reactor, pool, work), (), self.said.append
        )
        self.addCleanup(trigger.stop)
        trigger.start(self.fired)
        await trigger.settle()
        return trigger

    def fired(self, event: Event) -> None:
        self.events.append(event)
        if self.waiting is not None and not self.waiting.called:
            self.waiting.callback(event)

    def next(self) -> Deferred[Event]:
        """:returns: fires with the next event."""
        self.waiting = Deferred()
        return self.waiting

    async def test_file_that_is_written(self) -> None:
        await self.watch()
        came = self.next()
        (self.root / "below" / "b.py").write_text("x")
        self.assertEqual(dict((await came).data), {"path": str(self.root), "new": "below/b.py"})

    async def test_file_in_a_new_directory(self) -> None:
        await self.watch()
        for text in ("1", "2"):
            came = self.next()
            (self.root / "new" / "deep").mkdir(parents=True, exist_ok=True)
            (self.root / "new" / "deep" / "b").write_text(text)
            self.assertIn("new/deep/b", str((await came).data))

    async def test_directory_that_goes_does_not_end_it(self) -> None:
        (self.root / "below" / "b").write_text("x")
        await self.watch()
        came = self.next()
        shutil.rmtree(self.root / "below")
        self.assertEqual((await came).data["gone"], "below/b")
        came = self.next()
        (self.root / "a.py").write_text("2")
        self.assertEqual((await came).data["changed"], "a.py")

    async def test_directory_that_is_replaced_is_followed_afresh(self) -> None:
        path = self.root / "below"
        (path / "b").write_text("1")
        await self.watch(path)
        for text in ("2", "3", "4"):
            came = self.next()
            os.rename(path, self.root / f"before {text}")
            path.mkdir()
            (path / "b").write_text(text)
            while not {"new", "changed"} & (await came).data.keys():  # it may have been gone for a moment
                came = self.next()

    async def test_file_that_is_moved_out_is_gone(self) -> None:
        (self.root / "below" / "b").write_text("x")
        await self.watch(self.root / "below")
        came = self.next()
        os.rename(self.root / "below" / "b", self.root / "b")
        self.assertEqual((await came).data["gone"], "b")

    async def test_single_file_that_is_replaced(self) -> None:
        await self.watch(self.root / "a.py")
        came = self.next()
        (self.root / "other").write_text("2")
        os.rename(self.root / "other", self.root / "a.py")
        self.assertEqual((await came).data["changed"], "a.py")

    async def test_own_changes_are_known_after_settling(self) -> None:
        trigger = await self.watch()
        (self.root / "own").write_text("x")
        await trigger.settle()
        came = self.next()
        (self.root / "later").write_text("x")
        await came
        self.assertEqual([event.data.get("new") for event in self.events], ["later"])

    async def test_hostile_names_are_escaped(self) -> None:
        await self.watch()
        came = self.next()
        for name in HOSTILE:
            (self.root / name).write_text("x")
        names = (await came).data["new"]
        self.assertTrue(names.isascii() and names.isprintable())
        self.assertIn("new\\nline", names)

    async def test_storm_is_few_bounded_events(self) -> None:
        await self.watch()
        came = self.next()
        for number in range(10_000):
            (self.root / "below" / f"{number:05}").touch()
        event = await came
        self.assertLess(len(event.data["new"]), 1000)
        self.assertLess(len(self.events), 10)

    async def test_without_watches_it_looks_from_time_to_time_and_says_so(self) -> None:
        self.patch(DirectoryWatcher, "_watch", lambda watcher, directory: watcher._unwatched.add(directory))
        self.patch(followed, "POLL_SECONDS", 0.05)
        await self.watch()
        came = self.next()
        (self.root / "below" / "b").write_text("x")
        self.assertEqual((await came).data["new"], "below/b")
        self.assertIn("fs.inotify.max_user_watches", self.said[0])
        self.assertEqual(len(self.said), 1)

    def test_path_in_a_hidden_directory_is_refused(self) -> None:
        for path in (self.root, self.root / "below"):
            watcher = make_watcher(trigger=Kind.FILE_CHANGE, path=path)
            trigger = FileTrigger(watcher, self.reactor, lambda work: Deferred(), {str(self.root)}, self.said.append)
            self.assertRaises(UsageError, trigger.start, self.fired)

    def test_path_without_anything_is_refused(self) -> None:
        watcher = make_watcher(trigger=Kind.FILE_CHANGE, path=self.root / "nothing")
        trigger = FileTrigger(watcher, self.reactor, lambda work: Deferred(), (), self.said.append)
        self.assertRaises(UsageError, trigger.start, self.fired)
