"""Steps whose harm cannot be undone: to approve their plan is not enough."""

from __future__ import annotations

import msgspec
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.command_rules import Risk
from ironcurtain.shell.messages import ApprovalRequested, ProposedStep, StepOutcome
from ironcurtain.shell.plan import PlanRun
from ironcurtain.shell.reversal import needs_own_decision
from tests.shell.support import steps
from tests.shell.test_plan import PlanTestCase


class OwnDecisionTests(PlanTestCase):
    """A plan of one step that can be undone, and one that cannot."""

    def setUp(self) -> None:
        super().setUp()
        listing, copying = steps("ls", "cp x /outside")
        self.plan = PlanRun("p1", [listing, msgspec.structs.replace(copying, undo="outside")], self.parts)
        self.running = Deferred.fromCoroutine(self.plan.run())
        self.turn()

    def test_it_is_asked_about_when_its_turn_comes(self) -> None:
        self.say("allow_undoable")
        question = self.last(ApprovalRequested)
        assert isinstance(question, ApprovalRequested)
        self.assertEqual((self.shell.ran, question.step.number), (["ls"], 2))
        self.say("allow", 2)
        self.assertEqual(self.outcomes(), [StepOutcome.DONE] * 2)

    def test_a_program_may_allow_all(self) -> None:
        self.say("allow")
        self.assertEqual(self.outcomes(), [StepOutcome.DONE] * 2)


class JudgementTests(SynchronousTestCase):
    def test_which_steps_they_are(self) -> None:
        for risk, undo, decision, own in (
            (Risk.WRITE_OUTSIDE, "outside", "escalate", True),
            (Risk.NETWORK, "remote", "escalate", True),
            (Risk.DESTRUCTIVE, "no-snapshot", "escalate", True),
            (Risk.DESTRUCTIVE, "snapshot", "escalate", False),
            (Risk.PRIVILEGE, "unknown", "escalate", True),
            (Risk.UNKNOWN, "unknown", "escalate", False),
            (Risk.WRITE_INSIDE, "no-snapshot", "escalate", False),
            (Risk.READ, "reads", "escalate", False),
            (Risk.NETWORK, "remote", "allow", False),
        ):
            step = ProposedStep(number=1, command="x", risk=risk, undo=undo, decision=decision)
            self.assertEqual(needs_own_decision(step), own, step)
