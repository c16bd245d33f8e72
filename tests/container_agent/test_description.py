from __future__ import annotations

import math
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container_agent.provision import COMMAND, describe
from ironcurtain.home.layout import Home
from ironcurtain.home.sections import Resources
from ironcurtain.process.accounts import Account
from ironcurtain.process.identity import identify


class DescriptionTests(SynchronousTestCase):
    def cpus(self, wanted: float, processors: float) -> float:
        home = Home(Path("/h"), Path("/r"))
        return describe(
            session_id="s",
            image="image",
            command=COMMAND,
            tty=False,
            account=Account(1000, 1000),
            environment={},
            workspace=Path("/w"),
            places=("/w", "/workspace"),
            further=(),
            paths=home.session("s"),
            run=home.session_run("s"),
            resources=Resources(cpus=wanted),
            processors=processors,
            home=home.path,
            owner=identify(),
        ).cpus

    def test_no_more_processors_than_there_are(self) -> None:
        self.assertEqual([self.cpus(2.0, 1), self.cpus(2.0, 4), self.cpus(2.0, math.inf)], [1, 2.0, 2.0])
