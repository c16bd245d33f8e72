"""Tests for ``ironcurtain policy``."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

from ironcurtain.errors import ConfigurationError
from tests.cli.test_commands import CommandCase


class PolicyTests(CommandCase):
    def setUp(self) -> None:
        super().setUp()
        (project := self.person / "project").mkdir()
        self.addCleanup(os.chdir, Path.cwd())  # the checkout is no workspace if these tests run from inside it
        os.chdir(project)

    def test_the_examples_of_the_help_are_calls_of_these_tools(self) -> None:
        shown = re.findall(r"ironcurtain (policy explain .*)", self.run_command("policy", "explain", "--help").output)
        self.assertEqual(len(shown), 2)
        for line in shown:
            found = self.json(*shlex.split(line))
            self.assertNotEqual((found["rule"], found["decision"]), ("invalid-arguments", "deny"), line)

    def test_a_verdict_is_explained(self) -> None:
        answer = self.json("policy", "explain", "filesystem.read_text_file", "path=~/notes.txt")
        self.assertEqual((answer["decision"], answer["rule"]), ("escalate", "read-home"))
        answer = self.json("policy", "explain", "filesystem.read_text_file", '{"path": "~/.ssh/id_rsa"}')
        self.assertEqual((answer["decision"], answer["rule"]), ("deny", "structural-protected-path"))
        text = self.run_command("policy", "explain", "filesystem.write_file", "path=x", "content=1").output
        self.assertIn("structural-sandbox-allow", text)

    def test_arguments_that_are_nested_too_deep(self) -> None:
        words = ("policy", "explain", "filesystem.read_text_file")
        refused = self.run_command(*words, '{"path":' * 15_000)
        self.assertEqual((refused.exit_code, "are not JSON" in refused.output), (2, True), refused.output)
        self.assertEqual(self.json(*words, "path=" + "[" * 100_000)["decision"], "deny")

    def test_what_an_agent_could_write_is_made_visible(self) -> None:
        text = self.run_command("policy", "explain", "filesystem.read_text_file", "path=/etc/\x1b[31mred").output
        self.assertNotIn("\x1b", text)

    def test_the_hosts_of_a_servers_sandbox_count(self) -> None:
        sandboxed = {"command": "fetcher", "sandbox": {"network": ["docs.example.org"]}}
        servers = self.person / "servers.json"
        servers.write_text(json.dumps({"mcpServers": {"fetch": sandboxed}}))
        policy = self.person / "policy.toml"
        policy.write_text('[[rules]]\nname = "all"\nif = { server = ["fetch"] }\nthen = "allow"\n')
        words = ["policy", "explain", "--policy", str(policy), "fetch.fetch", "url=https://other.example.org/"]
        self.assertEqual(self.json(*words)["rule"], "all")
        self.assertEqual(self.json(*words, "--servers", str(servers))["rule"], "structural-domain-escalate")
        words[-1] = "url=https://docs.example.org/x"
        self.assertEqual(self.json(*words, "--servers", str(servers))["rule"], "all")
        self.home.mkdir(mode=0o700)
        (self.home / "mcp-servers.json").write_text(servers.read_text())
        words[-1] = "url=https://other.example.org/"
        self.assertEqual(self.json(*words)["rule"], "structural-domain-escalate")

    def test_servers_that_are_not_there_are_an_error(self) -> None:
        missing = str(self.person / "none.json")
        result = self.run_command("policy", "explain", "a.b", "--servers", missing)
        self.assertIsInstance(result.exception, ConfigurationError)
        self.assertIn("there is no such file", str(result.exception))

    def test_mistakes_are_found_and_are_status_1(self) -> None:
        policy = self.person / "policy.toml"
        policy.write_text('[[rules]]\nname = "all"\nif = {}\nthen = "allow"\n')
        result = self.run_command("policy", "check", "--policy", str(policy))
        self.assertEqual(result.exit_code, 1)
        self.assertIn("allows-everything", result.output)

    def test_wrong_words_are_wrong_usage(self) -> None:
        for words in (["read_file"], ["filesystem.read_file", "path"], ["filesystem.read_file", "{"]):
            self.assertEqual(self.run_command("policy", "explain", *words).exit_code, 2, words)
