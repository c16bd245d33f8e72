"""Tests for tasks that wait for a host: who gets one, and that nobody gets it twice."""

from __future__ import annotations

import json
import threading
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.signing import SigningKey
from ironcurtain.errors import IronCurtainError, NotAllowed, NotFound, ProtocolViolation
from ironcurtain.fleet import signed
from ironcurtain.fleet.members import STATEMENT
from ironcurtain.fleet.taking import MEMORY_NEEDED, Room, principal
from ironcurtain.fleet.task_files import KEPT_SECONDS, TaskFiles
from ironcurtain.fleet.tasks import TAKEN_SECONDS, Body, Offer, Over, Started, State, Task, read_offer
from ironcurtain.fleet.trust import Host, Trust
from ironcurtain.home.layout import Home
from ironcurtain.operations import Role
from tests.audit.doubles import scratch

ID = "0123456789abcdef"


def task(**more: Any) -> Task:
    return Task(**{"id": ID, "person": "local:ada", "body": Body(task="Fix it"), "at": 0.0, **more})


def offer(**more: Any) -> Offer:
    return Offer(**{"id": ID, "origin": "laptop", "person": "local:ada", **more})


class TaskTests(SynchronousTestCase):
    def test_the_host_that_takes_a_task_begins_it(self) -> None:
        begun = task().take("build", 10.0).begin("build")
        self.assertEqual(begun.report("build", Started(session=3)).state, State.STARTED)
        self.assertEqual(begun.report("build", Started(why="no room")).state, State.FAILED)

    def test_another_host_waits_until_the_first_has_had_its_time(self) -> None:
        taken = task().take("build", 10.0)
        self.assertRaises(NotAllowed, taken.take, "other", 10.0 + TAKEN_SECONDS)
        again = taken.take("other", 10.1 + TAKEN_SECONDS)
        self.assertEqual(again.begin("other").host, "other")
        self.assertRaises(NotAllowed, again.begin, "build")  # it was killed, or stopped, and comes back late

    def test_a_task_for_one_host_is_given_to_no_other(self) -> None:
        self.assertRaises(NotAllowed, task(on="build").take, "other", 10.0)
        self.assertEqual(task(on="build").take("build", 10.0).host, "build")

    def test_a_clock_that_went_back_locks_no_task(self) -> None:
        self.assertEqual(task().take("build", 1e9).take("other", 10.0).host, "other")

    def test_a_task_that_was_begun_is_never_given_again(self) -> None:
        begun = task().take("build", 10.0).begin("build")
        for state in (begun, begun.report("build", Started(session=3)), task().withdraw()):
            for host in ("build", "other"):
                self.assertRaises(NotFound, state.take, host, 1e9)
                self.assertRaises(NotAllowed, state.begin, host)
        self.assertRaises(NotFound, begun.report, "other", Started(session=1))
        self.assertRaises(NotAllowed, begun.withdraw)

    def test_a_task_that_was_taken_back_is_not_begun(self) -> None:
        taken = task().take("build", 10.0)
        self.assertRaises(NotAllowed, taken.withdraw().begin, "build")

    @given(st.lists(st.tuples(st.sampled_from(("take", "begin", "end", "withdraw")), st.sampled_from("ab"))))
    def test_at_most_one_host_begins_whatever_happens(self, steps: list[tuple[str, str]]) -> None:
        known, now, begun = task(), 0.0, list[str]()
        for what, host in steps:
            now += TAKEN_SECONDS / 2 + 1
            try:
                match what:
                    case "take":
                        known = known.take(host, now)
                    case "begin":
                        known = known.begin(host)
                        begun.append(host)
                    case "end":
                        known = known.report(host, Started(session=1))
                    case "withdraw":
                        known = known.withdraw()
            except IronCurtainError:
                pass
        self.assertLessEqual(len(begun), 1)


class RestartTests(SynchronousTestCase):
    """Tasks that may be started again, of which a host may be lost."""

    def begun(self, **body: Any) -> Task:
        return task(body=Body(task="Fix it", **body)).take("build", 10.0).begin("build")

    def test_task_of_a_lost_host_waits_again_and_begins_once(self) -> None:
        for known in (begun := self.begun(restart=True), begun.report("build", Started(session=3))):
            again = known.lose("build")
            self.assertEqual((again.state, again.host, again.lost), (State.WAITING, "", "build"))
            self.assertRaises(NotAllowed, again.lose, "build")
            second = again.take("other", 20.0).begin("other")
            self.assertRaises(NotAllowed, second.lose, "build")
            self.assertEqual(second.report("other", Started(session=1, attempt=2)).state, State.STARTED)
            self.assertEqual(second.lose("other").state, State.LOST)  # what ends two hosts does not get a third

    def test_host_that_comes_back_learns_that_its_session_was_given_up(self) -> None:
        again = self.begun(restart=True).lose("build")
        late = Started(session=3)
        self.assertRaises(NotFound, again.report, "build", late)
        same = again.take("build", 20.0).begin("build")  # the same host has it again
        self.assertRaises(NotFound, same.report, "build", late)
        self.assertEqual(same.report("build", Started(session=4, attempt=2)).started.session, 4)

    def test_task_whose_host_is_lost_is_not_started_again_unasked(self) -> None:
        lost = self.begun().lose("build")
        self.assertEqual(lost.state, State.LOST)
        self.assertRaises(NotFound, lost.take, "other", 1e9)

    def test_session_that_ended_is_not_started_again(self) -> None:
        ended = self.begun(restart=True).report("build", Started(session=3, over=Over.ENDED))
        self.assertEqual(ended.state, State.ENDED)
        self.assertRaises(NotAllowed, ended.lose, "build")

    @given(st.lists(st.tuples(st.sampled_from(("take", "begin", "lose", "ended")), st.sampled_from("ab"))))
    def test_at_most_two_sessions_begin_and_never_two_at_a_time(self, steps: list[tuple[str, str]]) -> None:
        known, running, begun = task(body=Body(task="x", restart=True)), list[str](), 0
        for number, (what, host) in enumerate(steps):
            try:
                match what:
                    case "take":
                        known = known.take(host, number * TAKEN_SECONDS)
                    case "begin":
                        known = known.begin(host)
                        running.append(host)
                        begun += 1
                    case "lose":
                        known = known.lose(host)
                        running.remove(host)
                    case "ended":
                        known = known.report(host, Started(session=1, attempt=begun, over=Over.ENDED))
                        running.remove(host)
            except IronCurtainError:
                pass
        self.assertLessEqual(begun, 2)
        self.assertLessEqual(len(running), 1)


