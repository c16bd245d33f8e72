"""Tests for the lines of ``fleet status``."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.fleet import _task_row
from ironcurtain.fleet.lacking import lacking
from ironcurtain.fleet.members import Known, KnownMember, Member
from ironcurtain.fleet.tasks import Body, Over, Started
from tests.fleet.test_tasks import task


class TaskRowTests(SynchronousTestCase):
    def test_state_is_lost_while_the_host_is_and_the_session_is_named(self) -> None:
        begun = task(body=Body(task="Fix it\nthen test", restart=True)).take("build", 1.0).begin("build")
        started = begun.report("build", Started(session=3))
        self.assertEqual(_task_row(started, {"build"})[1:], ("started", "build/3", "", "Fix it"))
        self.assertEqual(_task_row(started, set())[1:3], ("lost", "build/3"))
        again = started.lose("build").take("other", 2.0).begin("other")
        self.assertEqual(_task_row(again, {"other"})[1:3], ("begun again", "other"))
        self.assertEqual(_task_row(again.lose("other"), {"other"})[1], "lost")
        refused = begun.report("build", Started(why="no key", over=Over.REFUSED))
        self.assertEqual(_task_row(refused, {"build"})[1:], ("waiting", "", "", "not on build: no key"))
        ended = started.report("build", Started(session=3, over=Over.ENDED))
        self.assertEqual(_task_row(ended, set())[1], "ended")


class LackingTests(SynchronousTestCase):
    def test_lists_say_whose_sessions_they_lack_and_since_when(self) -> None:
        members = tuple(
            KnownMember(Member(host=host, start=1, number=1, sessions=sessions), 0.0, lost)
            for host, sessions, lost in (("build-3", 2, True), ("tower", 0, True), ("desk", 3, False))
        )
        (said,) = lacking(Known(members, "", 0.0))
        self.assertRegex(said, r"Without 2 sessions of build-3, which is lost: it was heard last at \d\d:\d\d:\d\d\.")
        (said,) = lacking(Known(members, "no \x1b[2J answer", 0.0))
        self.assertRegex(said, r"the fleet's server is not reached since \d\d:\d\d:\d\d: no \S+ answer\.")
        self.assertNotIn("\x1b", said)
        self.assertEqual(lacking(Known(members[1:], "", 0.0)), [])
