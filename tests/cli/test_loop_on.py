"""Tests for loops that wait for another host: what travels, and what is refused."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.loop_placement import give_loop
from ironcurtain.errors import NotFound, UsageError
from ironcurtain.fleet.task_files import TaskFiles
from ironcurtain.home.layout import Home
from ironcurtain.home.sections import Budget
from ironcurtain.loop.config import configured, values_of
from ironcurtain.loop.kind import LoopOptions, options_of
from ironcurtain.loop.model import IterationMode
from ironcurtain.session.model import SessionRequest
from tests.audit.doubles import scratch

GIVEN = {"host": None, "labels": (), "repo": None, "workspace": None, "resume": None, "restart": False}
URL = "https://example.org/app.git"


class GiveLoopTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.place = scratch(self)
        self.home = Home(self.place / "home", self.place / "run")
        self.home.fleet.mkdir(parents=True)
        self.home.fleet_members.write_text("{}")
        (self.place / "PROMPT.md").write_text("Go on.\nThen print the promise.")

    def give(self, mode: IterationMode = IterationMode.HEADLESS, **more: Any) -> None:
        agent = more.pop("agent", "codex")
        settings = values_of(configured().settings) | {"loop.agent": agent, "event_loop.max_iterations": 7}
        options = LoopOptions(settings=settings, mode=mode, idle_seconds=30.0)
        give_loop(self.home, options, self.place, {**GIVEN, **more})

    def test_prompt_settings_and_budget_travel(self) -> None:
        self.home.path.mkdir(exist_ok=True)
        self.home.config.write_text("version = 1\n[budget]\ncost = 5\n")
        self.give(labels=("gpu",), repo=URL, restart=True)
        (task,) = TaskFiles(self.home).all()
        body = task.body
        self.assertEqual((task.agent, task.labels, task.on, task.state), ("codex", ("gpu",), "", "waiting"))
        self.assertEqual(
            (body.kind, body.options["repo"], body.budget, body.restart), ("loop", URL, Budget(cost=5), True)
        )
        options = options_of(SessionRequest("loop", options=body.options))
        self.assertTrue(options.alone)
        self.assertEqual(options.settings["event_loop.prompt"], "Go on.\nThen print the promise.")
        self.assertEqual(options.settings["event_loop.max_iterations"], 7)

    def test_prompt_can_be_a_file_of_the_repository(self) -> None:
        (self.place / "PROMPT.md").unlink()
        with self.assertRaises(UsageError):
            self.give(host="build-3")
        self.give(host="build-3", repo=URL)
        (task,) = TaskFiles(self.home).all()
        self.assertEqual((task.on, task.body.options["loop"]["settings"]["event_loop.prompt"]), ("build-3", ""))

    def test_what_has_no_meaning_there_is_refused(self) -> None:
        for more, why in (
            ({"agent": "", "host": "any"}, "needs --agent"),
            ({"host": "any", "workspace": self.place}, "takes no --workspace"),
            ({"host": "any", "resume": "last"}, "takes no --workspace"),
            ({"host": "any", "mode": IterationMode.OBSERVE}, "--pty"),
            ({"host": "build-3", "labels": ("gpu",)}, "--label chooses"),
            ({"host": "../daemon"}, "takes the name of a machine"),
            ({"host": "build-3", "repo": URL, "restart": True}, "--restart needs --on any"),
            ({"host": "any", "restart": True}, "--restart needs --on any"),
        ):
            with self.assertRaises(UsageError) as caught:
                self.give(**more)
            self.assertIn(why, str(caught.exception))
        self.assertEqual(TaskFiles(self.home).all(), [])

    def test_without_a_fleet_nothing_is_kept(self) -> None:
        self.home.fleet_members.unlink()
        self.assertRaises(NotFound, self.give, host="any")
