"""A server's form, from the server's request to the person's answer in another terminal."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from tests.cli.cases import ProductCase
from tests.product import wait_until

PROPERTIES = {
    "name": {"type": "string", "minLength": 2},
    "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
    "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
}


class AnswerTests(ProductCase):
    """A server that asks once it is up, and writes the answers that it gets to its log."""

    def setUp(self) -> None:
        super().setUp()
        self.product.home.mkdir(mode=0o700)
        schema = {"type": "object", "properties": PROPERTIES, "required": ["name"]}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        asked = {"message": "Who are you?", "requestedSchema": schema}
        results: tuple[dict[str, Any], ...] = (hello, {"tools": []})
        messages: list[dict[str, Any]] = [
            {"jsonrpc": "2.0", "id": number, "result": result} for number, result in enumerate(results, 1)
        ]
        messages += [{"jsonrpc": "2.0", "id": f"q{n}", "method": "elicitation/create", "params": asked} for n in (1, 2)]
        lines = [json.dumps(message) for message in messages]
        script = f"read -r a; echo '{lines[0]}'; read -r a; read -r b; echo '{lines[1]}'; echo '{lines[2]}'; read -r c"
        script += f"; echo '{lines[3]}'; read -r d"
        script += '; echo "first: $c" >&2; echo "second: $d" >&2; read -r e'
        servers = {"mcpServers": {"far": {"command": "/bin/sh", "args": ["-c", script], "sandbox": "none"}}}
        (self.product.home / "mcp-servers.json").write_text(json.dumps(servers))
        self.process = self.product.start("mcp-proxy", "--workspace", ".")
        self.until_waiting()

    def until_waiting(self) -> None:
        """Wait for a form, without looking at it."""
        wait_until(lambda: any(session["pending"] for session in self.product.sessions()))

    def test_form_is_answered_by_words_and_at_a_terminal(self) -> None:
        unseen = self.product.run("answer", "1", "name=Ada")
        self.assertEqual(unseen.returncode, 1)
        self.assertIn("was not shown to you completely", unseen.stderr)
        listed = self.product.run("escalations").stdout
        self.assertIn("1  far.elicitation/create", listed)
        self.assertIn("   1. name: text, at least 2 characters, required\n", listed)
        wrong = self.product.run("answer", "1", "name=A", "color=blue")
        self.assertEqual(wrong.returncode, 64)
        self.assertIn("name: it has 1 character:", wrong.stderr)
        self.assertIn("color: write one of: red, green", wrong.stderr)
        self.assertEqual(self.product.run("answer", "1").returncode, 64)
        self.assertIn("1 is a form", self.product.run("approve", "1").stderr)
        done = self.product.run("answer", "1", "--json", "-", stdin='{"name": "Ada", "tags": ["b"]}')
        self.assertEqual((done.returncode, done.stdout), (0, "Answered: far.elicitation/create in session 1.\n"))
        self.until_waiting()
        shown = self.at_a_terminal("answer", "2", typed=("A", "Bob", "2", "/back", "green", ""))
        self.assertIn("1 of 3: name", shown)
        self.assertIn("color = green", shown)
        self.assertIn("Answered: far.elicitation/create in session 1.", shown)
        log = self.product.run("logs", "1").stdout
        for part in ('"name":"Ada"', '"tags":["b"]', '"color":"red"', '"name":"Bob"', '"color":"green"'):
            self.assertIn(part, log.replace(": ", ":").replace("\\", ""))
        records = json.dumps([record for record in self.product.audit() if record["kind"] != "session"])
        self.assertNotIn("Ada", records)
        self.process.communicate()

    def at_a_terminal(self, *words: str, typed: tuple[str, ...]) -> str:
        """:returns: what a command shows at a terminal where these lines are typed, and then its question confirmed."""
        ours, theirs = os.openpty()
        environ = {**self.product.environ, "TERM": "xterm", "LINES": "50", "COLUMNS": "100"}
        process = subprocess.Popen(
            self.product.command(*words),
            env=environ,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        shown = b""
        answers = [*(line.encode() + b"\n" for line in typed), b"y\n"]
        marks = [b" of 3: "] * len(typed) + [b"[y/n]: "]
        try:
            for mark, answer in zip(marks, answers, strict=True):
                seen = len(shown)
                while mark not in shown[seen:]:
                    shown += os.read(ours, 65536)
                os.write(ours, answer)
            while data := os.read(ours, 65536):
                shown += data
        except OSError:  # the other side is closed
            pass
        os.close(ours)
        self.assertEqual(process.wait(), 0, shown)
        return shown.decode()
