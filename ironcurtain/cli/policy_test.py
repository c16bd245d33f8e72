"""``ironcurtain policy test``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.output import as_json, print_json, print_lines, print_table
from ironcurtain.cli.paths import UserPath
from ironcurtain.cli.policy_engine import engine_for, policy_option, servers_option, tool_files

if TYPE_CHECKING:
    from ironcurtain.policy.scenarios import ScenarioResult

ARGUMENTS_SHOWN = 120
"""Maximum length in characters of a call's arguments in a table."""


@click.command()
@click.argument("files", nargs=-1, required=True, type=UserPath())
@policy_option
@servers_option
@as_json
def test(files: tuple[Path, ...], policy_file: Path | None, servers_file: Path | None, json_output: bool) -> None:
    """
    Judge the scenarios in FILES, and show unexpected verdicts.

    \b
    A scenario is a call with the verdict that it must get:
      [[scenarios]]
      name = "keys stay secret"
      server = "filesystem"
      tool = "read_text_file"
      arguments = { path = "/workspace/link" }
      links = { "/workspace/link" = "~/.ssh/id_ed25519" }
      expect = "deny"
      rule = "structural-protected-path"

    No file of this machine matters: the workspace is empty but for the 'files' (with their content) and 'links' that
    the scenario assumes. Exits with status 1 if a scenario fails, 78 if a file cannot be parsed.
    """
    from ironcurtain.policy.files import AssumedFiles
    from ironcurtain.policy.pathmap import AGENT_WORKSPACE
    from ironcurtain.policy.scenarios import judge_scenarios, load_scenarios

    engine = engine_for(tool_files(policy_file, servers_file), AGENT_WORKSPACE, view=AssumedFiles())
    results = [result for file in files for result in judge_scenarios(engine, load_scenarios(file), str(file))]
    failed = [result for result in results if not result.passed]
    if json_output:
        print_json([_data(result) for result in results])
    else:
        if failed:
            print_table(("FILE", "SCENARIO", "CALL", "EXPECTED", "VERDICT", "REASON"), [_row(each) for each in failed])
        total = f"{len(results)} {'scenario' if len(results) == 1 else 'scenarios'}"
        print_lines(f"{total}: {len(failed) or 'none'} failed")
    if failed:
        raise SystemExit(1)


def _row(result: ScenarioResult) -> tuple[str, ...]:
    from ironcurtain.text.display import json_line, one_line

    scenario, verdict = result.scenario, result.verdict
    call = f"{scenario.server}.{scenario.tool} {json_line(scenario.arguments, ARGUMENTS_SHOWN)}"
    expected = f"{scenario.expect} by {scenario.rule}" if scenario.rule else scenario.expect
    got = f"{verdict.decision} by {verdict.rule}"
    return tuple(map(one_line, (result.source, scenario.name, call, expected, got, verdict.reason)))


def _data(result: ScenarioResult) -> dict[str, Any]:
    scenario, verdict = result.scenario, result.verdict
    return {
        "file": result.source,
        "name": scenario.name,
        "server": scenario.server,
        "tool": scenario.tool,
        "arguments": scenario.arguments,
        "expected": {"decision": scenario.expect, "rule": scenario.rule or None},
        "decision": str(verdict.decision),
        "rule": verdict.rule,
        "reason": verdict.reason,
        "passed": result.passed,
    }
