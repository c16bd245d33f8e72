"""``ironcurtain mcp add`` and its like, as a person uses them, with a server of our own."""

from __future__ import annotations

import contextlib
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cli.cases import ProductCase
from tests.machine import demand_sandbox, python_inside
from tests.mcp_proxy.support import FAKE_SERVER
from tests.product import LIMIT

SECRET = "sk-live-8fQ2mVx71LbTz0Rk"
WORDS = "river lamp orange quiet stone"
TEXT = {"type": "string"}
SCHEMAS = {
    "read_note": {"type": "object", "properties": {"path": TEXT, "tone": TEXT}},
    "push": {"type": "object", "properties": {"files": {"type": "array", "items": {"properties": {"path": TEXT}}}}},
    "odd": {"type": "object", "properties": {"ur\u0301l": {**TEXT, "format": "uri"}}},
    "evil\x1b[2J": {"type": "object", "properties": {"u\x1b[31m": TEXT}},
}
SERVER = (python_inside()[0], "-S", str(FAKE_SERVER))


def descendants(pid: int) -> Iterator[str]:
    """:returns: the command lines of all processes that a process has started, directly or not."""
    with contextlib.suppress(OSError):
        for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            yield Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
            yield from descendants(child)


class AddTests(ProductCase):
    """Adding, listing, testing, removing."""

    def setUp(self) -> None:
        super().setUp()
        demand_sandbox()
        self.product.environ |= {"TOOLS": ",".join(SCHEMAS), "DEFINITIONS": json.dumps(SCHEMAS)}
        self.servers, self.policy = (self.product.home / name for name in ("mcp-servers.json", "policy.toml"))
        self.pins = self.product.home / "tool-definitions" / "notes.json"

    def add(self, *words: str, command: tuple[str, ...] = SERVER) -> Any:
        """:returns: what ``mcp add`` did."""
        return self.product.run("mcp", "add", *words, "--env", "TOOLS", "--env", "DEFINITIONS", "--", *command)

    def test_server_is_tried_shown_and_written(self) -> None:
        self.product.home.mkdir(mode=0o700)
        self.servers.write_text('{\n  // mine\n  "mcpServers": {\n    "old": {"command": "x"}, // keep\n  }\n}\n')
        done = self.add("notes", "--yes")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("notes starts, and has 3 tools: 2 drafted, 1 without a draft", done.stdout)
        self.assertIn("MCP server notes: evil", done.stdout)
        self.assertIn("withheld", done.stdout)
        self.assertIn(
            "read_note  drafted: path is a path: read (its name says so; read_note reads); tone: neither path nor",
            done.stdout,
        )
        self.assertIn("push  you are asked about each call, since files has path inside", done.stdout)
        text = self.servers.read_text()
        for kept in ("// mine", '"old": {"command": "x"}', "// keep", '"TOOLS": "${TOOLS}"'):
            self.assertIn(kept, text)
        self.assertEqual(self.servers.stat().st_mode & 0o777, 0o600)
        self.assertEqual(list(self.product.home.glob("sessions/*")), [])
        self.assertEqual(self.product.run("policy", "check").returncode, 0)
        explained = self.product.run("policy", "explain", "notes.read_note", '{"path": "a", "tone": "b"}')
        self.assertIn("escalate by ask-notes", explained.stdout)
        listed = {row["server"]: row for row in self.product.json("mcp", "list")}
        self.assertEqual(listed["notes"]["state"], "2 of 3 tools judged by rules, the others ask")
        findings = json.loads(self.product.run("doctor", "--json").stdout)
        [found, _] = [each for each in findings if each["what"] == "tools of notes"]
        self.assertEqual(found["detail"], "2 of 3 tools judged by rules, the others ask")
        self.assertIn("ironcurtain mcp annotate notes", found["mend"])
        tested = self.product.json("mcp", "test", "notes")
        self.assertEqual((len(tested["known"]), tested["asks"], len(tested["withheld"])), (2, ["push"], 1))
        again = self.add("notes", "--yes")
        self.assertEqual((again.returncode, self.servers.read_text()), (64, text))
        self.assertIn("ironcurtain mcp remove notes", again.stderr)
        policy = self.policy.read_text()
        self.assertIn("There is nothing to write.", self.product.run("mcp", "annotate", "notes").stdout)
        self.assertEqual(self.product.run("mcp", "remove", "notes").returncode, 0)
        self.assertNotIn("notes", self.servers.read_text())
        self.assertFalse(self.pins.exists())
        self.assertEqual(self.policy.read_text(), policy)
        self.assertEqual(self.product.run("mcp", "remove", "notes").returncode, 69)

    def test_what_of_its_lists_is_left_out_is_said(self) -> None:
        deep: dict[str, Any] = TEXT
        for _ in range(300):
            deep = {"type": "object", "properties": {"a": deep}}
        self.product.environ |= {"TOOLS": "read_note,deep", "DEFINITIONS": json.dumps({**SCHEMAS, "deep": deep})}
        left_out = "tool deep: nested too deeply; left out"
        added = self.add("notes", "--yes")
        self.assertIn("notes starts, and has 1 tool", added.stdout)
        self.assertIn(f"MCP server notes: {left_out}", added.stdout)
        self.assertEqual(self.product.json("mcp", "test", "notes")["faults"], [left_out])

    def test_nothing_is_written_without_agreement(self) -> None:
        done = self.add("notes")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--yes agrees", done.stderr)
        broken = self.add("notes", "--yes", command=(python_inside()[0], "-c", "raise SystemExit('no key')"))
        self.assertEqual(broken.returncode, 69)
        self.assertIn("no key", broken.stdout)
        self.assertIn("--anyway", broken.stderr)
        for path in (self.servers, self.policy, self.pins):
            self.assertFalse(path.exists(), path)

    def test_server_that_is_down_is_added_if_asked(self) -> None:
        done = self.add("My Notes", "--yes", "--anyway", command=("no-such-program",))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("My Notes is called My-Notes here", done.stdout)
        self.assertIn("My-Notes", json.loads(self.servers.read_text())["mcpServers"])
        self.assertEqual(self.product.run("mcp", "test", "My-Notes").returncode, 69)
        self.assertEqual(self.product.run("mcp", "remove", "My Notes").returncode, 0)

    def test_wrong_field_is_named_without_the_file_of_the_trial(self) -> None:
        done = self.product.run("mcp", "add", "wiki", "--yes", "--url", "ftp://a.test/mcp")
        self.assertEqual(done.returncode, 69)
        self.assertIn("MCP server wiki did not start: mcpServers.wiki.url: must look like", done.stdout)

    def test_interrupt_writes_nothing(self) -> None:
        process = self.product.start("mcp", "add", "notes", "--yes", "--", "sleep", "600")
        while not any(" 600" in line for line in descendants(process.pid)):
            self.assertIsNone(process.poll())
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=LIMIT)
        self.assertEqual(process.returncode, 130)
        self.assertFalse(self.servers.exists() or self.pins.exists())
        self.assertEqual(list(self.product.home.glob("sessions/*")), [])

    def test_file_of_another_client(self) -> None:
        env = {"TOOLS": self.product.environ["TOOLS"], "DEFINITIONS": json.dumps(SCHEMAS)}
        touched = self.product.person / "touched"
        entries = {
            "my notes": {"command": SERVER[0], "args": list(SERVER[1:]), "env": {**env, "API_TOKEN": SECRET}},
            "off": {"command": "x", "disabled": "true", "env": {"OTHER_TOKEN": SECRET[::-1], "SEED": WORDS}},
            "bad": {"command": "no-such-program", "sandbox": "none", "env_command": {"A": f"touch {touched}"}},
            "ironcurtain": {"command": "ironcurtain", "args": ["mcp-proxy"]},
            "words": "npx -y words",
            "inside": {"type": "builtin"},
        }
        Path(self.product.project, ".mcp.json").write_text(json.dumps({"mcpServers": entries}))
        self.product.environ["API_TOKEN"] = SECRET
        unasked = self.product.run("mcp", "add", "--from", ".mcp.json")
        self.assertEqual((unasked.returncode, "starts, and has" in unasked.stdout), (1, False))
        self.assertIn('bad is {"command":"no-such-program"}', unasked.stdout)
        done = self.product.run("mcp", "add", "--from", "claude-code", "--yes")
        self.assertEqual(done.returncode, 69, done.stderr)
        said = unasked.stdout + done.stdout + done.stderr
        for secret in (SECRET, SECRET[::-1], WORDS):
            self.assertNotIn(secret, said)
        self.assertFalse(touched.exists() or self.pins.exists())
        self.assertIn("bad: env_command, sandbox are left out", said)
        for name, why in (
            ("ironcurtain", "IronCurtain itself"),
            ("words", "no table"),
            ("inside", "a part of the other"),
        ):
            self.assertIn(f"{name} is left out: it is {why}", said)
        for words in ("off is disabled", "bad was not added", "OTHER_TOKEN"):
            self.assertIn(words, said)
        added = json.loads(self.servers.read_text())["mcpServers"]
        self.assertEqual(list(added), ["filesystem", "my-notes", "off"])
        self.assertEqual(added["my-notes"]["env"]["API_TOKEN"], "${API_TOKEN}")
        self.assertEqual({row["server"]: row["state"] for row in self.product.json("mcp", "list")}["off"], "disabled")
        again = self.product.run("mcp", "add", "--from", ".mcp.json", "off", "--yes")
        self.assertIn("Nothing was added.", again.stdout)

    def test_wrong_usage(self) -> None:
        for words in (
            ("notes",),
            ("notes", "--url", "https://a.test/mcp", "--", "x"),
            ("notes", "--env", f"TOKEN={SECRET}", "--", "x"),
            ("--from", "x.json", "notes", "--", "x"),
            ("network", "--", "x"),
        ):
            done = self.product.run("mcp", "add", *words)
            self.assertEqual(done.returncode, 64, words)
            self.assertNotIn(SECRET, done.stderr)
