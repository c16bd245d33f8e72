"""
The ``ironcurtain`` command. Each command is a module that is imported when it is called, so that ``--help`` is fast.
"""

from __future__ import annotations

# ruff: noqa: E402
from ironcurtain import __version__, import_only_installed, look_for_garbage_late

import_only_installed()
look_for_garbage_late()

import importlib
import io
import os
import re
import sys
from collections.abc import Mapping, Sequence
from gc import freeze  # by name: the command gc is a module of this package
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_UTF8_LOCALE = re.compile(r"(?i:utf-?8)|^(?:C|POSIX)?$")
"""Names of locales with UTF-8, and of those that say nothing about the encoding."""

COMMANDS: Mapping[str, tuple[str, str]] = {
    "start": ("start", "Run an agent on a task, or in a conversation."),
    "loop": ("loop", "Run an agent repeatedly until its task is done."),
    "shell": ("shell", "Your own shell, with an agent that proposes commands."),
    "watch": ("watch", "Run an agent when lines of a stream match a pattern."),
    "watchers": ("watchers", "List, check, test, pause or resume the watchers."),
    "sessions": ("sessions", "List the running sessions."),
    "stop": ("sessions", "End a session."),
    "attach": ("attach", "Attach to a session."),
    "observe": ("attach", "View a session's terminal."),
    "escalations": ("escalations", "List the calls that wait for a decision."),
    "approve": ("escalations", "Approve a waiting call, once."),
    "deny": ("escalations", "Deny a waiting call."),
    "answer": ("answer", "Fill in a form of an MCP server."),
    "permissions": ("permissions", "List the kept approvals."),
    "revoke": ("permissions", "Revoke a kept approval."),
    "tools": ("tools", "List, show or accept definitions of MCP tools."),
    "escalation-listener": ("escalation_listener", "Watch sessions and decide on waiting calls."),
    "replay": ("replay", "Play the recording of a session's terminal."),
    "diff": ("diff", "Show what an agent changed in its workspace."),
    "undo": ("undo", "Restore the workspace as it was before a turn."),
    "export": ("export", "Copy a session's workspace to another place."),
    "logs": ("logs", "Show a session's log."),
    "audit": ("audit", "Verify, show or follow a session's audit log."),
    "report": ("report", "Report on sessions: requests, decisions, calls, cost."),
    "feedback": ("feedback", "Say what you think of what the shell's agent did."),
    "traces": ("traces", "Copy the traces of shells, to give them away."),
    "policy": ("policy", "Check, test and explain the policy."),
    "config": ("config", "Show the settings, or check the files of the home."),
    "reload": ("reload", "Make the daemon read config.toml again."),
    "systemd-unit": ("systemd_unit", "Print a systemd unit for the daemon."),
    "init": ("init", "Create the home directory with configuration files."),
    "doctor": ("doctor", "Check this installation, and say how to fix it."),
    "prove": ("prove", "Test the sandboxes with a hostile program."),
    "images": ("images", "Build and manage the agents' container images."),
    "cleanup": ("cleanup", "Remove the files of old sessions."),
    "gc": ("gc", "Remove containers that dead processes left behind."),
    "login": ("login", "Log in with a subscription, or list the logins."),
    "logout": ("login", "Remove a login from this machine."),
    "mcp": ("mcp", "Add, list, test and remove MCP servers, or log in."),
    "mcp-proxy": ("mcp_proxy", "Put MCP servers under policy, for any MCP client."),
    "mitm-proxy": ("mitm_proxy", "Forward an agent's requests to its model provider."),
    "ssh": ("ssh", "Manage the keys that may log in over SSH."),
    "fleet": ("fleet", "See and answer the sessions of several machines."),
    "completion": ("completion", "Print a completion script for your shell."),
    "demo": ("demo", "Run an example session without Docker or a key."),
}
"""Each command's module in this package, and its line in the help."""


class Commands(click.Group):
    """The commands; only the one that is called is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """:returns: the names in the order of :data:`COMMANDS`."""
        return list(COMMANDS)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """:raises NoSuchCommand: there is none; it names similar ones."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as e:
            raise click.NoSuchCommand(e.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """:returns: the command, imported now."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"ironcurtain.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """:returns: the matching names, without importing the commands; else the group's options."""
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
    Run AI agents that you do not have to trust.

    An agent reaches files and services only through a policy. Where the policy requires it, you are asked first, and
    everything is recorded. Try it with: ironcurtain demo

    Files are in ~/.ironcurtain, or in the directory IRONCURTAIN_HOME. Exit status: 0 success, 1 failure, 64 wrong
    usage, 69 not available, 77 not allowed, 78 error in a configuration file, 130 and 143 interrupted.
    """


def main() -> None:
    """The entry point of the installed command."""
    from ironcurtain.errors import IronCurtainError
    from ironcurtain.home.user_paths import check_file_names

    _complete_streams()
    _encode_streams()
    stdout = sys.stdout
    try:
        check_file_names()
        _check_words(sys.argv[1:])
        status = commands.main(prog_name="ironcurtain", standalone_mode=False)
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
        # When the reader of the output has gone, such as `head`, click replaces the stream and exits with 1, although
        # the command succeeded.
        status = e.code if sys.stdout is stdout else 0
    _leave(status if isinstance(status, int) else 0)


def _complain(text: str) -> None:
    from ironcurtain.cli.output import print_lines

    print_lines(f"ironcurtain: {text}", err=True)


def _check_words(words: Sequence[str]) -> None:
    """:raises UsageError: one is not UTF-8: it could neither be recorded nor sent to another process."""
    for word in words:
        if not word.isascii():
            from ironcurtain.home.user_paths import check_encodable

            check_encodable(word, "argument", "rename it if it is a file, or write it in UTF-8")


def _complete_streams() -> None:
    # The descriptor of a closed standard stream would be used for the next file that is opened, such as an audit log.
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.set_inheritable(number, True)  # else it would be closed in every program that is started
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115  # for this process


def _encode_streams() -> None:
    # What a terminal cannot show is escaped. The launcher chose UTF-8 for names of files, which holds for Python's
    # streams, too; other encodings than it and ASCII are the terminal's own.
    encoding = None
    if sys.flags.utf8_mode and not _UTF8_LOCALE.search(_locale_name()):
        import locale

        encoding = locale.getencoding()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _locale_name() -> str:
    return next((name for each in ("LC_ALL", "LC_CTYPE", "LANG") if (name := os.environ.get(each))), "")


def _leave(status: int) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            _silence(stream)
        except OSError:
            _silence(stream)
            status = status or 1
    # All that is left goes with the process; looking for garbage in it took a quarter of the time of a command.
    freeze()
    # The interpreter's worker pool sometimes aborts the process while Python shuts down (measured: 2 of 25 times), so a
    # process that opened it exits at once, after flushing.
    pool = sys.modules.get("ironcurtain.codemode.pool")
    if pool is None or not pool.ever_opened():
        sys.exit(status)
    os._exit(status)


def _silence(stream: TextIO) -> None:
    """
    Discard what a stream could not write. Python would try to write it again while it shuts down, and report an error.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
