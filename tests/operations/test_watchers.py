from __future__ import annotations

import itertools
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.trial.unittest import TestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.layout import Home
from ironcurtain.operations.watchers import Watchers
from ironcurtain.watchers.decision import Batch
from ironcurtain.watchers.model import Watcher
from ironcurtain.watchers.record import Records
from tests.audit.doubles import scratch


class WatchersTests(TestCase):
    def setUp(self) -> None:
        from twisted.internet import reactor

        self.top = scratch(self)
        self.home = Home(self.top / "home", self.top / "run")
        self.home.prepare()
        self.records = Records(self.home.watcher_records)
        self.runs: list[str] = []
        self.begun: Deferred[None] = Deferred()
        self.watchers = Watchers(reactor, self.home, {"HOME": str(self.top)}, self.run_agent)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.watchers.stop()))

    async def run_agent(self, watcher: Watcher, batch: Batch, begun: Callable[[int], None]) -> None:
        """An agent that is ready at once."""
        begun(1)
        self.runs.append(watcher.name)
        if not self.begun.called:
            self.begun.callback(None)

    def write(self, **watchers: str) -> None:
        """:param watchers: more settings of each."""
        files = 'trigger = "file_change"\npath = "~/watched"\ninstruction = "x"\ndebounce = "0s"\n'
        self.home.watchers.write_text("".join(f"[watchers.{name}]\n{files}{more}" for name, more in watchers.items()))
        self.home.watchers.chmod(0o600)

    async def test_reloading_tries_what_could_not_watch_again(self) -> None:
        self.write(tests="", shells='agent = "shell"\n')
        await self.watchers.start()
        self.assertIn("there is no", self.records.read("tests").trouble)
        (self.top / "watched").mkdir()
        (self.top / "watched" / "file").touch()
        await self.watchers.start()
        self.assertEqual(self.records.read("tests").trouble, "")
        self.write(tests="max_per_hour = 2\n")
        await self.watchers.start()
        numbers = itertools.count()
        changing = LoopingCall(lambda: (self.top / "watched" / "file").write_text(str(next(numbers))))
        changing.start(0.1)  # the first ones may be part of what it knows
        await self.begun
        changing.stop()
        self.assertEqual(self.runs, ["tests"])

    async def test_wrong_file_changes_nothing(self) -> None:
        (self.top / "watched").mkdir()
        self.write(tests="")
        await self.watchers.start()
        self.write(tests='colour = "red"\n')
        starting = Deferred.fromCoroutine(self.watchers.start())
        await self.assertFailure(starting, ConfigurationError)
        self.assertEqual(self.records.read("tests").trouble, "")
