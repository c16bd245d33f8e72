from __future__ import annotations

import json
from typing import Any

import msgspec
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import SessionError
from ironcurtain.home.sections import Budget
from ironcurtain.operations.operations import Operations
from ironcurtain.operations.watcher_runs import WatcherRuns
from ironcurtain.session.budget import stricter
from ironcurtain.session.events import EscalationRaised
from ironcurtain.session.model import Reply
from ironcurtain.watchers.decision import Batch
from ironcurtain.watchers.model import Ask, Event
from ironcurtain.watchers.record import RUN_SECONDS
from tests.audit.doubles import scratch
from tests.session.doubles import USAGE, World, make_request
from tests.watchers.doubles import make_watcher


class WatcherRunsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = World(scratch(self))
        self.addCleanup(self.world.watcher.stop)
        self.operations = Operations(self.world.manager)
        self.answers: list[str] = []
        self.begun: list[int] = []
        self.runs = WatcherRuns(
            self.operations, self.world.clock, lambda watcher, number, reply: self.answers.append(reply.text)
        )
        self.data = {"new": "a\nwait"}

    def run_once(self, **fields: Any) -> Deferred[None]:
        """:returns: fires when the run is over."""
        batch = Batch((Event(self.data),), 0, ("tests",))
        run = self.runs(make_watcher(agent="plain", **fields), batch, self.begun.append)
        return Deferred.fromCoroutine(run)

    def audit(self) -> list[dict[str, Any]]:
        """:returns: the records of the only session."""
        (session,) = self.world.manager.all()
        return [json.loads(line) for line in session.paths.audit.read_text().splitlines()]

    def test_session_of_the_watcher_gets_the_event_as_data(self) -> None:
        self.successResultOf(self.run_once())
        (session,) = self.world.manager.all()
        self.assertEqual((session.state, session.info.by), ("closed", "watcher:tests"))
        self.assertEqual((self.begun, session.label), ([session.number], "watcher:tests: look"))
        self.assertTrue(self.answers[0].startswith("you said look\n\nThe lines between the marks say what happened."))
        self.assertIn('{"new":"a\\nwait"}', self.answers[0])
        records = self.audit()
        by = {record["kind"]: record.get("by") or record.get("reason") for record in records}
        self.assertEqual((by["session"], by["end"]), ("watcher:tests", "ended by watcher:tests"))

    def test_instruction_of_the_file_is_not_typed(self) -> None:
        self.successResultOf(self.run_once())
        core = self.world.agents[0].core
        assert core is not None
        self.assertEqual((core.trusted_input.recent(), len(core.trusted_input.others())), ([], 1))

    def test_failure_ends_its_session(self) -> None:
        self.world.next_agent.trouble = SessionError("MESSAGE_FAILED", "no model")
        self.failureResultOf(self.run_once(), SessionError)
        self.assertEqual(self.begun, [])

    def test_budget_keeps_both_limits(self) -> None:
        budget = stricter(Budget(steps=5, cost=1.0), Budget(steps=9, cost=0.5, tokens=7))
        self.assertEqual(budget, Budget(steps=5, cost=0.5, tokens=7))
        manager = self.world.manager
        settings = msgspec.structs.replace(manager.services.settings, budget=Budget(steps=5))
        manager.services = msgspec.structs.replace(manager.services, settings=settings)
        self.successResultOf(self.run_once(budget=Budget(cost=0.5)))
        core = self.world.agents[0].core
        assert core is not None
        self.assertEqual(core.services.settings.budget, Budget(steps=5, cost=0.5))
        self.assertEqual(manager.services.settings.budget, Budget(steps=5))

    def ask(self, who: Ask) -> Deferred[None]:
        """:returns: fires when a run is over whose agent asks."""
        self.patch(type(self.world.next_agent), "respond", _ask)
        return self.run_once(ask=who)

    def test_nobody_to_ask_is_denied_at_once(self) -> None:
        self.successResultOf(self.ask(Ask.POLICY))
        self.assertEqual(self.answers, ["unattended by "])

    def test_console_is_asked_until_the_time_limit(self) -> None:
        run = self.ask(Ask.CONSOLE)
        (session,) = self.world.manager.all()
        raised = [each.event for each in session.events.after(0) if isinstance(each.event, EscalationRaised)]
        self.assertEqual(len(raised), 1)
        self.assertNoResult(run)
        self.world.clock.advance(RUN_SECONDS)
        self.successResultOf(run)
        self.assertEqual(session.state, "closed")

    def test_cancelled_run_ends_its_session(self) -> None:
        run = self.ask(Ask.CONSOLE)
        run.cancel()
        self.successResultOf(run.addErrback(lambda _: None))
        (session,) = self.world.manager.all()
        self.assertEqual(session.state, "closed")


async def _ask(agent: Any, message: str) -> Any:
    answer = await agent.core.escalations.ask(make_request(agent.core))
    return Reply(f"{answer.outcome} by {answer.by}", USAGE)
