"""Pinned definitions of tools, from the commands as a person uses them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.cli.cases import ProductCase
from tests.cli.test_commands import CommandCase
from tests.mcp_proxy.support import FAKE_SERVER
from tests.mcp_proxy.test_catalogue import tool

DONE = {"text": "All done."}


class ToolsTests(ProductCase):
    """A server whose definitions change from one session to the next."""

    def session(self, description: str) -> str:
        """:returns: what a session tells, whose server describes its tools like this."""
        server = {
            "command": sys.executable,
            "args": ["-S", str(FAKE_SERVER)],
            "env": {"DESCRIPTION": description, "TOOLS": "echo,where"},
            "sandbox": "none",
        }
        self.product.home.mkdir(mode=0o700, exist_ok=True)
        (self.product.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": {"fake": server}}))
        if os.geteuid() == 0:  # the server lies where another account may not be able to go
            self.product.environ["IRONCURTAIN_RUN_AS"] = "root"
        done = self.product.run("start", "--backend", self.product.script(DONE), "go")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def doctor(self) -> dict[str, Any]:
        """:returns: what the doctor finds, by its subject."""
        return {finding["what"]: finding for finding in self.product.json("doctor")}

    def test_a_changed_definition_is_shown_beside_the_old_one_and_accepted(self) -> None:
        self.assertIn("2 tools are new and pinned with the current definition", self.session("good"))
        self.assertNotIn("pinned", self.session("good"))
        self.assertEqual(self.doctor()["tools"]["detail"], "2 definitions pinned")
        self.assertIn(
            "MCP server fake: echo, where are withheld. View the changes with: ironcurtain tools show fake",
            self.session("bad \u202e text"),
        )
        self.assertIn("ironcurtain tools show fake", self.doctor()["tools of fake"]["mend"])
        self.assertEqual(self.product.run("tools").stdout.count("WITHHELD"), 2)
        refused = self.product.run("tools", "accept", "fake")
        self.assertEqual((refused.returncode, refused.stdout), (64, ""))
        self.assertIn("ironcurtain tools show fake prints the digest", refused.stderr)
        shown = self.product.run("tools", "show", "fake").stdout.splitlines()
        self.assertEqual(shown.count('-  "description": "good",'), 2)
        self.assertEqual(shown.count('+  "description": "bad \\u202e text",'), 2)
        command = shown[-1].removeprefix("to accept exactly this: ironcurtain ").split()
        wrong = self.product.run(*command[:-1], "0" * 64)
        self.assertEqual((wrong.returncode, "view them again" in wrong.stderr), (1, True))
        one = self.product.run("tools", "show", "fake", "where").stdout.splitlines()[-1]
        done = self.product.run(*one.removeprefix("to accept exactly this: ironcurtain ").split())
        self.assertEqual((done.returncode, done.stdout), (0, "Accepted: where of fake.\n"))
        self.assertEqual(self.product.run(*command).returncode, 1)  # what waits now is something else
        self.assertIn("fake: echo is withheld", self.session("bad \u202e text"))
        pins = self.product.json("tools")["fake"]
        self.assertEqual((pins["where"]["newDigest"], pins["where"]["acceptedBy"][:6]), (None, "local:"))
        self.assertNotEqual(pins["echo"]["newDigest"], None)
        self.assertRegex(pins["echo"]["since"], r"^20\d\d-\d\d-\d\dT.*Z$")

    def test_a_damaged_file_ends_the_start_with_what_to_do(self) -> None:
        self.session("good")
        path = self.product.home / "tool-definitions" / "fake.json"
        path.write_text("{")
        done = self.product.run("start", "--backend", self.product.script(DONE), "go")
        self.assertEqual(done.returncode, 78)
        self.assertIn(f"{path}: not JSON", done.stderr)
        self.assertIn("remove it", done.stderr)
        doctor = self.product.run("doctor")
        self.assertEqual((doctor.returncode, f"{path}: not JSON" in doctor.stdout), (1, True))


class AcceptTests(CommandCase):
    """In a terminal the person is asked."""

    def setUp(self) -> None:
        super().setUp()
        directory = self.home / "tool-definitions"
        directory.mkdir(mode=0o700, parents=True)
        self.path = directory / "s.json"
        pin = {"definition": tool("t", "good"), "since": 1.0, "waiting": tool("t", "bad")}
        self.path.write_text(json.dumps({"version": 1, "tools": {"t": pin}}))

    def answer(self, answer: bytes, rows: int, ahead: bytes = b"") -> tuple[int, str]:
        """
        :param ahead: is typed before the question.
        :returns: the status of ``tools accept`` in a terminal, and what it wrote.
        """
        ours, theirs = os.openpty()
        os.write(ours, ahead)
        environ = {**os.environ, **self.environ, "LINES": str(rows), "COLUMNS": "100"}
        line = [os.path.join(os.path.dirname(sys.executable), "ironcurtain"), "tools", "accept", "s"]
        with subprocess.Popen(line, env=environ, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            written = b""
            try:
                while data := os.read(ours, 65536):
                    written += data
                    if written.endswith(b"[y/n]: "):
                        os.write(ours, answer)
            except OSError:  # the other side is closed
                pass
            os.close(ours)
            return process.wait(), written.decode()

    def test_yes_accepts_what_was_shown(self) -> None:
        status, written = self.answer(b"y\n", 50)
        self.assertEqual((status, "Accepted: t of s." in written, '"description": "bad"' in written), (0, True, True))
        self.assertNotIn("waiting", json.loads(self.path.read_text())["tools"]["t"])

    def test_what_was_typed_before_the_question_is_no_answer(self) -> None:
        before = self.path.read_text()
        status, written = self.answer(b"n\n", 50, ahead=b"y\ny\ny")
        self.assertIn("Accept? (too early: answer again) [y/n]: n", written)
        self.assertEqual((status, self.path.read_text()), (1, before))

    def test_no_accepts_nothing(self) -> None:
        before = self.path.read_text()
        self.assertEqual(self.answer(b"n\n", 50)[0], 1)
        self.assertEqual(self.path.read_text(), before)

    def test_what_is_longer_than_the_screen_has_to_be_looked_at(self) -> None:
        status, written = self.answer(b"y\n", 5)
        self.assertEqual((status, "ironcurtain tools show s prints the digest" in written), (64, True))

    def test_names_that_do_not_exist(self) -> None:
        for words in (("show", "nobody"), ("show", "s", "nothing"), ("accept", "s", "nothing", "--digest", "0" * 64)):
            self.assertEqual(getattr(self.run_command("tools", *words).exception, "exit_status", 0), 69, words)
