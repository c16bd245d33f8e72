from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.execution import shielded


class ShieldTests(SynchronousTestCase):
    def test_results_and_failures_pass(self) -> None:
        work: Deferred[int] = Deferred()
        waiting = shielded(work)
        work.callback(3)
        self.assertEqual(self.successResultOf(waiting), 3)
        work = Deferred()
        waiting = shielded(work)
        work.errback(ValueError())
        self.failureResultOf(waiting, ValueError)

    def test_cancelling_leaves_the_work_alone(self) -> None:
        work: Deferred[int] = Deferred()
        waiting = shielded(work)
        waiting.cancel()
        self.failureResultOf(waiting, CancelledError)
        self.assertNoResult(work)
        work.callback(3)
        self.assertIsNone(self.successResultOf(work))

    def test_a_failure_that_nobody_waits_for_is_logged(self) -> None:
        work: Deferred[int] = Deferred()
        waiting = shielded(work)
        waiting.cancel()
        self.failureResultOf(waiting)
        work.errback(ValueError())
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
