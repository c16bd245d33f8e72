"""Tests for watchers whose runs are left to other hosts."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound, SessionError
from ironcurtain.fleet.task_files import TaskFiles
from ironcurtain.fleet.tasks import Over, Started, State, Task
from ironcurtain.fleet.watcher_tasks import LOOK_SECONDS, WatcherTasks
from ironcurtain.home.layout import Home
from ironcurtain.home.sections import Budget
from ironcurtain.watchers.decision import Batch
from ironcurtain.watchers.model import Ask, Event, Watcher
from ironcurtain.watchers.record import RUN_SECONDS
from tests.audit.doubles import scratch
from tests.watchers.doubles import make_watcher


class WatcherTasksTests(SynchronousTestCase):
    def setUp(self) -> None:
        place = scratch(self)
        self.home, self.clock = Home(place, place / "run"), Clock()
        self.home.fleet.mkdir(parents=True)
        self.home.fleet_members.write_text("{}")
        self.files, self.here, self.begun = TaskFiles(self.home), list[str](), list[int]()

        async def run_here(watcher: Watcher, batch: Batch, begun: Any) -> None:
            self.here.append(watcher.name)

        self.runs = WatcherTasks(self.home, run_here, self.clock, lambda: 1e9)

    def run_once(self, **fields: Any) -> Deferred[None]:
        batch = Batch((Event({"new": "a"}),), 0, ("tests",))
        return Deferred.fromCoroutine(self.runs(make_watcher(**fields), batch, self.begun.append))

    def change(self, *steps: Any) -> Task:
        (task,) = self.files.all()
        for step in steps:
            task = self.files.change(task.id, step)
        self.clock.advance(LOOK_SECONDS)
        return task

    def begin(self) -> None:
        self.change(lambda task: task.take("build", 0.0), lambda task: task.begin("build"))

    def test_watcher_without_a_host_runs_here(self) -> None:
        self.successResultOf(self.run_once())
        self.assertEqual((self.here, self.files.all()), (["tests"], []))

    def test_task_has_what_the_watcher_says(self) -> None:
        self.run_once(on="any", labels=("gpu",), budget=Budget(steps=5)).addErrback(lambda _: None)
        task = self.change()
        self.assertEqual((task.person, task.on, task.labels), ("watcher:tests", "", ("gpu",)))
        self.assertEqual((task.body.budget, task.body.attended), (Budget(steps=5), False))
        self.assertIn('{"new":"a"}', task.body.task)
        self.change(Task.withdraw)
        for ask, attended in ((Ask.CONSOLE, True), (Ask.POLICY, False)):
            self.run_once(on="build", ask=ask).addErrback(lambda _: None)
            (task,) = [task for task in self.files.all() if task.state is State.WAITING]
            self.assertEqual((task.on, task.body.attended), ("build", attended))
            self.files.change(task.id, Task.withdraw)

    def test_run_is_over_when_its_session_is(self) -> None:
        running = self.run_once(on="any")
        self.clock.advance(LOOK_SECONDS)
        self.assertEqual(self.begun, [])
        self.begin()
        self.assertEqual(self.begun, [0])
        self.change(lambda task: task.report("build", Started(session=3)))
        self.assertNoResult(running)
        self.change(lambda task: task.report("build", Started(session=3, over=Over.ENDED)))
        self.successResultOf(running)
        self.assertEqual((self.begun, self.here), ([0], []))

    def test_run_that_cannot_start_or_is_lost_fails(self) -> None:
        for said, why in (
            (Started(why="no such agent"), "no such agent"),
            (Started(session=1, over=Over.LOST), "lost"),
        ):
            running = self.run_once(on="any")
            self.begin()
            self.change(lambda task, said=said: task.report("build", said))
            self.assertIn(why, str(self.failureResultOf(running, SessionError).value))
            for task in self.files.all():
                (self.home.path / "fleet-tasks" / f"{task.id}.json").unlink()

    def test_task_that_nobody_takes_is_taken_back(self) -> None:
        waiting = self.run_once(on="any")
        self.clock.pump([LOOK_SECONDS] * (int(RUN_SECONDS) + 2))
        self.failureResultOf(waiting, SessionError)
        self.assertEqual([task.state for task in self.files.all()], [State.WITHDRAWN])

    def test_end_of_this_daemon_takes_it_back(self) -> None:
        waiting = self.run_once(on="any")
        waiting.cancel()
        self.failureResultOf(waiting, CancelledError)
        self.assertEqual([task.state for task in self.files.all()], [State.WITHDRAWN])

    def test_without_a_fleet_it_fails(self) -> None:
        self.home.fleet_members.unlink()
        self.failureResultOf(self.run_once(on="any"), NotFound)
