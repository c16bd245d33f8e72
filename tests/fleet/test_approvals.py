"""Two approvals of people at several hosts."""

from __future__ import annotations

from typing import Any

from ironcurtain.errors import NotAllowed, StaleDecision
from ironcurtain.escalation import Outcome
from ironcurtain.fleet.trust import parse_trust
from ironcurtain.operations import LOCAL_ROLES, Principal
from ironcurtain.operations.operations import Operations
from tests.fleet.test_trust import KEY, OTHER
from tests.operations import test_operations

TRUST = f"""
version = 1
[hosts.laptop]
key = "{KEY}"
people = {{ "local:ada" = ["view", "approve"], "local:bob" = ["view", "approve"] }}
[hosts.tower]
key = "{OTHER}"
people = {{ "local:ada" = ["view", "approve"], "local:cleo" = ["view", "approve"], "local:eve" = ["view"] }}
[people]
ada = ["local:ada", "local:ada@laptop", "local:ada@tower"]
"""


class TwoHostsTests(test_operations.OperationsTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.trust = parse_trust("fleet.trust", TRUST)
        self.operations = Operations(self.world.manager, once=self.trust.once)
        self.number = self.ask(approvals=2)

    def approve(self, who: Principal) -> Any:
        (seen,) = self.operations.escalations(who)
        return self.operations.decide(who, self.number, Outcome.APPROVED, seen.digest)

    def at(self, host: str, name: str) -> Principal:
        """:returns: a person of a host, whatever roles that host claims for them."""
        return self.trust.hosts[host].principal(name, LOCAL_ROLES)

    def test_one_person_counts_once_from_whichever_hosts(self) -> None:
        self.approve(self.at("laptop", "local:ada"))
        for who in (self.at("tower", "local:ada"), Principal("local:ada", LOCAL_ROLES), self.at("laptop", "local:ada")):
            self.assertRaises(StaleDecision, self.approve, who)
        decided = self.approve(self.at("tower", "local:cleo"))
        self.assertEqual((decided.outcome, decided.by), ("approved", "local:ada@laptop and local:cleo@tower"))

    def test_host_counts_once_for_whichever_people(self) -> None:
        self.approve(self.at("laptop", "local:ada"))
        with self.assertRaisesRegex(StaleDecision, "one host counts once: another person must"):
            self.approve(self.at("laptop", "local:bob"))
        decided = self.approve(Principal("local:bob", LOCAL_ROLES))
        self.assertEqual(decided.by, "local:ada@laptop and local:bob")

    def test_people_of_this_host_count_each(self) -> None:
        self.approve(Principal("local:bob", LOCAL_ROLES))
        self.assertEqual(self.approve(Principal("phone@home", LOCAL_ROLES)).outcome, "approved")

    def test_host_speaks_for_nobody_else(self) -> None:
        self.approve(self.at("laptop", "local:ada"))
        with self.assertRaisesRegex(NotAllowed, "may not speak for local:bob"):
            self.at("tower", "local:bob")
        for name in ("local:bob@laptop", "local:ada@laptop", "*", ""):
            self.assertRaises(NotAllowed, self.at, "tower", name)
        self.assertRaises(NotAllowed, self.approve, self.at("tower", "local:eve"))
        (waiting,) = self.operations.escalations(Principal("local:ada", LOCAL_ROLES))
        self.assertEqual((waiting.outcome, waiting.approved_by), ("", ("local:ada@laptop",)))
