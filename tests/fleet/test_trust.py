"""Tests for whom a host believes."""

from __future__ import annotations

import base64
import os
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError, NotAllowed
from ironcurtain.fleet.trust import parse_trust
from ironcurtain.fleet.trust_file import TrustFile
from ironcurtain.home.layout import Home
from ironcurtain.operations import Role
from tests.audit.doubles import scratch

KEY, OTHER = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))


def file(people: Any = "", key: Any = KEY, more: Any = "", name: Any = "laptop") -> Any:
    return f'version = 1\n[hosts.{name}]\nkey = "{key}"\npeople = {{ {people} }}\n{more}'


class TrustTests(SynchronousTestCase):
    def principal(self, people: Any, person: Any, *claimed: Any) -> Any:
        return parse_trust("fleet.trust", file(people)).hosts["laptop"].principal(person, frozenset(claimed))

    def test_a_person_has_the_roles_that_both_hosts_grant(self) -> None:
        alice = 'alice = ["view", "approve"]'
        for people, claimed, expected in (
            (alice, Role, {"view", "approve"}),
            (alice, [Role.VIEW], {"view"}),
            (alice, [Role.ADMIN], {"view", "approve"}),
            ('alice = ["admin"]', [Role.VIEW], {"view"}),
            ('"*" = ["view"]', Role, {"view"}),
            ('"*" = ["admin"], alice = []', Role, set()),
        ):
            with self.subTest(people):
                who = self.principal(people, "alice", *claimed)
                self.assertEqual((who.name, who.roles), ("alice@laptop", expected))

    def test_a_host_speaks_for_nobody_else(self) -> None:
        for person in ("bob", "*", "", "Alice", "alice ", "alice@laptop"):
            with self.assertRaises(NotAllowed, msg=person):
                self.principal('alice = ["view"]', person, Role.VIEW)

    def test_approvals_of_one_person_and_of_one_host_count_once(self) -> None:
        trust = parse_trust("fleet.trust", file(more='[people]\nalice = ["local:root", "alice@laptop"]\n'))
        for first, second, reason in (
            ("local:root", "alice@laptop", "the same person"),
            ("bob", "bob", "the same person"),
            ("alice@laptop", "bob@laptop", "one host counts once"),
            ("local:root", "bob@laptop", ""),
            ("bob", "carol", ""),
            ("bob@other", "carol@other", ""),  # no host: names of keys here
            ("bob@laptop", "carol@desklaptop", ""),
        ):
            with self.subTest((first, second)):
                for names in ((first, second), (second, first)):
                    said = trust.once(*names)
                    self.assertTrue(reason in said and bool(said) == bool(reason), said)

    def test_a_wrong_file_is_refused_with_the_reason(self) -> None:
        for data, reason in (
            ("", "version"),
            ("version = 2", "version 2"),
            (file(key="AAAA"), "hosts.laptop.key"),
            (file(key="!" * 44), "hosts.laptop.key"),
            (file(name="'Lap Top'"), "lower-case"),
            (file(name="'a.b'"), "lower-case"),
            (file('alice = ["root"]'), "root"),
            (file('alice = "view"'), "array"),
            (file(more=f'[hosts.other]\nkey = "{KEY}"\n'), "same key"),
            (file(name="gnyijstj", more=f'[hosts.etislvlf]\nkey = "{OTHER}"\n'), "would be the same"),
            (file(more='[people]\na = ["x"]\nb = ["x"]\n'), "both a and b"),
            (file(name="h1bf61b36", more=f'[hosts.h25e20b5a]\nkey = "{OTHER}"\n'), "the same: rename"),
            (file(more="[trust]\n"), "trust"),
            ("version = 1\n[hosts" + "[" * 100_000, ""),
        ):
            with self.subTest(data[:60]):
                wrong = self.assertRaises(ConfigurationError, parse_trust, "fleet.trust", data)
                self.assertIn(reason, str(wrong))
                self.assertTrue(str(wrong).startswith("fleet.trust:"), wrong)

    def test_name_that_would_hide_its_host_is_refused(self) -> None:
        anybody = '"*" = ["approve"]'
        self.assertEqual(len(self.principal(anybody, "x" * 93, Role.APPROVE).name), 100)
        self.assertRaises(NotAllowed, self.principal, anybody, "local:ada@tower".ljust(94), Role.APPROVE)


class TrustFileTests(SynchronousTestCase):
    def setUp(self) -> None:
        path = scratch(self)
        self.home = Home(path, path / "run")
        self.trust = TrustFile(self.home)

    def write(self, data: Any, mode: Any = 0o600) -> None:
        made = self.home.fleet_trust.with_suffix(".new")
        made.write_text(data)
        made.chmod(mode)
        os.replace(made, self.home.fleet_trust)

    def test_a_change_counts_at_once(self) -> None:
        self.assertEqual(dict(self.trust().hosts), {})
        self.write(file())
        self.assertEqual(list(self.trust().hosts), ["laptop"])
        self.write(file(key=OTHER))
        self.assertEqual(self.trust().hosts["laptop"].key, bytes([2]) * 32)
        self.home.fleet_trust.unlink()
        self.assertEqual(dict(self.trust().hosts), {})

    def test_hosts_that_were_changed_are_named_once(self) -> None:
        self.write(file())
        self.assertEqual(self.trust.changed(), set())
        for data in (file(key=OTHER), file(key=OTHER, people='alice = ["view"]'), file(name="other"), "version = "):
            self.write(data)
            self.assertEqual(self.trust.changed(), {"other"} if data == "version = " else {"laptop"}, data)
            self.assertEqual(self.trust.changed(), set())
            if data == file(name="other"):
                self.assertEqual(list(self.trust().hosts), ["other"])

    def test_a_wrong_file_or_one_open_to_others_means_that_nobody_is_believed(self) -> None:
        for data, mode in (("version = ", 0o600), (file(), 0o644), (file(), 0o660)):
            self.write(file())
            self.assertTrue(self.trust().hosts)
            self.write(data, mode)
            self.assertEqual(dict(self.trust().hosts), {})
            self.assertEqual(len(self.flushLoggedErrors(ConfigurationError)), 0)
