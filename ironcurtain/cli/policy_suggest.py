"""``ironcurtain policy suggest``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.output import as_json, print_json
from ironcurtain.cli.policy_engine import policy_option, servers_option, tool_files
from ironcurtain.cli.policy_replay import chosen_sessions, former_engines

if TYPE_CHECKING:
    from ironcurtain.policy.suggest import Answered, Declined, Suggestion

EVIDENCE_SHOWN = 10
"""Maximum number of approvals named above a rule."""


@click.command()
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", shell_complete=all_sessions)
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]),
    metavar="TIME",
    help="Count approvals from this time on, such as 2026-01-31 or 2026-01-31T12:00:00 (UTC); denials always count.",
)
@click.option(
    "--least",
    type=click.IntRange(2),
    metavar="N",
    default=3,
    show_default=True,
    help="How often calls must have been approved, at least 2.",
)
@policy_option
@servers_option
@as_json
def suggest(
    sessions: tuple[str, ...],
    since: datetime | None,
    least: int,
    policy_file: Path | None,
    servers_file: Path | None,
    json_output: bool,
) -> None:
    """
    Suggest rules for what you approved again and again.

    SESSION is a number, an id, or 'last'; without one, all sessions of the home count. The output is text for
    policy.toml: paste what you want before the other rules. Nothing is changed by this command.

    A rule is for one tool, and for the common directory in the workspace, the exact paths outside it, the exact hosts,
    repositories or names. There is none for a tool of which a call was denied. Each was tried: the calls named above it
    would be allowed, and no call that was denied.
    """
    from ironcurtain.policy.loading import default_annotations
    from ironcurtain.policy.recorded import SessionRecords
    from ironcurtain.policy.suggest import Suggestion, answered_calls
    from ironcurtain.policy.suggest import suggest as suggestions
    from ironcurtain.session.past_calls import audit_records

    files = tool_files(policy_file, servers_file)
    policy = files.load_policy()
    known, answered = default_annotations().merged(policy.annotations), list["Answered"]()
    for name, paths in chosen_sessions(sessions):
        answered += answered_calls(name, audit_records(paths.audit), SessionRecords(known).calls)
    start = since.isoformat() if since is not None else ""
    found = suggestions(policy, answered, lambda changed: former_engines(files, changed), least, start)
    if json_output:
        print_json([_data(each) if isinstance(each, Suggestion) else _declined(each) for each in found])
        return
    for each in found:
        click.echo(_text(each) if isinstance(each, Suggestion) else _why(each))
    if not found:
        click.echo(f"# No tool has {least} approved calls.")


def _text(suggestion: Suggestion) -> str:
    from ironcurtain.policy.written import rule_toml
    from ironcurtain.text.display import one_line

    lines = [
        f"approved in session {each.session} (escalation {each.number}) by {each.by or 'unknown'}, {each.call.time}"
        for each in suggestion.evidence[:EVIDENCE_SHOWN]
    ]
    more = len(suggestion.evidence) - EVIDENCE_SHOWN
    lines += [f"and {more} more"] if more > 0 else []
    lines.append(
        f"tried: {len(suggestion.evidence)} approved calls allowed, {suggestion.denied} denied calls not allowed"
    )
    comments = [one_line(line) for line in lines]
    return "\n".join(rule_toml(rule, () if number else comments) for number, rule in enumerate(suggestion.rules))


def _why(declined: Declined) -> str:
    from ironcurtain.text.display import one_line

    tool = f"{declined.server}.{declined.tool}"
    return f"# {one_line(f'{tool}: approved {declined.approved} times, but no rule is suggested: {declined.why}')}\n"


def _data(suggestion: Suggestion) -> dict[str, Any]:
    import msgspec

    return {
        "server": suggestion.server,
        "tool": suggestion.tool,
        "rules": msgspec.to_builtins(suggestion.rules),
        "approved": [
            {"session": each.session, "number": each.number, "by": each.by, "time": each.call.time}
            for each in suggestion.evidence
        ],
        "denied": suggestion.denied,
    }


def _declined(declined: Declined) -> dict[str, Any]:
    return {"server": declined.server, "tool": declined.tool, "rules": [], "why": declined.why}
