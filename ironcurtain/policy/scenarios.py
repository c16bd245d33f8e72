"""Scenarios: calls with the verdict that a policy must give, judged by the engine without touching any file."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import normpath
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.faults import wrong
from ironcurtain.home.layout import read_configuration
from ironcurtain.home.parsing import parse_toml
from ironcurtain.home.structured import check_version, convert
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.files import AssumedFiles
from ironcurtain.policy.pathmap import AGENT_WORKSPACE
from ironcurtain.policy.verdict import ToolCall, Trace, Verdict

FORMAT_VERSION = 1
"""The newest version of the format that this module reads."""


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """
    A call and the verdict that it must get.

    :param files: content by path of each file that exists; no other file does.
    :param links: target by path of each symbolic link; ``~/`` means the home there, too.
    :param git_directory: the directory of the session's git server.
    :param rule: the rule that must decide; empty for any.
    """

    name: str
    server: str
    tool: str
    expect: Literal["allow", "escalate", "deny"]
    arguments: dict[str, Any] = {}
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    git_directory: str | None = None
    rule: str = ""


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    scenarios: tuple[Any, ...]
    version: int = FORMAT_VERSION


class ScenarioResult(Struct, frozen=True):
    """
    A scenario and the verdict that it got.

    :param source: the file that has the scenario.
    :param held: the names of the rules that held for some of its values.
    """

    scenario: Scenario
    verdict: Verdict
    source: str = ""
    held: frozenset[str] = frozenset()

    @property
    def passed(self) -> bool:
        """Whether decision and rule are the expected ones."""
        expected = self.scenario
        return self.verdict.decision == expected.expect and expected.rule in ("", self.verdict.rule)


def parse_scenarios(source: str, text: str) -> tuple[Scenario, ...]:
    """
    :param source: the file's name, for messages.
    :param text: TOML.
    :raises ConfigurationError: the text is not valid, or two scenarios share a name.
    """
    data = parse_toml(source, text)
    check_version(source, data, FORMAT_VERSION, text)
    document: _Document = convert(source, data, _Document, text)
    found = tuple[Scenario, ...](
        convert(source, raw, Scenario, text, ("scenarios", index)) for index, raw in enumerate(document.scenarios)
    )
    seen: set[str] = set()
    for index, scenario in enumerate(found):
        if scenario.name in seen:
            raise wrong(source, f"another scenario is named {scenario.name!r}", text, ("scenarios", index, "name"))
        seen.add(scenario.name)
    return found


def load_scenarios(path: Path) -> tuple[Scenario, ...]:
    """:raises ConfigurationError: the file does not exist or is not valid."""
    if (text := read_configuration(path)) is None:
        raise ConfigurationError(str(path), "the file does not exist")
    return parse_scenarios(str(path), text)


def judge_scenarios(engine: PolicyEngine, scenarios: Sequence[Scenario], source: str = "") -> list[ScenarioResult]:
    """
    Judge scenarios.

    :param engine: with the workspace :data:`~ironcurtain.policy.pathmap.AGENT_WORKSPACE`, and made over
        :class:`~ironcurtain.policy.files.AssumedFiles`, so that no file of this machine matters.
    :param source: the file that has the scenarios.
    """
    return [_judged(engine, scenario, source) for scenario in scenarios]


def _judged(engine: PolicyEngine, scenario: Scenario, source: str) -> ScenarioResult:
    files, links = (
        {_absolute(path, engine.home): value for path, value in each.items()}
        for each in (scenario.files, scenario.links)
    )
    targets = {path: _from_home(target, engine.home) for path, target in links.items()}
    call, trace = ToolCall(scenario.server, scenario.tool, scenario.arguments), Trace()
    verdict = engine.evaluate_assumed(
        call, git_directory=scenario.git_directory, files=AssumedFiles(files, targets), trace=trace
    )
    held = frozenset(step.check for step in trace.steps if step.rule and step.outcome != "no")
    return ScenarioResult(scenario, verdict, source, held)


def _from_home(path: str, home: str) -> str:
    return f"{home}/{path[2:]}" if path.startswith("~/") else path


def _absolute(path: str, home: str) -> str:
    path = _from_home(path, home)
    return normpath(path if path.startswith("/") else f"{AGENT_WORKSPACE}/{path}")
