"""Scenarios: their format, and that the engine judges them by what they assume."""

from __future__ import annotations

import contextlib
import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.files import AssumedFiles
from ironcurtain.policy.loading import default_annotations, default_policy
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.scenarios import Scenario, ScenarioResult, judge_scenarios, parse_scenarios

HOME = "/home/someone"


def engine() -> PolicyEngine:
    """:returns: the default policy over no files."""
    return PolicyEngine(
        default_policy(),
        default_annotations(),
        paths=PathMap("/workspace"),
        home=HOME,
        protected=[f"{HOME}/.ssh"],
        files=AssumedFiles(),
    )


def judged(text: str) -> list[ScenarioResult]:
    """:returns: the results of scenarios as written."""
    return judge_scenarios(engine(), parse_scenarios("s.toml", text), "s.toml")


def scenario(**fields: Any) -> ScenarioResult:
    """:returns: the result of one scenario."""
    wanted = {"name": "a", "server": "filesystem", "tool": "read_text_file", "expect": "allow", **fields}
    return judge_scenarios(engine(), [Scenario(**wanted)])[0]


class FormatTests(SynchronousTestCase):
    """:func:`parse_scenarios`"""

    def test_a_file(self) -> None:
        [result] = judged(
            '[[scenarios]]\nname = "read"\nserver = "filesystem"\ntool = "read_text_file"\n'
            'arguments = { path = "a" }\nexpect = "allow"\nrule = "structural-sandbox-allow"\n'
        )
        self.assertTrue(result.passed, result.verdict)
        self.assertEqual(result.source, "s.toml")

    def test_mistakes_name_their_line(self) -> None:
        good = '[[scenarios]]\nname = "a"\nserver = "s"\ntool = "t"\nexpect = "deny"\n'
        for text, line, said in (
            (good.replace("deny", "maybe"), 5, "deny"),
            (good + "wrong = 1\n", 6, "wrong"),
            (good + good, 7, "another scenario is named 'a'"),
            ("version = 9\n" + good, 1, "9"),
            ("scenarios = 3\n", 1, "list"),
        ):
            error = self.assertRaises(ConfigurationError, parse_scenarios, "s.toml", text)
            self.assertIn(said, str(error), text)
            self.assertEqual(error.line, line, text)

    @given(st.text(max_size=60))
    def test_any_text_is_scenarios_or_a_configuration_error(self, text: str) -> None:
        with contextlib.suppress(ConfigurationError):
            for each in parse_scenarios("s.toml", f"scenarios = [{text}]"):
                self.assertIsInstance(each, Scenario)
                tomllib.loads(f"scenarios = [{text}]")


class JudgementTests(SynchronousTestCase):
    """:func:`judge_scenarios`"""

    def test_decision_and_rule_must_be_the_expected_ones(self) -> None:
        self.assertTrue(scenario(arguments={"path": "a"}).passed)
        self.assertFalse(scenario(arguments={"path": "a"}, rule="other").passed)
        self.assertFalse(scenario(arguments={"path": "a"}, expect="deny").passed)

    def test_links_are_assumed(self) -> None:
        for name in ("/workspace/in", "in"):
            result = scenario(arguments={"path": "in"}, links={name: f"{HOME}/.ssh"}, expect="deny")
            self.assertEqual(result.verdict.rule, "structural-protected-path", name)
        result = scenario(arguments={"path": "~/l/x"}, links={"~/l": "/workspace"})
        self.assertEqual(result.verdict.rule, "structural-sandbox-allow")

    def test_files_of_this_machine_do_not_matter(self) -> None:
        """What is a link here is none in a scenario."""
        result = scenario(arguments={"path": "/proc/self/cwd"}, expect="deny")
        self.assertEqual(result.verdict.resources[0].value, "/proc/self/cwd")

    def test_settings_of_repositories_are_assumed(self) -> None:
        call: dict[str, Any] = {"server": "git", "tool": "git_push", "arguments": {"path": "/workspace"}}
        config = '[remote "origin"]\nurl = https://example.org/a/b.git\n'
        result = scenario(**call, files={"/workspace/.git/config": config}, expect="escalate")
        self.assertIn("https://example.org/a/b.git", [each.value for each in result.verdict.resources])

    def test_resources_are_judged_too(self) -> None:
        result = scenario(tool="resources/read", arguments={"uri": "file:///workspace/a"})
        self.assertTrue(result.passed, result.verdict)
        result = scenario(tool="resources/read", arguments={"uri": 3}, expect="deny", rule="default-deny")
        self.assertTrue(result.passed, result.verdict)

    def test_an_existing_directory_can_be_written_around_a_protected_path(self) -> None:
        """A directory that contains a protected path can be written to if it exists, and cannot be created."""
        call: dict[str, Any] = {"tool": "write_file", "arguments": {"path": "~", "content": ""}}
        self.assertEqual(scenario(**call, expect="deny").verdict.rule, "structural-protected-path")
        found = scenario(**call, files={"~/x": ""}, expect="escalate")
        self.assertTrue(found.passed, found.verdict)
