"""Which servers are still starting."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mcp_proxy.settling import SLOW_SECONDS, Settling


class SlowTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.told = Clock(), list[Mapping[str, float]]()
        self.clock.advance(100)
        self.starts = Settling(("a", "b", "c"), self.clock, self.told.append)

    def test_servers_that_take_long_are_told_until_they_have_settled(self) -> None:
        self.starts.begin()
        self.starts.settle("a")
        self.clock.advance(SLOW_SECONDS)
        self.starts.settle("c")
        self.starts.settle("c")
        self.starts.settle("b")
        self.assertEqual(self.told, [{"b": 100, "c": 100}, {"b": 100}, {}])

    def test_nothing_is_told_if_all_are_up_soon(self) -> None:
        self.starts.begin()
        for name in "abc":
            self.starts.settle(name)
        self.clock.advance(SLOW_SECONDS)
        self.assertEqual((self.told, self.clock.getDelayedCalls()), ([], []))

    def test_time_of_a_server_that_waits_for_the_agent_begins_with_the_agent(self) -> None:
        self.starts.begin()
        for name in "ab":
            self.starts.settle(name)
        waiting = Deferred.fromCoroutine(self.starts.agent_capabilities("c", waits=True))
        self.clock.advance(50)
        self.starts.agent_is({})
        self.successResultOf(waiting)
        self.clock.advance(SLOW_SECONDS)
        self.assertEqual(self.told, [{"c": 150}])

    def test_nothing_is_told_after_the_end(self) -> None:
        self.starts.begin()
        self.starts.stop()
        self.starts.settle("a")
        self.assertEqual((self.told, self.clock.getDelayedCalls()), ([], []))
