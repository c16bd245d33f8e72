"""``ironcurtain start``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ironcurtain.cli.backends import BackendOption
from ironcurtain.cli.completion import agents, all_sessions
from ironcurtain.cli.output import home, print_lines, print_table, settings
from ironcurtain.cli.paths import UserPath
from ironcurtain.home.agent_names import OWN_AGENTS, listed, marked
from ironcurtain.home.host_numbers import ANY_HOST
from ironcurtain.home.user_paths import absolute_path

BUILT_IN = "builtin"
"""The default agent, which does not need a container."""

WITH_SCREEN = "claude-code"
"""The default agent with ``--pty``."""

TURNS_SHOWN = 3
"""Number of messages, with their answers, that are shown when a conversation is resumed."""

_OTHERS = {
    "shell": "was a shell: start another one with 'ironcurtain shell'",
    "loop": "is a loop: resume it with 'ironcurtain loop --resume {}'",
    "mcp-proxy": "served MCP clients, and has no agent to resume",
}
"""Kinds of sessions that this command does not start."""


@click.command(context_settings={"allow_extra_args": True})
@click.argument("task", required=False)
@click.option("--agent", shell_complete=agents, help="The agent: builtin, or one of --list-agents.")
@click.option("--pty", is_flag=True, help="Show the agent's own full-screen interface.")
@click.option("--list-agents", is_flag=True, help="List the agents, and exit.")
@click.option("--model", help="The model, by its provider's name for it.")
@click.option(
    "--sandbox",
    type=click.Choice(("container", "bubblewrap")),
    help="Where an agent program runs (default: in a container if Docker answers, else with bubblewrap).",
)
@click.option("--account", metavar="NAME", help="The account that pays for an agent program, such as claude.")
@click.option(
    "--backend",
    type=BackendOption(),
    multiple=True,
    help="The built-in agent's model: anthropic[:MODEL], openai[:MODEL], google[:MODEL], openai-chat:MODEL, "
    "scripted:FILE, subprocess:COMMAND. Repeated: the next one is asked where one cannot be reached.",
)
@click.option("--workspace", type=UserPath(), help="The directory to work on (default: a new one).")
@click.option("--repo", metavar="URL", help="Clone this repository (https or ssh) into a new directory first.")
@click.option("--on", "host", metavar="HOST", help="Run it on another machine of the fleet, or on 'any' with room.")
@click.option("--label", "labels", multiple=True, help="As --on any, on a machine that has this label. Repeated: all.")
@click.option(
    "--restart", is_flag=True, help="With --on any: start it again elsewhere if its machine is lost; needs --repo."
)
@click.option("--stdin/--no-stdin", default=None, help="Wait for piped input without a time limit; or do not read it.")
@click.option("--json", "json_output", is_flag=True, help="Print the answer, its usage and the session as JSON.")
@click.option("--policy", type=UserPath(), help="The policy (default: policy.toml in the home).")
@click.option(
    "-r",
    "--resume",
    metavar="SESSION",
    shell_complete=all_sessions,
    help="Resume an ended session: its number, its id, or 'last'.",
)
@click.pass_context
def start(
    context: click.Context,
    /,
    task: str | None,
    agent: str | None,
    pty: bool,
    list_agents: bool,
    model: str | None,
    sandbox: str | None,
    account: str | None,
    backend: tuple[str, ...],
    workspace: Path | None,
    repo: str | None,
    host: str | None,
    labels: tuple[str, ...],
    restart: bool,
    stdin: bool | None,
    json_output: bool,
    policy: Path | None,
    resume: str | None,
) -> None:
    """
    Run an agent on TASK, or without one, in a conversation.

    \b
    With a task: the answer goes to standard output, the rest to standard error.
      ironcurtain start --workspace . "What does this project do?"
    Piped input is added to the task, as data:
      git diff | ironcurtain start --workspace . "Review this"
    Without a task: a conversation. /help lists its commands.
      ironcurtain start --workspace .
    An agent program, in a container or a sandbox of bubblewrap:
      ironcurtain start --agent claude-code --workspace . "Fix the tests"

    The agent works on the files of its workspace. You are asked about calls that reach further: answer with /approve N
    or /deny N, or with 'ironcurtain approve N' in another terminal. Ctrl-C cancels the message. Ctrl-C twice leaves,
    which ends the session unless another terminal is attached to it in the daemon. /detach leaves it running;
    'ironcurtain attach N' continues it. Afterwards, 'ironcurtain diff' shows what changed, and 'ironcurtain start -r
    last' resumes the session.

    \b
    With --pty: the agent program's own interface. TASK is its first message.
      ironcurtain start --pty --workspace . "Fix the tests"

    All keys go to the agent, except two, typed alone: Ctrl-\\ ends the session, and Ctrl-] and then d detaches. The
    session continues in the daemon if there is one (ironcurtain attach N returns to it), else while this command runs.
    The bell rings when a call waits: answer in another terminal. If SIGKILL leaves your terminal garbled: type reset
    and Enter, or Ctrl-J if Enter does nothing, even if you cannot see it. The exit status is then that of the agent's
    program, 143 after SIGTERM; 0 if you detached.

    With --on, in a fleet, another machine's daemon runs the session, and you talk with it here:

    \b
      ironcurtain start --on build-3 --repo https://example.org/app "Fix it"

    Paths are paths on that machine, and the workspace stays there. With --on any or --label, the task waits until
    another machine has room, and this command ends at once: 'ironcurtain fleet status' shows where the task is.

    Exit status: 0 answered, 1 the message failed, 64 wrong usage, 69 Docker or another requirement is not available,
    130 and 143 interrupted.
    """
    if list_agents:
        show_agents()
        return
    if context.args:
        raise click.UsageError('TASK is one argument: put it in quotes, as in ironcurtain start "Fix the tests"')
    where = home()
    given = {
        **{"model": model, "sandbox": sandbox, "account": account, "backend": absolute(backend), "repo": repo},
        "policy": path_text(policy),
    }
    options = {name: value for name, value in given.items() if value}
    check_task(task, pty, stdin, json_output)
    if labels and host not in (None, ANY_HOST):
        raise click.UsageError("--label chooses the machine: omit --on, or give --on any")
    if labels or host == ANY_HOST:
        check_queued(task, [pty, json_output, workspace, policy, resume])
        host = ANY_HOST
    if restart and (host != ANY_HOST or not repo):
        raise click.UsageError("--restart needs --on any or --label, and --repo: it begins again from the repository")
    if host is not None:
        check_host(host, [workspace, policy], backend, resuming=resume is not None)
    place = absolute_path(workspace) if workspace is not None else None
    if resume is None:
        session, default = "", "" if agent else settings(where).settings.default_agent
        chosen, why = choose_agent(agent, default, pty) if host is None else choose_there(host, agent, pty)
    else:
        session, chosen, why = to_resume(resume, agent)
    check(chosen, options, place, resuming=resume is not None)
    if pty and host is None:
        check_screen(chosen)
    print_lines(f"Agent: {chosen} ({why})" if chosen else f"Agent: {why}", err=True)
    if place is not None and host is None and chosen != BUILT_IN:
        from ironcurtain.cli.project_questions import ask_first

        ask_first(place, sandbox or "", commands=not pty)
    if resume is not None and task is None and not pty:
        for line in last_turns(session):
            print_lines(line, err=True)
    from ironcurtain.session.model import SessionRequest

    # What a program put into the command line has more lines, as a rule.
    typed = task if task is not None and "\n" not in task else ""
    if task and not pty and stdin is not False:
        task = with_standard_input(task, patient=bool(stdin))
    if host == ANY_HOST:
        from ironcurtain.cli.placement import give
        from ironcurtain.fleet.tasks import Body

        give(where, chosen, Body(task=task or "", options=options, restart=restart), labels, "")
        return
    size = None
    if pty:
        from ironcurtain.terminal.raw import RawMode

        size = RawMode().size()
    request = SessionRequest(chosen, task or "", place, options, resume=session, typed=typed, terminal=size)
    early = None
    if not host:
        from ironcurtain.control.early import asked_early

        early = asked_early(where, request, hold=not pty)
    if pty:
        from ironcurtain.cli.screen import Screen

        raise SystemExit(Screen(where, request, host or "", early).run())
    from ironcurtain.cli.play import Play

    raise SystemExit(Play(where, request, json_output=json_output, host=host or "", early=early).run())


def check_task(task: str | None, pty: bool, stdin: bool | None, json_output: bool) -> None:
    """:raises click.UsageError: the task is empty, or missing although an option needs one."""
    if task is not None and not task.strip():
        raise click.UsageError("TASK is empty (an unset variable?): describe the task, or omit TASK for a conversation")
    for option, given in (("--stdin", stdin), ("--json", json_output)):
        if given and (task is None or pty):
            raise click.UsageError(f"{option} needs a TASK, and cannot be used with --pty")


def with_standard_input(task: str, patient: bool) -> str:
    """
    :param patient: wait for the first byte without a time limit.
    :returns: the task, with the piped data.
    :raises UsageError: that is too long, or not text.
    """
    import secrets

    from ironcurtain.cli.piped import FIRST_BYTE_SECONDS, read_piped, with_data

    data = read_piped(0, patient)
    if data is None:
        click.echo(
            f"Nothing was piped in within {FIRST_BYTE_SECONDS:g} s: continuing without. --stdin waits for it.",
            err=True,
        )
    return with_data(task, data or b"", secrets.token_hex(4))


def show_agents() -> None:
    """Print the agents with the models that each can use."""
    from ironcurtain.agents.registry import installed

    rows = [(BUILT_IN, "IronCurtain's own, without a container", "anthropic")]
    rows += [(a.id, marked(a.id, a.display_name), a.problem or ", ".join(a.providers)) for a in installed().listing()]
    print_table(("AGENT", "NAME", "MODELS OF"), rows)


def last_turns(session: str) -> list[str]:
    """
    :param session: id of a session.
    :returns: its last messages and answers, a line each.
    """
    import shutil

    from ironcurtain.cli.terminal.reports import history_lines
    from ironcurtain.session.history import read_turns
    from ironcurtain.text.columns import unstyled
    from ironcurtain.view.look import signs_for

    turns = read_turns(home().session(session).history)[-TURNS_SHOWN:]
    width, signs = shutil.get_terminal_size().columns, signs_for(sys.stderr.encoding)
    return [unstyled(line) for line in history_lines(turns, width, signs)] if turns else []


def to_resume(name: str, agent: str | None) -> tuple[str, str, str]:
    """
    :param name: a session, as commands take it.
    :returns: its id, its agent, and the source of that choice.
    :raises NotFound: there is no such session.
    :raises click.UsageError: it was not started by this command.
    """
    from ironcurtain.session.elsewhere import description, session_directory

    info = description(session_directory(home(), name, lambda kind: kind not in _OTHERS))
    if info.kind in _OTHERS:
        raise click.UsageError(f"session {info.number} {_OTHERS[info.kind].format(info.number)}")
    if agent is not None and agent != info.kind:
        raise click.UsageError(f"session {info.number} is one of {info.kind}: it cannot be resumed with {agent}")
    return info.id, info.kind, f"to resume session {info.number}"


def check(agent: str, options: dict[str, Any], workspace: Path | None, *, resuming: bool) -> None:
    """:raises click.UsageError: the options cannot be combined."""
    if agent not in (BUILT_IN, "") and "backend" in options:
        raise click.UsageError("--backend is for the built-in agent: other agents reach the models of their providers")
    if agent == BUILT_IN and "account" in options:
        raise click.UsageError("--account is for agent programs: --backend chooses the built-in agent's model")
    if agent == BUILT_IN and "sandbox" in options:
        raise click.UsageError("--sandbox is for agent programs: the built-in agent needs none")
    if workspace is not None and "repo" in options:
        raise click.UsageError("give either --workspace or --repo")
    if resuming and (workspace is not None or "repo" in options):
        raise click.UsageError("a resumed session keeps its workspace: omit --workspace and --repo")


def check_screen(agent: str) -> None:
    """
    :raises click.UsageError: the agent has no interactive interface.
    :raises NoTerminal: there is no terminal.
    """
    from ironcurtain.agents.registry import installed
    from ironcurtain.terminal.raw import NoTerminal, have_terminal

    if agent == BUILT_IN:
        raise click.UsageError(
            "the built-in agent has no interactive interface: name another one with --agent, or omit --pty"
        )
    if not (adapter := installed().find(agent)).supports_pty:
        raise click.UsageError(f"{adapter.display_name} has no interactive interface: omit --pty")
    if not have_terminal():
        raise NoTerminal


def check_host(host: str, paths: Sequence[Path | None], backends: Sequence[str], *, resuming: bool) -> None:
    """
    :param paths: that were given.
    :raises click.UsageError: the session cannot be started on another host.
    """
    from ironcurtain.fleet.trust import NAME

    if NAME.fullmatch(host) is None:
        raise click.UsageError("--on takes the name of a machine, as 'ironcurtain fleet status' lists it")
    if resuming:
        raise click.UsageError("--on starts a new session: resume another machine's session there")
    scripts = [Path(file) for name, _, file in (each.partition(":") for each in backends) if name == "scripted"]
    for path in [*paths, *scripts]:
        if path is not None and not path.is_absolute():
            raise click.UsageError(f"{path}: with --on, a path is one on {host}, and has to be absolute")


def check_queued(task: str | None, others: Sequence[object]) -> None:
    """
    :param others: values of options that need a certain machine, or this terminal.
    :raises click.UsageError: the task cannot wait for a machine.
    """
    if task is None:
        raise click.UsageError("a task that waits for a machine needs a TASK")
    if any(others):
        raise click.UsageError("--on any and --label take no --pty, --json, --workspace, --policy or --resume")


def choose_there(host: str, asked: str | None, pty: bool) -> tuple[str, str]:
    """
    :param asked: the value of ``--agent``, which that host judges.
    :returns: the agent that another host is asked for, and the source of that choice; empty: the host's default one.
    """
    if asked:
        return asked, "--agent"
    return (
        (WITH_SCREEN, "the default with --pty")
        if pty
        else ("", "the default one" + ("" if host == ANY_HOST else f" of {host}"))
    )


def absolute(backends: Sequence[str]) -> list[str]:
    """:returns: the backends, with the absolute paths of scripted ones, for the daemon."""
    split = [backend.partition(":") for backend in backends]
    return [
        f"{name}:{absolute_path(file)}" if colon and name == "scripted" else f"{name}{colon}{file}"
        for name, colon, file in split
    ]


def path_text(path: Path | None) -> str | None:
    """:returns: the absolute path, for the daemon."""
    return str(absolute_path(path)) if path is not None else None


def choose_agent(asked: str | None, default: str, pty: bool = False) -> tuple[str, str]:
    """
    :param asked: the value of ``--agent``.
    :param default: the setting ``default_agent``.
    :param pty: whether it has to have an interactive interface.
    :returns: the agent, and the source of that choice.
    :raises click.UsageError: there is no such agent.
    """
    usual = (WITH_SCREEN, "the default with --pty") if pty else (BUILT_IN, "the default")
    agent, why = (asked, "--agent") if asked else (default, "default_agent") if default else usual
    if agent == BUILT_IN or agent in OWN_AGENTS:
        return agent, why
    from ironcurtain.agents.registry import installed

    names = [BUILT_IN, *installed().names]
    if agent not in names:
        raise click.UsageError(f"there is no agent {agent!r} ({why}): choose one of {listed(names)}")
    return agent, why
