"""``ironcurtain ssh`` as people run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.audit.doubles import scratch
from tests.ssh.doubles import make_holder


class SshCommandTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = scratch(self)
        self.environ = {**os.environ, "IRONCURTAIN_HOME": str(self.path / "home")}
        self.file = self.path / "home" / "ssh" / "authorized_keys"

    def run_command(self, *words: str, status: int = 0, given: str = "") -> subprocess.CompletedProcess[str]:
        ironcurtain = str(Path(sys.executable).parent / "ironcurtain")
        done = subprocess.run(
            [ironcurtain, "ssh", *words], env=self.environ, input=given, capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_from_the_first_key_to_the_last(self) -> None:
        ada, bob = make_holder(self.path, "ada"), make_holder(self.path, "bob")
        self.assertIn("No key may log in yet", self.run_command("keys").stdout)
        said = self.run_command("add-key", f"{ada.path}.pub").stdout
        self.assertEqual(said, f"ada may log in (view, approve): {ada.key.fingerprint}\n")
        public = Path(f"{bob.path}.pub").read_text()
        self.run_command("add-key", "-", "--name", "robert", "--roles", "admin", given=public)
        shown = json.loads(self.run_command("keys", "--json").stdout)
        self.assertEqual(
            [(k["name"], k["roles"]) for k in shown["keys"]], [("ada", ["view", "approve"]), ("robert", ["admin"])]
        )
        self.assertEqual(shown["keys"][0]["fingerprint"], ada.key.fingerprint)
        self.assertIn("robert", self.run_command("keys").stdout)
        self.run_command("add-key", f"{ada.path}.pub", "--name", "again", status=64)
        self.run_command("add-key", f"{ada.path}.pub", "--name", "robert", status=64)
        self.assertIn("may no longer log in", self.run_command("remove-key", "ada").stdout)
        self.run_command("remove-key", "ada", status=69)
        self.assertEqual([k["name"] for k in json.loads(self.run_command("keys", "--json").stdout)["keys"]], ["robert"])

    def test_a_known_key_gets_other_roles(self) -> None:
        ada, bob = make_holder(self.path, "ada"), make_holder(self.path, "bob")
        self.run_command("add-key", f"{bob.path}.pub")
        words = ["add-key", f"{ada.path}.pub", "--name", "ada@laptop"]
        self.run_command(*words, "--roles", "admin")
        said = self.run_command("add-key", f"{ada.path}.pub").stdout
        self.assertEqual(said, f"ada@laptop may log in already (admin): {ada.key.fingerprint}\n")
        said = self.run_command(*words, "--roles", "view,attach").stdout
        self.assertEqual(said, f"ada@laptop may log in (view, attach; before: admin): {ada.key.fingerprint}\n")
        listed = json.loads(self.run_command("keys", "--json").stdout)["keys"]
        roles = [(key["name"], key["roles"]) for key in listed]
        self.assertEqual(roles, [("bob", ["view", "approve"]), ("ada@laptop", ["view", "attach"])])

    def test_what_is_no_public_key(self) -> None:
        ada = make_holder(self.path, "ada")
        self.assertIn("private key", self.run_command("add-key", str(ada.path), status=64).stderr)
        self.run_command("add-key", "-", given="", status=64)
        self.run_command("add-key", f"{ada.path}.pub", "--roles", "root", status=64)
        self.run_command("add-key", f"{ada.path}.pub", "--name", "a b", status=64)
        self.assertFalse(self.file.exists())

    def test_a_wrong_line_is_reported(self) -> None:
        ada = make_holder(self.path, "ada")
        self.run_command("add-key", f"{ada.path}.pub")
        self.file.write_text(self.file.read_text() + "restrict ssh-ed25519 AAAA bob\n")
        done = self.run_command("keys", status=78)
        self.assertIn("ada", done.stdout)
        self.assertIn(f"{self.file}:4: the option 'restrict' is not supported", done.stderr)

    def test_the_host_key(self) -> None:
        shown = json.loads(self.run_command("host-key", "--json").stdout)
        lines = self.run_command("host-key").stdout.splitlines()
        self.assertEqual(lines, [shown["fingerprint"], shown["public"]])
