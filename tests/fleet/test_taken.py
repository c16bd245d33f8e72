"""Tests for what runs here for other hosts: they learn how it is, and what they gave up is ended."""

from __future__ import annotations

from typing import Any

import msgspec
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.fleet.members import INTERVAL, LEASE, Member, Members
from ironcurtain.fleet.taken import CUT_OFF_SECONDS, Keeper, Taken, TakenFiles
from ironcurtain.fleet.tasks import Over, Started
from ironcurtain.home.layout import Home
from tests.audit.doubles import scratch

ID = "0123456789abcdef"


class KeeperTests(SynchronousTestCase):
    def setUp(self) -> None:
        place = scratch(self)
        self.home = Home(place, place / "run")
        self.files, self.reactor = TakenFiles(self.home), MemoryReactorClock()
        self.keeper = Keeper(self.reactor, self.home)

    def run_one(self, **more: Any) -> None:
        self.keeper.begin(Taken(**{"id": ID, "origin": "laptop", "started": Started(), **more}))
        self.keeper.tell(ID, session=7)

    def kept(self) -> Started:
        (taken,) = self.files.all()
        return taken.started

    def stopped(self) -> list[bytes]:
        """:returns: the requests to this host's own daemon."""
        found = []
        for path, factory, *_ in self.reactor.unixClients:
            self.assertEqual(path, str(self.home.daemon_socket))
            found.append(factory)
        return found

    def test_host_that_is_cut_off_ends_what_may_be_started_elsewhere(self) -> None:
        for restart, ends in ((False, 0), (True, 1)):
            self.run_one(restart=restart)
            self.keeper.look(CUT_OFF_SECONDS)
            self.assertEqual(len(self.stopped()), 0)
            self.keeper.look(CUT_OFF_SECONDS + 0.1)
            self.assertEqual(len(self.stopped()), ends)
            self.assertEqual(self.kept().over, Over.LOST if ends else Over.NOT_YET)
            self.keeper.look(CUT_OFF_SECONDS + 9.0)
            self.assertEqual(len(self.stopped()), ends)

    def test_it_ends_before_the_others_can_count_this_host_as_lost(self) -> None:
        clock = Clock()
        members = Members(clock.seconds)
        members.keep(["build"])
        members.heard(Member(host="build", start=1, number=1))
        clock.advance(CUT_OFF_SECONDS + 10.0)  # and as long as a session may take to end
        self.assertFalse(members.silent("build", -1e9))
        clock.advance(LEASE - CUT_OFF_SECONDS)
        self.assertTrue(members.silent("build", -1e9))
        self.assertGreater(CUT_OFF_SECONDS, INTERVAL + 5.0)  # one statement may be lost

    def test_next_daemon_says_that_sessions_of_the_one_before_are_lost(self) -> None:
        self.run_one(restart=True)
        again = Keeper(self.reactor, self.home)
        self.assertEqual(again.known(ID), Started(session=7, over=Over.LOST))
        self.keeper.tell(ID, over=Over.ENDED)
        self.assertEqual(Keeper(self.reactor, self.home).known(ID), Started(session=7, over=Over.ENDED))

    def test_what_a_session_was_is_not_changed_afterwards(self) -> None:
        self.run_one()
        self.keeper.tell(ID, over=Over.LOST)
        self.keeper.tell(ID, over=Over.ENDED)
        self.assertEqual(self.kept().over, Over.LOST)

    def test_damaged_file_is_left_out(self) -> None:
        self.run_one()
        (self.home.path / "fleet-taken" / "x.json").write_bytes(b"{")
        self.assertEqual(len(self.files.all()), 1)
        self.assertEqual(msgspec.json.decode((self.home.path / "fleet-taken" / f"{ID}.json").read_bytes())["id"], ID)


class SilenceTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.members = Members(self.clock.seconds)
        self.members.keep(["build"])

    def test_host_that_others_call_lost_is_not_silent(self) -> None:
        self.members.heard(Member(host="build", start=1, number=1))
        self.members.left("build")  # as whoever has the server can make it look
        self.assertEqual(self.members.here(), [])
        self.assertFalse(self.members.silent("build", -1e9))
        self.clock.advance(LEASE + 0.1)
        self.assertTrue(self.members.silent("build", -1e9))

    def test_nothing_is_known_of_a_host_that_is_not_trusted_any_more(self) -> None:
        self.members.heard(Member(host="build", start=1, number=1))
        self.members.keep([])
        self.clock.advance(LEASE * 10)
        self.assertFalse(self.members.silent("build", -1e9))

    def test_silence_counts_while_this_host_listens_only(self) -> None:
        self.clock.advance(1000.0)
        self.assertFalse(self.members.silent("build", since=1000.0))
        self.clock.advance(LEASE + 0.1)
        self.assertTrue(self.members.silent("build", since=1000.0))
