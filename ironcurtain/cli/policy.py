"""``ironcurtain policy``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.completion import all_sessions
from ironcurtain.cli.output import as_json, home, print_json, print_lines, settings
from ironcurtain.cli.paths import UserPath
from ironcurtain.cli.policy_compile import compile_
from ironcurtain.cli.policy_engine import engine_for, policy_option, servers_option, tool_files
from ironcurtain.cli.policy_replay import replay
from ironcurtain.cli.policy_suggest import suggest
from ironcurtain.cli.policy_test import test
from ironcurtain.home.user_paths import absolute_path

if TYPE_CHECKING:
    from ironcurtain.policy.recorded import SessionRecords
    from ironcurtain.session.tool_files import ToolFiles


@click.group()
def policy() -> None:
    """Check, test and explain the policy. No server is run."""


policy.add_command(test)
policy.add_command(replay)
policy.add_command(suggest)
policy.add_command(compile_)


@policy.command()
@policy_option
@as_json
def check(policy_file: Path | None, json_output: bool) -> None:
    """
    Check the policy, and report errors and probable mistakes.

    No session starts with a policy that has errors. Exits with status 1 if there are errors, 78 if the file cannot be
    read. Warnings do not change the status.
    """
    from ironcurtain.configuration import check_approval
    from ironcurtain.home.user_paths import person_home
    from ironcurtain.policy.check import check as read_through
    from ironcurtain.policy.engine import PolicyEngine
    from ironcurtain.policy.loading import default_annotations, default_policy, load_policy
    from ironcurtain.policy.pathmap import PathMap
    from ironcurtain.policy.paths import real_path

    files, user_home = tool_files(policy_file), person_home(os.environ, os.geteuid())
    policy = load_policy(files.policy) if files.has_policy else default_policy()
    check_approval(policy, user_home)
    PolicyEngine(policy, default_annotations(), paths=PathMap(user_home), home=user_home)  # which resolves its paths
    findings = read_through(policy, default_annotations(), files.server_names(), real_path(user_home))
    if json_output:
        print_json(findings)
    else:
        for finding in findings:
            print_lines(f"{finding.severity}: {finding.rule}: {finding.message} [{finding.code}]")
        used = files.policy if files.has_policy else "the default policy"
        print_lines(f"{used}: {_count(findings, 'error')}, {_count(findings, 'warning')}")
    if any(finding.severity == "error" for finding in findings):
        raise SystemExit(1)


@policy.command()
@click.argument("tool")
@click.argument("arguments", nargs=-1)
@policy_option
@servers_option
@click.option(
    "--workspace",
    type=UserPath(),
    help="The directory that agents see as /workspace (default: this one).",
)
@click.option("--git-directory", help="Directory of the session's git server, if the call does not give one.")
@click.option(
    "--session",
    shell_complete=all_sessions,
    help="Judge it as the next call of this session: its workspace, and what happened there before.",
)
@as_json
def explain(
    tool: str,
    arguments: tuple[str, ...],
    policy_file: Path | None,
    servers_file: Path | None,
    workspace: Path | None,
    git_directory: str | None,
    session: str | None,
    json_output: bool,
) -> None:
    """
    Print the policy's verdict on a call of TOOL, and the reason.

    \b
    TOOL is server.tool; ARGUMENTS are name=value, or one JSON object:
      ironcurtain policy explain filesystem.read_text_file path=~/notes.txt
      ironcurtain policy explain git.git_push '{"path": "/workspace"}'

    With --session, rules that depend on earlier calls show which of these made them hold.

    The tool is assumed to exist, with the arguments that its annotations name. A workspace that 'ironcurtain start'
    refuses is refused here, too.
    """
    from ironcurtain.home.user_paths import person_home
    from ironcurtain.policy.explain import explain as explain_call
    from ironcurtain.policy.history import NO_HISTORY
    from ironcurtain.policy.verdict import ToolCall
    from ironcurtain.process.accounts import session_account
    from ironcurtain.session.tools import protected_paths
    from ironcurtain.session.workspace import usable_workspace
    from ironcurtain.text.display import paragraphs

    where, user_home = home(), person_home(os.environ, os.geteuid())
    files, values = tool_files(policy_file, servers_file), settings(where).settings
    server, dot, name = tool.partition(".")
    if not dot or not name:
        raise click.UsageError(f"{tool} must be server.tool, such as filesystem.read_text_file")
    past = _session(session, files) if session is not None else None
    if past is not None and past.workspace and workspace is None:
        real = Path(past.workspace)
    else:
        place = absolute_path(workspace or "")
        protected = protected_paths(where, user_home, files, values, place)
        real = usable_workspace(place, Path(user_home), where.path, protected)
    account = session_account(values.run_as, os.environ, real if real.exists() else None, os.geteuid())
    engine = engine_for(files, str(real), account=account.switched)
    call = ToolCall(server, name, parse_arguments(arguments))
    explanation = explain_call(
        engine, call, git_directory=git_directory, history=past.history if past is not None else NO_HISTORY
    )
    if json_output:
        print_json(explanation.data())
    else:
        print_lines(paragraphs(explanation.text()))


def _session(name: str, files: ToolFiles) -> SessionRecords:
    """:returns: what happened in a session."""
    from ironcurtain.policy.loading import default_annotations
    from ironcurtain.session.elsewhere import session_directory
    from ironcurtain.session.past_calls import past_calls

    annotations = default_annotations().merged(files.load_policy().annotations)
    return past_calls(session_directory(home(), name).audit, annotations)


def parse_arguments(words: tuple[str, ...]) -> dict[str, Any]:
    """
    :param words: ``name=value`` pairs, where a value is JSON if it parses, else text; or one JSON object.
    :raises click.UsageError: they are neither.
    """
    import json

    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            whole: dict[str, Any] = json.loads(words[0])
        except (ValueError, RecursionError) as e:
            raise click.UsageError(f"the arguments are not JSON: {e}") from None
        return whole
    arguments: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise click.UsageError(f"{word} must be name=value")
        try:
            arguments[name] = json.loads(value)
        except (ValueError, RecursionError):
            arguments[name] = value
    return arguments


def _count(findings: list[Any], severity: str) -> str:
    number = sum(finding.severity == severity for finding in findings)
    return f"{number or 'no'} {severity}{'' if number == 1 else 's'}"
