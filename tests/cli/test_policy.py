"""``ironcurtain policy test``, ``replay`` and ``suggest``: in this process, with a home of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ironcurtain.audit.chain import make_line
from ironcurtain.errors import ConfigurationError, NotFound
from tests.cli import test_commands

SCENARIOS = """\
[[scenarios]]
name = "keys stay secret"
server = "filesystem"
tool = "read_text_file"
arguments = { path = "/workspace/link" }
links = { "/workspace/link" = "~/.ssh/id_ed25519" }
expect = "deny"
rule = "structural-protected-path"

[[scenarios]]
name = "the workspace is free"
server = "filesystem"
tool = "write_file"
arguments = { path = "a", content = "x" }
expect = "allow"
"""


class RecordedCase(test_commands.CommandCase):
    """A home with sessions that ended, whose workspaces are gone."""

    def session(self, number: int, *records: dict[str, Any]) -> str:
        """:returns: the workspace of a new session with these records."""
        workspace = f"{self.person}/gone-{number}"
        directory = Path(self.home) / "sessions" / f"id-{number}"
        directory.mkdir(parents=True, mode=0o700)
        (directory / "session.json").write_text(json.dumps({"id": f"id-{number}", "number": number}))
        filled = json.loads(json.dumps([{"kind": "session", "workspace": "$W"}, *records]).replace("$W", workspace))
        lines = [
            make_line(sequence, record.pop("time", "2026-01-01T00:00:00.000Z"), record.pop("kind"), record, "")
            for sequence, record in enumerate(filled, 1)
        ]
        (directory / "audit.jsonl").write_bytes(b"\n".join(lines) + b"\nno record\n")
        return workspace

    def call(self, call_id: str, tool: str, arguments: Any, decision: str, rule: str, **more: Any) -> dict[str, Any]:
        """:returns: the record of a call."""
        server, name = tool.split(".")
        fields = {"server": server, "tool": name, "arguments": arguments, "decision": decision, "rule": rule}
        return {"kind": "call", "callId": call_id, **fields, "reason": "", **more}


class ReplayTests(RecordedCase):
    """``ironcurtain policy replay``"""

    def setUp(self) -> None:
        super().setUp()
        fetch = self.call(
            "a", "fetch.fetch", {"url": "https://example.org/", "raw": "\x1b"}, "escalate", "fetch-elsewhere"
        )
        write = self.call("b", "filesystem.write_file", {"path": "$W/a", "content": "x"}, "allow", "structural")
        self.session(1, fetch, write, fetch)
        self.session(2, self.call("c", "fetch.fetch", {"url": "[redacted]"}, "escalate", "fetch-elsewhere"))
        self.policy = Path(self.person) / "changed.toml"
        self.policy.write_text('[[rules]]\nname = "no-web"\nif = { server = ["fetch"] }\nthen = "deny"\n')

    def test_nothing_differs(self) -> None:
        result = self.run_command("policy", "replay", "1")
        self.assertEqual((result.exit_code, result.output), (0, "3 judged again: none would be decided differently\n"))

    def test_differences_are_grouped_and_are_status_1(self) -> None:
        result = self.run_command("policy", "replay", "--policy", str(self.policy))
        self.assertEqual(result.exit_code, 1)
        self.assertRegex(result.output, r"2 +fetch.fetch +escalate by fetch-elsewhere +deny by no-web +1 +{.url")
        self.assertIn("1 undecided: the records do not contain all of the arguments", result.output)
        self.assertIn("3 judged again: 2 would be decided differently", result.output)
        self.assertNotIn("\x1b", result.output)

    def test_json(self) -> None:
        found = self.json("policy", "replay", "--policy", str(self.policy))
        self.assertEqual(found["changed"][0]["calls"], 2)
        self.assertEqual(found["changed"][0]["wouldBe"]["rule"], "no-web")
        self.assertEqual((found["same"], sum(found["undecided"].values())), (1, 1))

    def test_a_session_that_does_not_exist(self) -> None:
        self.assertIsInstance(self.run_command("policy", "replay", "9").exception, NotFound)


class SuggestTests(RecordedCase):
    """``ironcurtain policy suggest``"""

    def setUp(self) -> None:
        super().setUp()
        for number in range(1, 5):
            decision = {"kind": "decision", "callId": "a", "outcome": "approved", "by": "ada\x1b", "number": number}
            url = f"https://example.org/{number}"
            call = self.call("a", "fetch.fetch", {"url": url}, "escalate", "fetch-elsewhere")
            self.session(number, call, decision)

    def test_what_is_printed_can_be_pasted(self) -> None:
        result = self.run_command("policy", "suggest")
        self.assertEqual(result.exit_code, 0, result.output)
        self.assertIn("# approved in session 1 (escalation 1) by ada\\x1b, 2026-01-01T00:00:00.000Z", result.output)
        self.assertIn("# tried: 4 approved calls allowed, 0 denied calls not allowed", result.output)
        policy = Path(self.person) / "new.toml"
        policy.write_text(result.output)
        self.assertEqual(self.run_command("policy", "check", "--policy", str(policy)).exit_code, 0)
        words = ("policy", "explain", "--policy", str(policy), "--workspace", str(self.person / "w"))
        (self.person / "w").mkdir()
        self.assertEqual(self.json(*words, "fetch.fetch", "url=https://example.org/x")["decision"], "allow")
        self.assertEqual(self.json(*words, "fetch.fetch", "url=https://www.example.org/")["decision"], "deny")

    def test_nothing_to_suggest(self) -> None:
        result = self.run_command("policy", "suggest", "--least", "5")
        self.assertEqual(result.output, "# No tool has 5 approved calls.\n")
        found = self.run_command("policy", "suggest", "--since", "2026-01-02")
        self.assertEqual(found.output, "# No tool has 3 approved calls.\n")

    def test_json(self) -> None:
        [found] = self.json("policy", "suggest", "1", "2", "--least", "2")
        self.assertEqual((found["server"], len(found["approved"]), len(found["rules"])), ("fetch", 2, 1))

    def test_why_there_is_none(self) -> None:
        refused = {"kind": "decision", "callId": "b", "outcome": "denied", "by": "ada", "number": 9}
        call = self.call("b", "fetch.fetch", {"url": "https://example.org/"}, "escalate", "fetch-elsewhere")
        self.session(5, call, refused)
        result = self.run_command("policy", "suggest")
        self.assertIn("# fetch.fetch: approved 4 times, but no rule is suggested: ada denied", result.output)


class ScenarioTests(test_commands.CommandCase):
    """``ironcurtain policy test``"""

    def file(self, text: str) -> str:
        """:returns: the path of a file with a text."""
        path = Path(self.person) / "scenarios.toml"
        path.write_text(text)
        return str(path)

    def test_all_pass(self) -> None:
        result = self.run_command("policy", "test", self.file(SCENARIOS))
        self.assertEqual((result.exit_code, result.output), (0, "2 scenarios: none failed\n"))

    def test_a_failure_is_shown_and_is_status_1(self) -> None:
        path = self.file(
            SCENARIOS.replace('expect = "allow"', 'expect = "deny"\nrule = "mine"').replace('"x"', '"\\u001b"')
        )
        result = self.run_command("policy", "test", path)
        self.assertEqual(result.exit_code, 1)
        for said in (
            "the workspace is free",
            "deny by mine",
            "allow by structural-sandbox-allow",
            "2 scenarios: 1 failed",
        ):
            self.assertIn(said, result.output)
        self.assertNotIn("\x1b", result.output)
        self.assertNotIn("keys stay secret", result.output)

    def test_json_has_every_scenario(self) -> None:
        found = self.json("policy", "test", self.file(SCENARIOS))
        self.assertEqual([each["passed"] for each in found], [True, True])
        self.assertEqual(found[0]["rule"], "structural-protected-path")

    def test_another_policy(self) -> None:
        policy = Path(self.person) / "other.toml"
        policy.write_text('[[rules]]\nname = "a"\nif = { server = ["time"] }\nthen = "escalate"\n')
        text = '[[scenarios]]\nname = "n"\nserver = "time"\ntool = "get_current_time"\nexpect = "escalate"\n'
        self.assertEqual(self.run_command("policy", "test", self.file(text)).exit_code, 1)
        self.assertEqual(self.run_command("policy", "test", self.file(text), "--policy", str(policy)).exit_code, 0)

    def test_a_missing_file_is_an_error(self) -> None:
        result = self.run_command("policy", "test", str(Path(self.person) / "none.toml"))
        self.assertIsInstance(result.exception, ConfigurationError)
