"""Which sessions are followed, so that many of other hosts leave descriptors for this one."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.home.registry import SessionEntry
from ironcurtain.operations import home_watch
from ironcurtain.operations.home_watch import OF_A_HOST, OF_OTHERS, followed
from tests.operations.test_home_source import Home, Owner


def entry(host: str, number: int) -> SessionEntry:
    return SessionEntry(
        session_id=f"{number:04x}", escalation_dir="", label="", started_at="", pid=1, number=number, host=host
    )


class FollowedTests(SynchronousTestCase):
    @given(st.dictionaries(st.sampled_from(["", "a", "b", "c", "d", "e", "f"]), st.integers(0, 200)))
    def test_all_of_this_host_and_a_part_of_each_other_one(self, counts: dict[str, int]) -> None:
        entries = [entry(host, number) for host, count in counts.items() for number in range(count)]
        found = Counter(each.host for each in followed(entries))
        self.assertEqual(found[""], counts.get("", 0))
        others = {host: count for host, count in counts.items() if host}
        total = sum(min(count, OF_A_HOST) for count in others.values())
        self.assertEqual(sum(found[host] for host in others), min(total, OF_OTHERS))
        for host, count in others.items():
            share = OF_OTHERS // len(others)
            self.assertGreaterEqual(found[host], min(count, OF_A_HOST, share))

    def test_the_newest_of_a_host_are_followed(self) -> None:
        found = followed([entry("a", number) for number in range(100)])
        self.assertEqual({each.number for each in found}, set(range(100 - OF_A_HOST, 100)))


class WatchTests(TestCase):
    async def test_more_of_a_host_are_looked_at_at_intervals(self) -> None:
        self.patch(home_watch, "OF_A_HOST", 1)
        self.patch(home_watch, "INTERVAL_SECONDS", 0.05)
        here, there = Owner(1), Owner(1)
        home = Home(reactor, here)
        self.addCleanup(home.remove)
        home.add(there, "/run/build-3.sock", host="build-3")  # it takes the id of one here
        other = Owner(2)
        home.add(other, "/run/build-3-other.sock", host="build-3")
        waiting = [Deferred[None]() for _ in range(3)]
        told = iter(waiting)

        def changed() -> None:
            if (next_one := next(told, None)) is not None:
                next_one.callback(None)

        stop = home.source.watch(changed)
        for each in waiting:
            await each
        self.assertEqual((len(here.readers), len(there.readers), len(other.readers)), (1, 0, 1))
        stop()
        self.assertEqual((here.readers, other.readers), ([], []))
