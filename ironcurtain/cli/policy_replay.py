"""``ironcurtain policy replay``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.output import as_json, home, print_json, print_lines, print_table
from ironcurtain.cli.policy_engine import engine_for, policy_option, servers_option, tool_files

if TYPE_CHECKING:
    from ironcurtain.home.session_paths import SessionPaths
    from ironcurtain.policy.engine import PolicyEngine
    from ironcurtain.policy.replay import ChangedCalls, ReplayReport, VerdictChange
    from ironcurtain.policy.rules import Policy
    from ironcurtain.session.tool_files import ToolFiles

EXAMPLE_SHOWN = 100
"""Maximum length in characters of an example's arguments in a table."""


@click.command()
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", shell_complete=all_sessions)
@policy_option
@servers_option
@as_json
def replay(sessions: tuple[str, ...], policy_file: Path | None, servers_file: Path | None, json_output: bool) -> None:
    """
    Judge the calls of earlier sessions again, and show differences.

    \b
    Try a change before agents meet it:
      ironcurtain policy replay --policy changed.toml
      ironcurtain policy replay last 12 --policy changed.toml

    SESSION is a number, an id, or 'last'; without one, all sessions of the home are judged. Workspaces need not exist
    any more: only what the audit logs record counts. A call whose record is not complete is undecided, with the reason.
    What the decision was before a person was asked is compared; another rule with the same decision is no difference.

    Exits with status 1 if a decision differs.
    """
    from ironcurtain.policy.loading import default_annotations
    from ironcurtain.policy.recorded import SessionRecords
    from ironcurtain.policy.replay import ReplayReport
    from ironcurtain.policy.replay import replay as judge
    from ironcurtain.session.past_calls import audit_records

    files, report = tool_files(policy_file, servers_file), ReplayReport()
    policy = files.load_policy()
    engines, known = former_engines(files, policy), default_annotations().merged(policy.annotations)
    for name, paths in chosen_sessions(sessions):
        judge(report, name, SessionRecords(known).calls(audit_records(paths.audit)), engines)
    if json_output:
        print_json(_data(report))
    else:
        _print(report)
    if report.changes:
        raise SystemExit(1)


def former_engines(files: ToolFiles, policy: Policy) -> Callable[[str], PolicyEngine]:
    """:returns: what makes, once each, the engine for a workspace that may be gone."""
    from ironcurtain.policy.recorded import FormerWorkspace

    return cache(lambda workspace: engine_for(files, workspace, policy=policy, view=FormerWorkspace(workspace)))


def chosen_sessions(names: tuple[str, ...]) -> Iterator[tuple[str, SessionPaths]]:
    """
    :param names: of sessions; without any, all sessions of the home that have an audit log.
    :returns: each session's number, or the name that the user gave, and its files.
    :raises NotFound: there is no session of that name.
    """
    from ironcurtain.session.elsewhere import elsewhere, session_directory, snapshots

    where = home()
    if names:
        yield from ((name, session_directory(where, name)) for name in names)
        return
    found = [(known.number, where.session(known.id)) for known in snapshots(where)]
    found += [(other.number, other.paths) for other in elsewhere(where)]
    unique = {paths.directory: (str(number), paths) for number, paths in sorted(found, key=lambda pair: pair[0])}
    yield from ((number, paths) for number, paths in unique.values() if paths.audit.exists())


def _print(report: ReplayReport) -> None:
    if report.changes:
        rows = [_row(change, calls) for change, calls in report.changes.items()]
        print_table(("CALLS", "TOOL", "WAS", "WOULD BE", "SESSION", "EXAMPLE"), rows)
    for why, count in report.undecided.most_common():
        print_lines(f"{count} undecided: the records do not contain {why}")
    if report.unaffected:
        print_lines(f"{report.unaffected} not compared: the session itself decided, not the policy")
    if judged := report.same + report.changed:
        print_lines(f"{judged} judged again: {report.changed or 'none'} would be decided differently")
    else:
        print_lines("no call was judged again")


def _row(change: VerdictChange, calls: ChangedCalls) -> tuple[str, ...]:
    from ironcurtain.text.display import json_line, one_line

    was, new = f"{change.decision} by {change.rule}", f"{change.new_decision} by {change.new_rule}"
    example = json_line(calls.example.arguments, EXAMPLE_SHOWN)
    tool = f"{change.server}.{change.tool}"
    return tuple(map(one_line, (str(calls.count), tool, was, new, calls.session, example)))


def _data(report: ReplayReport) -> dict[str, Any]:
    return {
        "same": report.same,
        "notCompared": report.unaffected,
        "undecided": dict(report.undecided),
        "changed": [
            {
                **{"server": change.server, "tool": change.tool, "calls": calls.count},
                "was": {"decision": change.decision, "rule": change.rule},
                "wouldBe": {"decision": change.new_decision, "rule": change.new_rule, "reason": calls.verdict.reason},
                "example": {
                    **{"session": calls.session, "sequence": calls.example.sequence, "time": calls.example.time},
                    "arguments": calls.example.arguments,
                },
            }
            for change, calls in report.changes.items()
        ],
    }
