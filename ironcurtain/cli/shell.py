"""``ironcurtain shell``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ironcurtain import __version__
from ironcurtain.cli.backends import BackendOption
from ironcurtain.cli.paths import UserPath
from ironcurtain.home.layout import Home, find_home
from ironcurtain.home.user_paths import absolute_path, current_directory


@click.command()
@click.argument("shell_args", nargs=-1, type=click.UNPROCESSED, metavar="[FILE] [-- SHELL_ARGS ...]")
@click.option("-c", "--command", "instruction", metavar="TEXT", help="Work on one instruction, and exit.")
@click.option(
    "--json/--text",
    "json_output",
    default=None,
    help="Print NDJSON, as without a terminal, or text for people, as at one.",
)
@click.option(
    "--backend",
    type=BackendOption(),
    multiple=True,
    envvar="UNIXAGENT_BACKEND",
    help="The model: anthropic[:MODEL], openai[:MODEL], google[:MODEL], openai-chat:MODEL, scripted:FILE or "
    "subprocess:COMMAND (default: config.toml). Repeated: the next one is asked where one cannot be reached.",
)
@click.option("--model", help="The model, as its provider spells it.")
@click.option(
    "--policy",
    type=UserPath(),
    envvar="UNIXAGENT_POLICY",
    show_envvar=True,
    help="The policy (default: policy.toml in the home).",
)
@click.option(
    "--config",
    "config_file",
    type=UserPath(exists=True),
    envvar="UNIXAGENT_CONFIG",
    show_envvar=True,
    help="The settings (default: config.toml in the home).",
)
@click.option("--shell", "program", metavar="PATH", help="The shell (default: shell.command, else $SHELL).")
@click.version_option(__version__, "--version", prog_name="ironcurtain")
@click.option("--trace", is_flag=True, help="Print the trace id of this session.")
@click.option("--usage", is_flag=True, help="List what recent sessions used, and do nothing else.")
def shell(
    shell_args: tuple[str, ...],
    instruction: str | None,
    json_output: bool | None,
    backend: tuple[str, ...],
    model: str | None,
    policy: Path | None,
    config_file: Path | None,
    program: str | None,
    trace: bool,
    usage: bool,
) -> None:
    """
    Your own shell, with an agent one # away.

    \b
      $ ls -la                                  goes to your shell, as always
      # find what fills the disk and clean it   goes to the agent
      \\# a comment                              goes to your shell

    The agent proposes commands. What the policy does not allow waits for you: a approves all, s goes step by step,
    e edits, d denies. Ctrl-C cancels, twice within a second kills. Commands run in this shell, with all that you may
    do; nothing runs unless the policy allows it or you approve it. The audit log has every command of the agent's.

    \b
      ironcurtain shell                         your $SHELL, here
      ironcurtain shell -- -l                   as a login shell
      ironcurtain shell -c 'why is port 80 busy?'
      git diff | ironcurtain shell '# review'   what is piped in is data
      ironcurtain shell notes.agent             instructions from a file (#!)

    Without a terminal, or with --json, it speaks NDJSON on standard input and output: ironcurtain's documentation has
    the protocol. Questions are asked at the terminal, if there is one; else only what the policy allows runs. Exit
    status: that of the shell; with an instruction 0 done, 1 failed or denied, 77 nobody to ask.
    """
    from ironcurtain.errors import UsageError

    if usage:
        from ironcurtain.cli.shell_usage import print_usage

        print_usage(find_home(os.environ, os.geteuid()))
        return
    words = list(shell_args)
    script = None
    if words and words[0].startswith("#") and instruction is None:
        instruction = words.pop(0).lstrip("#")
    elif words and not words[0].startswith("-") and instruction is None:
        script = Path(words.pop(0))
    options = {
        "args": words,
        "directory": str(current_directory()),
        **({"backend": list(backend)} if backend else {}),
        **({"model": model} if model else {}),
        **({"program": program} if program else {}),
    }
    one_shot = instruction is not None or script is not None
    if one_shot:
        options["confirm"] = "auto"  # consoles answer about commands, not about plans
    request = {"shell": options, **({"policy": str(absolute_path(policy))} if policy else {})}
    terminal = os.isatty(0) and os.isatty(1)
    if terminal and json_output is None and not one_shot:
        raise SystemExit(_in_terminal(request, config_file, trace))
    if words:
        raise UsageError("arguments for the shell need a terminal")
    if json_output is False and not one_shot and os.isatty(0):
        raise UsageError("--text at a terminal needs an instruction: give it after -c, or begin it with #")
    from ironcurtain.cli.shell_pipe import PipeFrontEnd, instructions_of
    from ironcurtain.shell.protocol import checked_instruction

    instructions = None
    if instruction is not None:
        instructions = [checked_instruction(instruction)]
    elif script is not None:
        instructions = instructions_of(script)
    as_json = not sys.stdout.isatty() if json_output is None else json_output
    raise SystemExit(
        PipeFrontEnd(find_home(os.environ, os.geteuid()), request, config_file, instructions, as_json, trace).run()
    )


def _require_person(where: Home) -> None:
    """:raises NotAllowed: this is part of a session that has no terminal, so that a shell would wait for ever."""
    from ironcurtain.cli.shell_above import unattended_above
    from ironcurtain.errors import NotAllowed

    if (entry := unattended_above(where)) is not None:
        why = f"nobody is at this terminal, which is that of session {entry.number}"
        raise NotAllowed(f"{why}: give an instruction with -c")


def _in_terminal(request: Mapping[str, Any], config_file: Path | None, trace: bool) -> int:
    """The user waits for a prompt: hence the shell is started before most of this program is imported."""
    from ironcurtain.home.layout import read_configuration
    from ironcurtain.home.settings import load
    from ironcurtain.shell.early import EarlyShell
    from ironcurtain.shell.inheritance import unchecked_approval
    from ironcurtain.shell.starting import options_of, shell_start

    where = find_home(os.environ, os.geteuid())
    if any(where.registry.glob("session-*.json")):
        _require_person(where)
    path = config_file or where.config
    settings = load(str(path), read_configuration(path), os.environ).settings
    approval = unchecked_approval(Path(request.get("policy", where.policy)))
    start = shell_start(
        options_of(request), settings, os.environ, str(where.traces), approval, lambda n: os.urandom(n).hex()
    )
    early = EarlyShell(start)
    try:
        if trace:
            click.echo(f"trace {start.trace.trace_id}", err=True)
        early.begin()
        from ironcurtain.cli.shelling import ShellTerminal

        return ShellTerminal(where, request, config_file, early).run()
    finally:
        early.close()
