"""Connections to a provider that are kept, waited for, and tried again."""

from __future__ import annotations

from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionRefusedError
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mitm_proxy.limits import MitmLimits
from ironcurtain.mitm_proxy.upstream import Upstream, UpstreamOwner, UpstreamPool


class FakeUpstream:
    """A connection that is there or not."""

    user: Any = None
    idle_since = 0.0
    end = ""

    def close(self) -> None:
        self.end = "closed"

    def abort(self) -> None:
        self.end = "aborted"


class FakeWaiter:
    """What a waiter got."""

    got: Any = None

    def connected(self, upstream: Upstream) -> None:
        self.got = upstream

    def unreachable(self, reason: Failure) -> None:
        self.got = reason


class PoolTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.dialled = Clock(), list[Deferred[Upstream]]()
        self.pool = UpstreamPool(self.dial, self.clock, MitmLimits(provider_idle=2, provider_idle_seconds=30.0))

    def dial(self, keeper: UpstreamOwner) -> Deferred[Upstream]:
        self.dialled.append(Deferred())
        return self.dialled[-1]

    def waiter(self) -> FakeWaiter:
        """:returns: a waiter that asked."""
        waiter = FakeWaiter()
        self.pool.take(waiter)
        return waiter

    def succeed(self, number: int) -> FakeUpstream:
        """Let an attempt succeed."""
        upstream = FakeUpstream()
        self.dialled[number].callback(cast(Upstream, upstream))
        return upstream

    def fail_dialling(self, number: int) -> None:
        """Let an attempt fail."""
        self.dialled[number].errback(Failure(ConnectionRefusedError()))

    def test_an_attempt_for_each_waiter(self) -> None:
        one, two = self.waiter(), self.waiter()
        self.assertEqual(len(self.dialled), 2)
        second = self.succeed(1)
        self.assertIs(one.got, second, "who waits longest is served first")
        self.fail_dialling(0)
        self.assertIsInstance(two.got, Failure)
        self.assertEqual(len(self.dialled), 2, "nobody tries again by himself")

    def test_one_that_was_prepared_serves_the_first_waiter(self) -> None:
        self.pool.prepare()
        self.pool.prepare()
        waiter = self.waiter()
        self.assertEqual(len(self.dialled), 1)
        self.assertIs(self.succeed(0), waiter.got)

    def test_one_that_was_prepared_in_vain_is_tried_again(self) -> None:
        self.pool.prepare()
        waiter = self.waiter()
        self.fail_dialling(0)
        self.assertIsNone(waiter.got)
        self.assertIs(self.succeed(1), waiter.got)

    def test_nobody_waits_for_one_that_was_prepared_in_vain(self) -> None:
        self.pool.prepare()
        self.fail_dialling(0)
        self.assertEqual(len(self.dialled), 1)

    def test_the_newest_is_used_first_and_the_old_ones_are_closed(self) -> None:
        upstreams = [FakeUpstream() for _ in range(3)]
        for upstream in upstreams:
            self.pool.give_back(cast(Upstream, upstream))
            self.clock.advance(20)
        self.assertEqual([upstream.end for upstream in upstreams], ["", "", "closed"], "two are enough")
        self.pool.sweep(self.clock.seconds())
        self.assertEqual([upstream.end for upstream in upstreams], ["closed", "closed", "closed"])
        self.assertEqual(len(self.dialled), 0)

    def test_one_that_is_given_back_goes_to_who_waits(self) -> None:
        waiter, upstream = self.waiter(), FakeUpstream()
        self.pool.give_back(cast(Upstream, upstream))
        self.assertIs(waiter.got, upstream)
        late = self.succeed(0)
        self.assertIs(self.waiter().got, late)

    def test_one_that_is_lost_is_not_used(self) -> None:
        upstream = FakeUpstream()
        self.pool.give_back(cast(Upstream, upstream))
        self.pool.lost(cast(Upstream, upstream))
        self.assertIsNone(self.waiter().got)

    def test_who_leaves_is_not_served(self) -> None:
        one, two = self.waiter(), self.waiter()
        self.pool.forget(one)
        upstream = self.succeed(0)
        self.assertEqual((one.got, two.got), (None, upstream))

    def test_the_end(self) -> None:
        idle, used = FakeUpstream(), FakeUpstream()
        self.pool.give_back(cast(Upstream, idle))
        self.pool.prepare()
        self.waiter()
        waiter = self.waiter()
        self.pool.close()
        self.assertIsInstance(waiter.got, Failure)
        self.pool.give_back(cast(Upstream, used))
        self.assertEqual(used.end, "closed")
