from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError, NotFound, UsageError
from ironcurtain.home.layout import Home
from ironcurtain.operations import Role
from ironcurtain.ssh.key_files import KeyFile, host_key
from tests.audit.doubles import scratch
from tests.ssh.doubles import make_holder


class KeyFilesTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = scratch(self)
        self.home = Home(self.path / "home", self.path / "run")
        self.home.path.mkdir(mode=0o700)
        self.file = KeyFile.of(self.home)
        self.ada, self.bob = make_holder(self.path, "ada").key, make_holder(self.path, "bob").key

    def mode(self, path: Path) -> int:
        return path.stat().st_mode & 0o777


class KeyFileTests(KeyFilesTestCase):
    def test_nobody_at_first(self) -> None:
        self.assertEqual(self.file.read().keys, ())

    def test_add_and_remove(self) -> None:
        self.file.add(self.ada)
        self.file.add(self.bob)
        self.assertEqual(self.file.read().keys, (self.ada, self.bob))
        self.assertEqual((self.mode(self.file.path), self.mode(self.file.path.parent)), (0o600, 0o700))
        KeyFile.of(self.home).remove("ada")
        self.assertEqual(self.file.read().keys, (self.bob,))
        self.assertRaises(NotFound, self.file.remove, "ada")
        self.assertTrue(self.file.path.read_text().startswith("# "))

    def test_a_file_of_another_system_is_read_or_named(self) -> None:
        self.file.add(self.ada)
        text = self.file.path.read_text().replace("\n", "\r\n")
        self.file.path.write_bytes(text.encode("utf-8-sig"))
        self.assertEqual(self.file.read().keys, (self.ada,))
        self.file.path.write_bytes(text.encode("utf-16"))
        self.assertIn("UTF-16", str(self.assertRaises(ConfigurationError, self.file.read)))

    def test_nothing_is_listed_twice(self) -> None:
        self.file.add(self.ada)
        self.file.add(self.ada)
        for key in (replace(self.ada, name="again"), replace(self.bob, name=self.ada.name)):
            self.assertRaises(UsageError, self.file.add, key)
        self.assertEqual(self.file.read().keys, (self.ada,))

    def test_a_listed_key_gets_other_roles_where_it_stands(self) -> None:
        self.file.add(self.ada)
        self.file.add(self.bob)
        self.file.path.write_text(f"{self.file.path.read_text()}# {self.ada.name}\nwrong\n")
        other = replace(self.ada, roles=frozenset({Role.ADMIN}))
        self.file.add(other)
        self.assertEqual(self.file.read().keys, (other, self.bob))
        self.assertTrue(self.file.path.read_text().endswith(f"# {self.ada.name}\nwrong\n"))

    def test_a_key_that_a_wrong_line_would_spoil_is_not_added(self) -> None:
        self.file.add(self.ada)
        text = self.file.path.read_text()
        self.file.path.write_text(text + text.splitlines()[-1] + "\n")
        self.assertEqual(self.file.read().keys, ())
        self.assertRaises(UsageError, self.file.add, self.ada)

    def test_a_last_line_without_an_end(self) -> None:
        self.file.add(self.ada)
        self.file.path.write_text(self.file.path.read_text().rstrip("\n"))
        self.file.add(self.bob)
        self.assertEqual(self.file.read().keys, (self.ada, self.bob))

    def test_what_others_could_have_written_lets_nobody_in(self) -> None:
        self.file.add(self.ada)
        path, directory = self.file.path, self.file.path.parent
        for target, wrong, right in ((path, 0o640, 0o600), (path, 0o602, 0o600), (directory, 0o770, 0o700)):
            target.chmod(wrong)
            self.assertRaises(ConfigurationError, self.file.read)
            target.chmod(right)
            self.assertEqual(self.file.read().keys, (self.ada,))

    def test_no_links_fifos_or_giants(self) -> None:
        self.file.add(self.ada)
        elsewhere = self.path / "elsewhere"
        self.file.path.rename(elsewhere)
        self.file.path.symlink_to(elsewhere)
        self.assertRaises(ConfigurationError, self.file.read)
        self.file.path.unlink()
        os.mkfifo(self.file.path, 0o600)
        self.assertRaises(ConfigurationError, self.file.read)
        self.file.path.unlink()
        self.file.path.write_bytes(b"#" * (1024 * 1024 + 1))
        self.file.path.chmod(0o600)
        self.assertRaises(ConfigurationError, self.file.read)
        self.file.path.write_bytes(b"\xff")
        self.assertRaises(ConfigurationError, self.file.read)


class HostKeyTests(KeyFilesTestCase):
    def test_it_is_made_once(self) -> None:
        first = host_key(self.home)
        self.assertEqual(host_key(self.home), first)
        self.assertEqual(self.mode(self.home.path / "ssh" / "host_key"), 0o600)
        self.assertTrue(first.public.startswith("ssh-ed25519 "))
        self.assertNotIn("PRIVATE", repr(first))

    def test_it_is_never_replaced(self) -> None:
        host_key(self.home)
        path = self.home.path / "ssh" / "host_key"
        path.write_text("damaged")
        self.assertRaises(ConfigurationError, host_key, self.home)
        self.assertEqual(path.read_text(), "damaged")

    def test_only_we_may_read_it(self) -> None:
        host_key(self.home)
        (self.home.path / "ssh" / "host_key").chmod(0o644)
        self.assertRaises(ConfigurationError, host_key, self.home)

    def test_it_is_ed25519(self) -> None:
        host_key(self.home)
        rsa = make_holder(self.path, "old", rsa=True)
        rsa.path.rename(self.home.path / "ssh" / "host_key")
        self.assertRaises(ConfigurationError, host_key, self.home)
