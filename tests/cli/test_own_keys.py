"""``ironcurtain init`` and the person's own SSH keys, in a real terminal and without one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.own_keys import HOW
from tests.product import Product
from tests.ssh.doubles import Holder, make_holder
from tests.tmux import Tmux

QUESTION = r"in over SSH, with all roles \(view, approve, attach, admin\)\? \[Y/n\]: *$"


class OwnKeysTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.product = Product()
        self.addCleanup(lambda: self.assertEqual(self.product.close(), []))
        self.directory = self.product.person / ".ssh"
        self.directory.mkdir(mode=0o700)
        self.list = self.product.home / "ssh" / "authorized_keys"

    def key(self, name: str, comment: str = "") -> Holder:
        """:returns: a key of the person's, in a file of this name."""
        holder = make_holder(self.directory, name)
        public = Path(f"{holder.path}.pub")
        public.write_text(public.read_text().replace(f" {name}\n", f" {comment or name}\n"))
        return holder

    def keys(self) -> list[tuple[str, list[str], str]]:
        """:returns: name, roles and fingerprint of those that may come in."""
        listed = self.product.json("ssh", "keys")["keys"]
        return [(key["name"], key["roles"], key["fingerprint"]) for key in listed]

    def begin(self) -> Tmux:
        """:returns: a terminal in which ``init`` runs."""
        terminal = Tmux(self.product, 160, 40)
        self.addCleanup(terminal.close)
        terminal.type(f"clear; {self.product.command()[0]} init; echo st''atus $?")
        return terminal

    def test_whoever_presses_enter_comes_in(self) -> None:
        holder = self.key("id_ed25519", "ada@laptop")
        terminal = self.begin()
        shown = terminal.wait(QUESTION)
        self.assertIn("Permit this key of yours to log in", shown)
        self.assertRegex(shown, rf"ada@laptop +ssh-ed25519 +{holder.key.fingerprint.replace('+', '[+]')}")
        self.assertFalse(self.list.exists())
        terminal.keys("Enter")
        shown = terminal.wait("^status 0$")
        self.assertIn(f"ada@laptop may log in (view, approve, attach, admin): {holder.key.fingerprint}", shown)
        self.assertNotIn(HOW, shown)
        self.assertEqual(self.keys(), [("ada@laptop", ["view", "approve", "attach", "admin"], holder.key.fingerprint)])
        terminal.type(f"clear; {self.product.command()[0]} init; echo ag''ain $?")
        self.assertNotIn("SSH", terminal.wait("^again 0$"))

    def test_whoever_says_no_is_told_how(self) -> None:
        self.key("id_ed25519")
        terminal = self.begin()
        terminal.wait(QUESTION)
        terminal.type("n")
        self.assertIn(HOW, terminal.wait("^status 0$"))
        self.assertEqual(self.keys(), [])

    def test_an_interrupted_question_adds_nothing(self) -> None:
        self.key("id_ed25519")
        for key in ("C-c", "C-d"):
            terminal = self.begin()
            terminal.wait(QUESTION)
            terminal.keys(key)
            terminal.wait("^status 130$")
            self.assertTrue((self.product.home / "mcp-servers.json").exists())
            self.assertFalse(self.list.exists())

    def test_what_cannot_be_listed_is_left_out_with_a_word(self) -> None:
        first, other = self.key("id_ed25519", "ada@laptop"), self.key("z")
        self.key("a", "ada@laptop")
        self.key("spaces", "Ada on the laptop")
        (self.directory / "copy.pub").write_text(Path(f"{other.path}.pub").read_text())
        (self.directory / "id_ed25519-cert.pub").write_text("ssh-ed25519-cert-v01@openssh.com AAAA ada\n")
        (self.directory / "old.pub").write_text("ssh-dss AAAA ada\n")
        (self.directory / "two.pub").write_text(Path(f"{other.path}.pub").read_text() * 2)
        (self.directory / "bytes.pub").write_bytes(b"\xff\xfe")
        (self.directory / "nowhere.pub").symlink_to("nothing")
        os.mkfifo(self.directory / "pipe.pub")
        terminal = self.begin()
        shown = terminal.wait(QUESTION)
        for line in (
            "a.pub: another key has the name ada@laptop; use --name of ironcurtain ssh add-key",
            "spaces.pub: needs a name at its end",
            "id_ed25519-cert.pub: is a certificate",
            "old.pub: needs a type and a key",
            "two.pub: the file must contain one public key on one line",
            "bytes.pub: is encoded in UTF-16; save it as UTF-8",
            "nowhere.pub: is not a regular file",
            "pipe.pub: is not a regular file",
        ):
            self.assertIn(f"left out {line}", shown)
        self.assertIn("Permit these keys of yours to log in", shown)
        terminal.type("y")
        terminal.wait("^status 0$")
        self.assertEqual([key[2] for key in self.keys()], [first.key.fingerprint, other.key.fingerprint])

    def test_without_a_terminal_nothing_is_asked(self) -> None:
        self.key("id_ed25519")
        done: subprocess.CompletedProcess[str] = self.product.run("init", stdin="y\n")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.splitlines()[-2:], [HOW, "Next: ironcurtain doctor"])
        self.assertFalse(self.list.exists())

    def test_without_keys_one_line_says_how(self) -> None:
        terminal = self.begin()
        self.assertIn(HOW, terminal.wait("^status 0$"))
