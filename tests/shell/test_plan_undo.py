"""Whether the steps of a plan can be undone, before it is approved."""

from __future__ import annotations

import msgspec
from twisted.internet.defer import Deferred

from ironcurtain.shell.messages import ApprovalRequested, PlanProposed, StepOutcome
from ironcurtain.shell.plan import PlanRun
from tests.shell.support import steps
from tests.shell.test_plan import PlanTestCase


class PlanUndoTests(PlanTestCase):
    """What a plan promises."""

    def test_without_the_snapshot_that_was_promised_each_step_is_asked_about(self) -> None:
        for has_snapshot, waits in ((True, False), (False, True)):
            self.undo.ready = has_snapshot
            proposed = [self.parts.preview(step) for step in steps("ls")]
            self.plan = PlanRun("p1", proposed, self.parts)
            self.running = Deferred.fromCoroutine(self.plan.run())
            self.turn()
            self.assertEqual(self.last(PlanProposed).steps[0].undo, "snapshot")  # type: ignore[union-attr]
            self.say("allow")
            if waits:
                self.assertNoResult(self.running)
                self.assertEqual(self.last(ApprovalRequested).step.undo, "no-snapshot")  # type: ignore[union-attr]
                self.say("deny", 1)
            self.assertEqual(self.outcomes(), [StepOutcome.DENIED if waits else StepOutcome.DONE])

    def test_a_plan_promises_no_snapshot_that_the_settings_do_not_want(self) -> None:
        (step,) = steps("ls")
        self.undo.possible = False
        self.assertEqual(self.parts.preview(step).undo, "no-snapshot")

    def test_a_plan_that_only_reads_has_no_snapshot(self) -> None:
        for undo, prepared in (("reads", 0), ("snapshot", 1), ("unknown", 2)):
            proposed = [msgspec.structs.replace(step, undo=undo) for step in steps("allow ls")]
            self.plan = PlanRun("p1", proposed, self.parts)
            self.running = Deferred.fromCoroutine(self.plan.run())
            self.turn()
            self.say("allow")
            self.assertEqual((self.outcomes(), self.undo.prepared), ([StepOutcome.DONE], prepared))
