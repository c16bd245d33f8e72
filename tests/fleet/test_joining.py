"""Tests for the files with which a fleet is set up."""

from __future__ import annotations

import stat

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.fleet.joining import ServerFiles
from tests.audit.doubles import scratch

FIRST = ("laptop", "key")


class ServerFilesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.files = ServerFiles(scratch(self) / "fleet")
        self.files.make("127.0.0.1:4222", ("127.0.0.1",))

    def test_each_host_has_a_password_of_its_own_that_the_server_knows(self) -> None:
        made = [self.files.add(host, FIRST) for host in ("laptop", "build-3")]
        text = self.files.configuration.read_text()
        self.assertEqual(len({each.password for each in made}), 2)
        for each in made:
            self.assertIn(each.password, text)
            self.assertNotIn(each.password, repr(each))
        for path in self.files.directory.iterdir():
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)

    def test_a_host_that_is_removed_has_no_password_and_the_others_keep_theirs(self) -> None:
        kept, removed = (self.files.add(host, FIRST).password for host in ("laptop", "build-3"))
        self.files.remove("build-3")
        text = self.files.configuration.read_text()
        self.assertIn(kept, text)
        self.assertNotIn(removed, text)
        self.assertNotIn("build-3", text)
        self.assertNotEqual(self.files.add("build-3", FIRST).password, removed)

    def test_what_makes_no_sense_changes_nothing(self) -> None:
        self.files.add("laptop", FIRST)
        before = self.files.configuration.read_bytes()
        for wrong in (
            lambda: self.files.add("laptop", FIRST),
            lambda: self.files.add("Lap.Top", FIRST),
            lambda: self.files.remove("build-3"),
            lambda: self.files.make("0.0.0.0:1", ()),
        ):
            self.assertRaises(UsageError, wrong)
        self.assertEqual(self.files.configuration.read_bytes(), before)

    def test_a_host_without_a_server_says_so(self) -> None:
        other = ServerFiles(scratch(self) / "fleet")
        for wrong in (lambda: other.add("laptop", FIRST), lambda: other.remove("laptop")):
            self.assertIn("fleet init", str(self.assertRaises(UsageError, wrong)))
