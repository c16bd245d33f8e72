"""Tests for what members say of themselves."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.signing import SigningKey
from ironcurtain.errors import ProtocolViolation
from ironcurtain.fleet.members import LEASE, Member, Members, sign, verify
from ironcurtain.fleet.service import Abilities, OwnState
from ironcurtain.fleet.trust import Host, Trust
from ironcurtain.home.fleet_section import FleetSettings
from ironcurtain.home.layout import Home
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.process.identity import identify
from ironcurtain.session.model import SessionRequest
from tests.audit.doubles import scratch


def member(host: Any = "build", start: Any = 1, number: Any = 1, **more: Any) -> Any:
    return Member(host=host, start=start, number=number, **more)


class StatementTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.keys = {name: SigningKey.load_or_make(scratch(self)) for name in ("build", "other")}
        self.trust = Trust({name: Host(name, key.public.raw, {}) for name, key in self.keys.items()})

    def test_a_host_is_believed_about_itself(self) -> None:
        said = member(load=0.5, labels=("gpu",), sessions=3)
        self.assertEqual(verify(sign(said, self.keys["build"]), self.trust), said)

    def test_nothing_else_is_believed(self) -> None:
        good = json.loads(sign(member(), self.keys["build"]))
        changed = good["said"].replace('"number":1', '"number":9')
        head = self.keys["build"].sign("session", 1, "digest", "time")  # another thing that this key signs
        for wrong in (
            sign(member(host="other"), self.keys["build"]),
            sign(member(host="unknown"), self.keys["build"]),
            json.dumps({**good, "said": changed}).encode(),
            json.dumps({**good, "signature": head.signature}).encode(),
            json.dumps({**good, "signature": base64.b64encode(bytes(64)).decode()}).encode(),
            json.dumps({**good, "signature": "?"}).encode(),
            json.dumps({**good, "said": "\ud800"}).encode(),
            b"[" * 4000,
            sign(member(labels=("x" * 5000,)), self.keys["build"]),
            sign(member(free_memory=10**400), self.keys["build"]),
            sign(member(sessions=-3), self.keys["build"]),
            sign(member(load=1e300), self.keys["build"]),
        ):
            self.assertRaises(ProtocolViolation, verify, wrong, self.trust)

    @given(st.binary(max_size=300))
    def test_garbage_is_refused(self, data: Any) -> None:
        self.assertRaises(ProtocolViolation, verify, data, Trust())


class MembersTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        self.members = Members(self.clock.seconds)

    def test_an_old_statement_is_left_out(self) -> None:
        for start, number, new in (
            (2, 5, True),
            (2, 5, False),
            (2, 4, False),
            (1, 99, False),
            (2, 6, True),
            (3, 1, True),
        ):
            self.assertEqual(self.members.heard(member(start=start, number=number)), new, (start, number))

    def test_a_host_is_lost_when_its_lease_is_over(self) -> None:
        self.members.heard(member())
        self.clock.advance(LEASE)
        self.assertEqual(self.members.here(), ["build"])
        self.clock.advance(1)
        self.assertEqual(self.members.here(), [])
        self.assertFalse(self.members.heard(member()))  # the old one does not bring it back
        self.assertTrue(self.members.heard(member(number=2)))
        self.assertEqual(self.members.here(), ["build"])

    def test_a_host_that_has_left_is_not_here(self) -> None:
        self.members.heard(member())
        self.members.left("build")
        self.members.left("unknown")
        self.assertEqual(self.members.here(), [])
        self.assertFalse(self.members.heard(member()))

    def test_a_host_that_is_not_trusted_any_more_is_forgotten(self) -> None:
        self.members.heard(member())
        self.members.heard(member("other"))
        self.members.keep(["other"])
        self.assertEqual([seen.member.host for seen in self.members.all()], ["other"])


async def no_check(request: SessionRequest) -> None:
    """Everything fits."""


class OwnStateTests(SynchronousTestCase):
    def test_others_ask_for_the_list_only_after_it_has_changed(self) -> None:
        path = scratch(self)
        home, key = Home(path, path / "run"), SigningKey.load_or_make(scratch(self))
        home.registry.mkdir(mode=0o700)
        trust = Trust({"build": Host("build", key.public.raw, {})})
        able = Abilities(("builtin",), lambda: ("claude",), no_check)
        own = OwnState(home, "build", key, FleetSettings(), able)
        first, second = (verify(own.statement(now), trust) for now in (0.0, 30.0))
        self.assertEqual((first.agents, first.accounts), (("builtin",), ("claude",)))
        self.assertLess(first.order, second.order)
        self.assertEqual(first.list, second.list)
        here = identify()
        SessionRegistry(home.registry).add(
            SessionEntry(
                session_id="0a-1", escalation_dir="", label="", started_at="", pid=here.pid, number=1,
                pid_start_time=here.start_time, boot_id=here.boot_id,
            )
        )  # fmt: skip
        self.assertTrue(own.due(31.0))
        self.assertNotEqual(verify(own.statement(31.0), trust).list, second.list)
        again = OwnState(home, "build", key, FleetSettings(), able)
        self.assertNotEqual(verify(again.statement(0.0), trust).list, first.list)
