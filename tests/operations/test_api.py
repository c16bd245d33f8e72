from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation import Outcome
from ironcurtain.operations import LOCAL_ROLES, Principal
from ironcurtain.operations.api import LocalApi
from ironcurtain.operations.operations import Operations
from ironcurtain.session import events
from ironcurtain.session.events import Stamped
from ironcurtain.session.model import Cancelled
from tests.audit.doubles import scratch
from tests.session.doubles import World, make_request, request


class LocalApiTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.world = World(scratch(self))
        self.api = LocalApi(Operations(self.world.manager), Principal("local:ada", LOCAL_ROLES))
        self.info = self.successResultOf(Deferred.fromCoroutine(self.api.start(request(task="look"))))
        self.seen: list[Stamped] = []

    def test_a_session_from_start_to_stop(self) -> None:
        run = Deferred.fromCoroutine
        self.assertEqual((self.info.number, self.info.by, self.info.state), (1, "local:ada", "ready"))
        self.assertEqual(self.successResultOf(run(self.api.send(1, "hello"))).text, "you said hello")
        self.assertEqual(self.successResultOf(run(self.api.cancel(1))), Cancelled(False))
        self.assertEqual(len(self.successResultOf(run(self.api.history("1")))), 1)
        core = self.world.agents[0].core
        assert core is not None
        core.escalations.ask(make_request(core))
        (view,) = self.successResultOf(run(self.api.escalations()))
        decided = self.successResultOf(run(self.api.decide(view.number, Outcome.APPROVED, view.digest)))
        self.assertEqual(decided.by, "local:ada")
        self.assertEqual(self.successResultOf(run(self.api.escalations(closed=True))), [decided])
        self.assertEqual(self.successResultOf(run(self.api.stop(1))).state, "closed")
        self.assertEqual(self.successResultOf(run(self.api.sessions()))[0].state, "closed")

    def test_events_come_in_order_and_once(self) -> None:
        stop = self.successResultOf(Deferred.fromCoroutine(self.api.follow(1, 0, self.seen.append)))
        self.successResultOf(Deferred.fromCoroutine(self.api.send(1, "hello")))
        self.assertEqual([stamped.sequence for stamped in self.seen], list(range(1, len(self.seen) + 1)))
        self.assertIsInstance(self.seen[-1].event, events.StateChanged)
        stop()
        before = len(self.seen)
        self.successResultOf(Deferred.fromCoroutine(self.api.send(1, "again")))
        self.assertEqual(len(self.seen), before)

    def test_a_reader_may_start_from_the_middle(self) -> None:
        self.successResultOf(Deferred.fromCoroutine(self.api.send(1, "hello")))
        last = self.world.manager.get(1).events.last
        self.successResultOf(Deferred.fromCoroutine(self.api.follow(1, last - 2, self.seen.append)))
        self.assertEqual([stamped.sequence for stamped in self.seen], [last - 1, last])

    def test_a_reader_may_cause_events_itself(self) -> None:
        """A console answers an escalation as it hears of it: it still hears all, in order."""

        def decide(stamped: Stamped) -> None:
            self.seen.append(stamped)
            if isinstance(stamped.event, events.EscalationRaised):
                Deferred.fromCoroutine(self.api.decide(stamped.event.number, Outcome.DENIED))

        self.successResultOf(Deferred.fromCoroutine(self.api.follow(1, 0, decide)))
        text = self.successResultOf(Deferred.fromCoroutine(self.api.send(1, "ask"))).text
        self.assertEqual(text, "denied by local:ada")
        self.assertEqual([stamped.sequence for stamped in self.seen], list(range(1, len(self.seen) + 1)))
        kinds = [type(stamped.event) for stamped in self.seen]
        self.assertLess(kinds.index(events.EscalationRaised), kinds.index(events.EscalationClosed))