class RefusedTests(SynchronousTestCase):
    def test_task_that_a_host_lacks_something_for_waits_for_another(self) -> None:
        begun = task().take("build", 10.0).begin("build")
        waits = begun.report("build", Started(why="no key", over=Over.REFUSED))
        self.assertEqual((waits.state, waits.refused, waits.started.why), (State.WAITING, ("build",), "no key"))
        self.assertRaises(NotAllowed, waits.take, "build", 1e9)
        other = waits.take("other", 20.0).begin("other").report("other", Started(session=2))
        self.assertEqual((other.state, other.host), (State.STARTED, "other"))
        self.assertRaises(NotFound, other.report, "build", Started(why="no key", over=Over.REFUSED))


class FileTests(SynchronousTestCase):
    def setUp(self) -> None:
        place = scratch(self)
        home = Home(place, place / "run")
        self.files = TaskFiles(home)

    def test_one_of_many_that_race_for_a_task_begins_it(self) -> None:
        self.files.add(task())
        won: list[str] = []

        def race(host: str) -> None:
            try:
                self.files.change(ID, lambda known: known.take(host, 10.0))
                self.files.change(ID, lambda known: known.begin(host))
                won.append(host)
            except IronCurtainError:
                pass

        racers = [threading.Thread(target=race, args=(f"host-{number}",)) for number in range(8)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        self.assertEqual([each.host for each in self.files.all()], won)
        self.assertEqual(len(won), 1)

    def test_tasks_that_are_over_are_forgotten_after_a_while(self) -> None:
        other = "f" * 16
        self.files.add(task())
        self.files.add(task(id=other, state=State.STARTED))
        running = task(id="e" * 16, state=State.STARTED, body=Body(task="x", restart=True))
        self.files.add(running)  # may still have to be started again
        self.files.forget(KEPT_SECONDS)
        self.assertEqual(len(self.files.all()), 3)
        self.files.forget(KEPT_SECONDS + 1)
        self.assertEqual({each.id for each in self.files.all()}, {ID, running.id})
        self.assertRaises(NotFound, self.files.change, other, Task.withdraw)


class OfferTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.keys = {name: SigningKey.load_or_make(scratch(self)) for name in ("laptop", "other", "stranger")}
        self.trust = Trust({name: Host(name, self.keys[name].public.raw, {}) for name in ("laptop", "other")})

    def test_an_offer_has_nothing_of_the_text(self) -> None:
        message = task(labels=("gpu",)).offer("laptop", self.keys["laptop"])
        self.assertEqual(read_offer(message, self.trust.key_of), offer(labels=("gpu",)))
        self.assertNotIn(b"Fix it", message)

    def test_a_forged_offer_is_refused(self) -> None:
        good = json.loads(task().offer("laptop", self.keys["laptop"]))
        for wrong in (
            task().offer("laptop", self.keys["other"]),
            task().offer("stranger", self.keys["stranger"]),
            signed.sign(STATEMENT, offer(), self.keys["laptop"]),  # another kind of statement
            json.dumps({**good, "said": good["said"].replace("ada", "eve")}).encode(),
            signed.sign(b"ironcurtain-fleet-task-1\n", offer(id="../../etc/passwd"), self.keys["laptop"]),
            b"{}",
        ):
            self.assertRaises(ProtocolViolation, read_offer, wrong, self.trust.key_of)

    def test_only_those_who_may_start_sessions_here_have_tasks_taken(self) -> None:
        for roles, who in (({Role.ADMIN}, "local:ada@laptop"), ({Role.ATTACH, Role.APPROVE}, None)):
            trust = Trust({"laptop": Host("laptop", b"", {"local:ada": frozenset(roles)})})
            found = principal(offer(), trust)
            self.assertEqual(found and found.name, who)
            self.assertIsNone(principal(offer(person="local:eve"), trust))
            self.assertIsNone(principal(offer(origin="other"), trust))


class RoomTests(SynchronousTestCase):
    def test_a_host_takes_what_suits_it_while_it_has_room(self) -> None:
        free: dict[str, Any] = {
            "sessions": 1,
            "memory": MEMORY_NEEDED,
            "agents": ("builtin",),
            "labels": ("gpu", "x"),
            "host": "build",
        }
        for room, asked, suits in (
            ({}, {}, True),
            ({"memory": None}, {}, True),
            ({"sessions": 0}, {}, False),
            ({"memory": MEMORY_NEEDED - 1}, {}, False),
            ({}, {"agent": "builtin", "labels": ("gpu",)}, True),
            ({}, {"agent": "codex"}, False),
            ({}, {"host": "build"}, True),
            ({}, {"host": "other"}, False),
            ({}, {"labels": ("gpu", "arm")}, False),
        ):
            self.assertEqual(Room(**{**free, **room}).suits(offer(**asked)), suits, (room, asked))
