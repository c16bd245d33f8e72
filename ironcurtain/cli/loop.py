"""``ironcurtain loop``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.completion import all_sessions, in_containers
from ironcurtain.cli.output import home, print_lines, print_settings
from ironcurtain.cli.paths import UserPath
from ironcurtain.home.user_paths import absolute_path

if TYPE_CHECKING:
    from ironcurtain.loop.config import LoopConfiguration, SettingsLayer
    from ironcurtain.session.model import SessionInfo

_COMMAND = "ironcurtain.loop.command"
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class LoopCommand(click.Command):
    """A command that does not parse the words after ``--``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words before ``--``, and store those after it."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_COMMAND] = tuple(args[at + 1 :])
        if at < len(args) - 1 or at == len(args) or ctx.resilient_parsing:
            return super().parse_args(ctx, args[:at])
        raise click.UsageError("there is no command after --", ctx)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """:returns: the words of the line that shows the usage."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND ...]"]


class Duration(click.ParamType["float"]):
    """A time span in seconds, or with a unit: 90, 90s, 15m, 2h."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """:returns: seconds."""
        if isinstance(value, float):
            return value
        if (found := _SPAN.fullmatch(str(value))) is None:
            self.fail("give seconds, or a time such as 90s, 15m or 2h", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


@click.command(cls=LoopCommand)
@click.argument("action", required=False, type=click.Choice(["config"]), metavar="[config]")
@click.option("-p", "--prompt", metavar="TEXT", help="The text of the prompt.")
@click.option("-P", "--prompt-file", type=UserPath(), help="The file with the prompt (default: PROMPT.md).")
@click.option(
    "--agent",
    shell_complete=in_containers,
    help="Run an agent in a container, such as claude-code, instead of a command of this machine.",
)
@click.option("--backend", help="claude (default), codex, gemini or opencode, as installed on this machine.")
@click.option("-n", "--max-iterations", type=int, help="Maximum number of iterations (default: 100).")
@click.option("--max-time", type=Duration(), help="Maximum time: seconds, or 15m, or 2h.")
@click.option("--max-cost", type=float, metavar="USD", help="Maximum cost in US dollars; needs --agent.")
@click.option("--max-failures", type=int, help="Maximum number of failures in a row (default: 3).")
@click.option(
    "--completion-promise",
    metavar="TEXT",
    help="The line that the agent prints when it is done (default: LOOP_COMPLETE).",
)
@click.option("--pty", is_flag=True, help="Run the agent in a terminal and pass your keys to it.")
@click.option("--observe", is_flag=True, help="Run it in a terminal, without your keys.")
@click.option("--no-pty", is_flag=True, help="Run it without a terminal, even if the configuration asks for one.")
@click.option(
    "--idle-timeout", type=Duration(), help="End an iteration after so many idle seconds (default: 30; 0: never)."
)
@click.option("--config", "config_file", type=UserPath(), help="The settings file (default: ralph.yml).")
@click.option(
    "-r",
    "--resume",
    is_flag=False,
    flag_value="last",
    metavar="[SESSION]",
    shell_complete=all_sessions,
    help="Resume a loop (default: the last one).",
)
@click.option("--git-checkpoint", is_flag=True, help="Commit after each iteration that changed files.")
@click.option(
    "--wait-for-limits",
    is_flag=True,
    help="Wait until a limit of the agent's account ends, instead of failing; needs --agent, and no terminal.",
)
@click.option("--workspace", type=UserPath(), help="The directory to work in (default: this one).")
@click.option("--on", "host", metavar="HOST", help="Run it on another machine of the fleet, or on 'any' with room.")
@click.option("--label", "labels", multiple=True, help="As --on any, on a machine that has this label. Repeated: all.")
@click.option("--repo", metavar="URL", help="With --on: clone this repository there, to work in.")
@click.option("--restart", is_flag=True, help="With --on any: start it again elsewhere if its machine is lost.")
@click.option("--json", "json_output", is_flag=True, help="With 'config': print JSON, for programs.")
@click.pass_context
def loop(ctx: click.Context, /, action: str | None, json_output: bool, **given: Any) -> None:
    """
    Run an agent with the same prompt repeatedly, until it prints LOOP_COMPLETE or a limit is reached.

    \b
    Write PROMPT.md, and end it with: When everything is done, print
    LOOP_COMPLETE on a line of its own.
      ironcurtain loop --agent claude-code -n 20  in a container, mediated
      ironcurtain loop --pty                      this machine's Claude Code
      ironcurtain loop -n 5 -- ./my-agent --fast  any command of this machine
    The settings in force, and where each comes from (ralph.yml, flags):
      ironcurtain loop config

    A command of this machine runs as you, with all that you may do; --agent keeps it in a container. It gets the prompt
    on standard input; with --pty or --observe as its last argument; or wherever its words contain {prompt}.

    \b
    Keys with --pty and --observe (within a paste they are just text):
      Ctrl-C   goes to the agent; twice within a second ends it, and the loop
      Ctrl-\\   kills it, and ends the loop

    An iteration that shows nothing and gets no keys for 30 s is ended, and the next one begins: --idle-timeout.

    View it from another terminal with: ironcurtain attach N. If kill -9 leaves your terminal garbled, type: reset

    With --on or --label, in a fleet, another machine runs it once it has room, and this command ends at once. It needs
    --agent. The prompt, the settings and this machine's [budget] travel there; that machine's limits count as well.

    Exit status: 0 LOOP_COMPLETE was printed, 3 a limit was reached, 4 too many failures, 64 wrong usage, 78 an
    error in ralph.yml, 130 and 143 interrupted.
    """
    from ironcurtain.errors import UsageError
    from ironcurtain.loop.config import values_of
    from ironcurtain.loop.model import choose_mode

    if json_output and action is None:
        raise UsageError(
            "--json is for 'ironcurtain loop config': what a loop prints is its programs' output. What became of it is "
            "in loop.json in the session's directory"
        )
    place = absolute_path(given["workspace"] or "")
    earlier = _earlier(given["resume"]) if given["resume"] else None
    if earlier is not None:
        if given["workspace"] is not None:
            raise UsageError("a resumed loop keeps its workspace: omit --workspace")
        place = Path(earlier.workspace)
    found = _effective(given, ctx.meta[_COMMAND], place, earlier)
    settings = found.settings
    cli = settings.cli
    mode = choose_mode(
        cli.pty_mode, cli.pty_interactive, pty=given["pty"], observe=given["observe"], no_pty=given["no_pty"]
    )
    for warning in found.warnings:
        print_lines(f"Warning: {warning}", err=True)
    if action == "config":
        print_settings(values_of(settings), found.origins, json_output)
        return
    if settings.loop.agent and settings.loop.command:
        raise UsageError("give either --agent or a command after --")
    if settings.event_loop.max_cost_usd is not None and not settings.loop.agent:
        raise UsageError("--max-cost needs --agent: the cost of a command of this machine is unknown")
    if settings.loop.wait_for_limits and not settings.loop.agent:
        raise UsageError("--wait-for-limits needs --agent: the account of a command of this machine is unknown")
    from ironcurtain.loop.kind import LoopOptions

    explicit = given["idle_timeout"] is not None or (earlier is not None and earlier.options["loop"]["idle_always"])
    options = LoopOptions(
        settings=values_of(settings), mode=mode, idle_seconds=cli.idle_timeout_secs, idle_always=explicit
    )
    if given["host"] is not None or given["labels"]:
        from ironcurtain.cli.loop_placement import give_loop

        give_loop(home(), options, place, given)
        return
    if given["repo"] or given["restart"]:
        raise UsageError("--repo and --restart need --on or --label")
    from ironcurtain.cli.looping import Looping

    raise SystemExit(Looping(home(), options, place, earlier.id if earlier else "").run())


def _effective(
    given: dict[str, Any], command: tuple[str, ...], place: Path, earlier: SessionInfo | None
) -> LoopConfiguration:
    """:returns: the settings: the defaults, overridden by those of the resumed loop or the file, then by the flags."""
    from ironcurtain.errors import ConfigurationError, UsageError
    from ironcurtain.home.layout import read_configuration
    from ironcurtain.loop.config import FILE, FILE_LIMIT, SettingsLayer, configured, read_file

    layers: list[SettingsLayer] = []
    warnings: tuple[str, ...] = ()
    if earlier is not None:
        layers.append(SettingsLayer(f"session {earlier.number}", earlier.options["loop"]["settings"]))
    if earlier is None or given["config_file"] is not None:
        path = given["config_file"] or place / FILE
        text = read_configuration(path, FILE_LIMIT)
        if text is None and given["config_file"] is not None:
            raise UsageError(f"there is no file {path}")
        if text is not None:
            layer, warnings = read_file(str(path), text)
            layers.append(layer)
    flags = _flags(given, command)
    try:
        return configured(*layers, *flags, warnings=warnings)
    except ConfigurationError as e:
        if e.source in {flag.source for flag in flags}:
            raise UsageError(f"{e.source}: {e.detail}") from None
        raise


def _flags(given: dict[str, Any], command: tuple[str, ...]) -> list[SettingsLayer]:
    from ironcurtain.loop.config import SettingsLayer

    # Resolve the directory now: an agent can replace a directory in its workspace by a link.
    if (file := given["prompt_file"]) is not None:
        file = Path(os.path.realpath(absolute_path(file).parent), file.name)
    values = {
        "event_loop.prompt": ("--prompt", given["prompt"]),
        "event_loop.prompt_file": ("--prompt-file", str(file) if file else None),
        "event_loop.completion_promise": ("--completion-promise", given["completion_promise"]),
        "event_loop.max_iterations": ("--max-iterations", given["max_iterations"]),
        "event_loop.max_runtime_seconds": ("--max-time", given["max_time"]),
        "event_loop.max_cost_usd": ("--max-cost", given["max_cost"]),
        "event_loop.max_consecutive_failures": ("--max-failures", given["max_failures"]),
        "cli.backend": ("--backend", given["backend"]),
        "cli.idle_timeout_secs": ("--idle-timeout", given["idle_timeout"]),
        "loop.agent": ("--agent", given["agent"]),
        "loop.command": ("the words after --", list(command) or None),
        "loop.wait_for_limits": ("--wait-for-limits", given["wait_for_limits"] or None),
        "loop.git_checkpoint": ("--git-checkpoint", given["git_checkpoint"] or None),
    }
    layers = [SettingsLayer(flag, {name: value}) for name, (flag, value) in values.items() if value is not None]
    if given["pty"] or given["observe"]:
        flag = "--observe" if given["observe"] else "--pty"
        layers.append(SettingsLayer(flag, {"cli.pty_mode": True, "cli.pty_interactive": not given["observe"]}))
    elif given["no_pty"]:
        layers.append(SettingsLayer("--no-pty", {"cli.pty_mode": False}))
    if file is not None and given["prompt"] is None:
        layers.append(SettingsLayer("--prompt-file", {"event_loop.prompt": ""}))
    return layers


def _earlier(name: str) -> SessionInfo:
    """:raises UsageError: the session is not a loop."""
    from ironcurtain.errors import UsageError
    from ironcurtain.session.elsewhere import description, session_directory

    info = description(session_directory(home(), name, "loop".__eq__))
    if info.kind != "loop":
        raise UsageError(f"session {info.number} is not a loop: give the number from a loop's summary")
    return info
