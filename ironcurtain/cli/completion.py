"""``ironcurtain completion``, and completions of names, read from the home without asking any process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from ironcurtain.errors import IronCurtainError

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home

Completions = list[CompletionItem[str]]

VARIABLE = "_IRONCURTAIN_COMPLETE"
"""The environment variable that a completion script sets; click derives its name from the program's."""

REQUEST_LIMIT = 4 * 1024 * 1024
"""Maximum number of bytes read from the file of an escalation to find its number."""


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """
    Print a script that makes SHELL complete commands, sessions, agents and escalations.

    \b
    In ~/.bashrc:                     eval "$(ironcurtain completion bash)"
    In ~/.zshrc, after compinit:      eval "$(ironcurtain completion zsh)"
    In ~/.config/fish/config.fish:    ironcurtain completion fish | source
    """
    completer = get_completion_class(shell)
    assert completer is not None
    click.echo(completer(ctx.find_root().command, {}, "ironcurtain", VARIABLE).source())


def running_sessions(_: click.Context, __: click.Parameter, incomplete: str) -> Completions:
    """:returns: ``last`` and the running sessions: by number, or by id if the typed text begins one."""
    return _sessions(incomplete, ended=False)


def watcher_names(_: click.Context, __: click.Parameter, incomplete: str) -> Completions:
    """:returns: the names of the watchers."""
    from ironcurtain.cli.output import home
    from ironcurtain.operations.watchers import watchers_of

    try:
        names = [watcher.name for watcher in watchers_of(home())]
    except IronCurtainError:
        return []
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def all_sessions(_: click.Context, __: click.Parameter, incomplete: str) -> Completions:
    """:returns: ``last`` and all sessions, running or ended."""
    return _sessions(incomplete, ended=True)


def agents(context: click.Context, parameter: click.Parameter, incomplete: str) -> Completions:
    """:returns: the ids of the agents."""
    from ironcurtain.home.settings import BUILT_IN_AGENT

    own = [CompletionItem(BUILT_IN_AGENT)] if BUILT_IN_AGENT.startswith(incomplete) else []
    return own + in_containers(context, parameter, incomplete)


def in_containers(_: click.Context, __: click.Parameter, incomplete: str) -> Completions:
    """:returns: the agents that run in containers."""
    from ironcurtain.agents.registry import installed
    from ironcurtain.errors import IronCurtainError
    from ironcurtain.home.agent_names import UNTESTED, UNTESTED_MARK

    with suppress(IronCurtainError):
        names = [name for name in installed().names if name.startswith(incomplete)]
        return [CompletionItem(name, help=UNTESTED_MARK if name in UNTESTED else None) for name in names]
    return []


def waiting(_: click.Context, parameter: click.Parameter, incomplete: str) -> Completions:
    """:returns: the numbers of the pending escalations."""
    found = sorted(_waiting())
    return [CompletionItem(str(number), help=what) for number, what in found if str(number).startswith(incomplete)]


def _sessions(incomplete: str, *, ended: bool) -> Completions:
    found = sorted(_of_home(ended), reverse=True)
    named = [("last", "the newest"), *((str(number), label) for number, _, label in found)]
    named += [(session, label) for _, session, label in found if incomplete]
    return [CompletionItem(name, help=label) for name, label in named if name.startswith(incomplete)]


def _of_home(ended: bool) -> Iterator[tuple[int, str, str]]:
    """:returns: number, id and label of each session."""
    from ironcurtain.home.registry import SessionRegistry
    from ironcurtain.session.elsewhere import snapshots
    from ironcurtain.text.display import one_line

    if (home := _home()) is None:
        return
    if ended:
        for known in snapshots(home):
            yield known.number, known.id, one_line(known.label)
    else:
        for entry in SessionRegistry(home.registry).live():
            yield entry.number, entry.session_id, one_line(entry.label)


def _waiting() -> Iterator[tuple[int, str]]:
    """:returns: number and tool of each pending escalation."""
    from pathlib import Path

    import msgspec

    from ironcurtain.home.registry import SessionRegistry, read_small_file
    from ironcurtain.text.display import one_line

    if (home := _home()) is None:
        return
    for entry in SessionRegistry(home.registry).live():
        for path in Path(entry.escalation_dir).glob("request-*.json") if entry.escalation_dir else ():
            with suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError):
                request = msgspec.json.decode(read_small_file(path, REQUEST_LIMIT))
                yield request["number"], one_line(f"{request['serverName']}.{request['toolName']}")


def _home() -> Home | None:
    from ironcurtain.errors import IronCurtainError
    from ironcurtain.home.layout import find_home

    with suppress(IronCurtainError):
        return find_home(os.environ, os.geteuid())
    return None
