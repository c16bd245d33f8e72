"""
The ``ironcurtain`` command. Each command is a module of its own, loaded when it is called: so ``--help`` is instant.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

import click

from ironcurtain import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: Mapping[str, tuple[str, str]] = {
    "start": ("start", "Run an agent on a task, or talk with it."),
    "loop": ("loop", "Run an agent again and again until it says that all is done."),
    "shell": ("shell", "Your own shell, with an agent that proposes commands."),
    "sessions": ("sessions", "List the sessions that run now."),
    "stop": ("sessions", "End a session."),
    "attach": ("attach", "Sit down at a session's terminal."),
    "observe": ("attach", "Look at a session's terminal."),
    "escalations": ("escalations", "List the calls that wait for a decision."),
    "approve": ("escalations", "Let a waiting call happen, once."),
    "deny": ("escalations", "Refuse a waiting call."),
    "permissions": ("permissions", "List the approvals that were kept."),
    "revoke": ("permissions", "Take back an approval that was kept."),
    "tools": ("tools", "List, show or accept definitions of tools that were withheld."),
    "escalation-listener": ("escalation_listener", "See what waits for a decision, and decide, on the whole screen."),
    "replay": ("replay", "Play the recording of a session's terminal."),
    "diff": ("diff", "Show what an agent changed in its workspace."),
    "export": ("export", "Copy a session's workspace to another place."),
    "logs": ("logs", "Show a session's log."),
    "audit": ("audit", "Verify, show or follow the record of what was done."),
    "policy": ("policy", "Check the policy, or explain a verdict."),
    "config": ("config", "Show the settings, or check the files of the home."),
    "reload": ("reload", "Have the daemon read config.toml again."),
    "systemd-unit": ("systemd_unit", "Print a unit by which systemd runs the daemon."),
    "init": ("init", "Make the home directory with files to start from."),
    "doctor": ("doctor", "Say what is missing here and how to mend it."),
    "prove": ("prove", "Run a hostile program in the sandboxes, and show that they hold."),
    "images": ("images", "Build and look after the agents' container images."),
    "gc": ("gc", "Remove containers that dead processes left behind."),
    "mcp-proxy": ("mcp_proxy", "Put MCP servers under policy, for any MCP client."),
    "mitm-proxy": ("mitm_proxy", "Stand between an agent and its model provider, with the real key."),
    "ssh": ("ssh", "Say who may come in over SSH, and with which roles."),
    "completion": ("completion", "Print a script by which a shell completes commands and names."),
    "demo": ("demo", "Play a whole session: no Docker and no API key needed."),
}
"""Each command's module in this package, and its line in the help."""


class Commands(click.Group):
    """The commands, of which only the one that is called is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """:returns: the names in the order of :data:`COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """:returns: the command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"ironcurtain.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """:returns: the names that begin so, without importing the commands; else our own options."""
        from click.shell_completion import CompletionItem

        begun = [(name, line) for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=line) for name, line in begun), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="ironcurtain")
def commands() -> None:
    """
    Run AI agents nobody trusts, and keep the last word.

    An agent reaches files and services only through a policy. What the policy does not settle is put before you, and
    everything is recorded. Try it now with: ironcurtain demo

    Files lie in ~/.ironcurtain, or where IRONCURTAIN_HOME says. Exit statuses: 0 done, 1 failed, 64 wrong usage,
    69 not there, 77 not allowed, 78 a file of yours is wrong, 130 and 143 interrupted.
    """


def main() -> None:
    """The entry point of the installed command."""
    from ironcurtain.errors import IronCurtainError

    _complete_streams()
    stdout = sys.stdout
    try:
        status = commands.main(standalone_mode=False)
    except click.UsageError as e:
        e.show()
        status = 64
    except click.ClickException as e:
        e.show()
        status = e.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        status = 130
    except IronCurtainError as e:
        _complain(str(e))
        status = e.exit_status
    except OSError as e:
        where = f"{e.filename}: " if e.filename else ""
        _complain(f"{where}{e.strerror or e}")
        status = 1
    except SystemExit as e:
        # When nobody reads our output any more, `head` for example, click puts something silent in place of the stream
        # and ends with 1; but what was asked for was done.
        status = e.code if sys.stdout is stdout else 0
    _leave(status if isinstance(status, int) else 0)


def _complain(text: str) -> None:
    from ironcurtain.cli.output import print_lines

    print_lines(f"ironcurtain: {text}", err=True)


def _complete_streams() -> None:
    # The number of a standard stream that is closed goes to the next file that is opened, such as an audit log.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115  # for this process


def _leave(status: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            _silence(stream)
        except OSError:
            _silence(stream)
            status = status or 1
    # The interpreter's worker pool aborts the process now and then while Python shuts down (measured: 2 of 25 times),
    # so a process that opened it leaves at once, with everything written.
    pool = sys.modules.get("ironcurtain.codemode.pool")
    if pool is None or not pool.ever_opened():
        sys.exit(status)
    os._exit(status)


def _silence(stream: TextIO) -> None:
    """What a stream could not write, Python would try to write again while it shuts down, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
