"""The reactor that all tests share."""

from __future__ import annotations

import unittest
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

the_reactor: Any = _reactor


class Waited(ProcessProtocol):
    """:ivar ended: when the process has ended."""

    def __init__(self) -> None:
        self.ended: Deferred[None] = Deferred()

    def processEnded(self, reason: Failure) -> None:
        self.ended.callback(None)


class OneAfterAnother(TestCase):
    """Not collected: run by the test below."""

    timeout = 30

    async def ends_while_the_reactor_starts(self) -> None:
        started: Deferred[None] = Deferred()
        the_reactor.addSystemEventTrigger("during", "startup", started.callback, None)
        await started

    async def needs_to_hear_that_a_process_ends(self) -> None:
        waited = Waited()
        the_reactor.spawnProcess(waited, "/bin/true", ["true"], childFDs={})  # nor is there a pipe whose end tells it
        await waited.ended


class ReactorTests(SynchronousTestCase):
    def test_a_test_that_ends_while_the_reactor_starts_harms_none_after_it(self) -> None:
        result = unittest.TestResult()
        for name in ("ends_while_the_reactor_starts", "needs_to_hear_that_a_process_ends"):
            OneAfterAnother(name).run(result)
        self.assertEqual((result.testsRun, result.errors, result.failures), (2, [], []))
