"""``ironcurtain start``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ironcurtain.cli.completion import agents, all_sessions
from ironcurtain.cli.output import home, print_table, settings

BUILT_IN = "builtin"
"""The agent that needs no container; it runs unless another one is asked for."""

WITH_SCREEN = "claude-code"
"""The agent that runs with ``--pty`` unless another one is asked for."""

_OTHERS = {
    "loop": "is a loop: go on with 'ironcurtain loop --resume {}'",
    "mcp-proxy": "served MCP clients, and had no agent of ours that could go on",
}
"""Kinds of sessions that this command does not start."""


@click.command()
@click.argument("task", required=False)
@click.option("--agent", shell_complete=agents, help="Which agent: builtin, or one of --list-agents.")
@click.option("--pty", is_flag=True, help="Show the agent's own full screen here, instead of messages and answers.")
@click.option("--list-agents", is_flag=True, help="List the agents, and do nothing else.")
@click.option("--model", help="The model, as its provider spells it.")
@click.option("--backend", help="Where the model of the built-in agent is: anthropic, or scripted:FILE.")
@click.option("--workspace", type=click.Path(path_type=Path), help="The directory to work on; without it, a fresh one.")
@click.option("--mask", is_flag=True, help="Cover what is protected in the workspace, instead of refusing it.")
@click.option("--repo", metavar="URL", help="Clone this repository (https or ssh) into a fresh directory first.")
@click.option(
    "--stdin/--no-stdin", default=None, help="Wait for what is piped in, however long it takes; or do not read it."
)
@click.option("--json", "json_output", is_flag=True, help="Print the answer, its usage and the session as JSON.")
@click.option("--policy", type=click.Path(path_type=Path), help="The policy (default: policy.toml at home).")
@click.option(
    "-r",
    "--resume",
    metavar="SESSION",
    shell_complete=all_sessions,
    help="Go on with a session that ended: its number, its id, or 'last'.",
)
def start(
    task: str | None,
    agent: str | None,
    pty: bool,
    list_agents: bool,
    model: str | None,
    backend: str | None,
    workspace: Path | None,
    mask: bool,
    repo: str | None,
    stdin: bool | None,
    json_output: bool,
    policy: Path | None,
    resume: str | None,
) -> None:
    """
    Run an agent on TASK, or, without one, talk with it.

    \b
    With a task: the answer goes to standard output, all else to standard error.
      ironcurtain start --workspace . "What does this project do?"
    What is piped in goes with the task, as data:
      git diff | ironcurtain start --workspace . "Review this"
    Without: a conversation. /help lists what you can type.
      ironcurtain start --workspace .
    An agent program, in a container without a network (needs Docker):
      ironcurtain start --agent claude-code --workspace . "Mend the tests"

    The agent works on the files of its workspace. What reaches further is put before you: answer with /approve N or
    /deny N there, or from another terminal with 'ironcurtain approve N'. Ctrl-C cancels the message, twice it leaves,
    which ends the session unless somebody else has joined it in the daemon; /detach leaves it, and 'ironcurtain attach
    N' goes on with it elsewhere. Afterwards: 'ironcurtain diff' shows what changed, 'ironcurtain start -r last' goes
    on.

    \b
    With --pty: the agent program's own full screen. TASK is what it begins with.
      ironcurtain start --pty --workspace . "Mend the tests"

    All keys go to the agent but two, each pressed by itself: Ctrl-\\ ends the session, and Ctrl-] and then d leaves it.
    It goes on in the daemon if there is one (ironcurtain attach N comes back), else as long as this command runs. The
    bell rings for what is put before you: answer in another terminal. If your terminal is in disorder after SIGKILL:
    type reset and Enter, or Ctrl-J where Enter does nothing, unseen if need be. The exit status is then that of the
    agent's program, 143 after SIGTERM; 0 if you left it.

    Exit status: 0 an answer, 1 the message failed, 64 wrong usage, 69 Docker or something else that is needed is not
    there, 130 and 143 interrupted.
    """
    if list_agents:
        show_agents()
        return
    where = home()
    given = {"model": model, "backend": absolute(backend), "repo": repo, "policy": path_text(policy), "mask": mask}
    options = {name: value for name, value in given.items() if value}
    check_task(task, pty, stdin, json_output)
    place = workspace.expanduser().absolute() if workspace is not None else None
    if resume is None:
        session, (chosen, why) = "", choose_agent(agent, settings(where).settings.default_agent, pty)
    else:
        session, chosen, why = to_resume(resume, agent)
    check(chosen, options, place, resuming=resume is not None)
    if pty:
        check_screen(chosen)
    click.echo(f"Agent: {chosen} ({why})", err=True)
    from ironcurtain.session.model import SessionRequest

    if task and not pty and stdin is not False:
        task = with_standard_input(task, patient=bool(stdin))
    request = SessionRequest(chosen, task or "", place, options, resume=session)
    if pty:
        from ironcurtain.cli.screen import Screen

        raise SystemExit(Screen(where, request).run())
    from ironcurtain.cli.play import Play

    raise SystemExit(Play(where, request, json_output=json_output).run())


def check_task(task: str | None, pty: bool, stdin: bool | None, json_output: bool) -> None:
    """:raises click.UsageError: the task is empty, or missing where an option needs one."""
    if task is not None and not task.strip():
        raise click.UsageError("TASK is empty (an unset variable?): say what is to be done, or leave TASK out to talk")
    for option, given in (("--stdin", stdin), ("--json", json_output)):
        if given and (task is None or pty):
            raise click.UsageError(f"{option} needs a TASK, and goes without --pty")


def with_standard_input(task: str, patient: bool) -> str:
    """
    :param patient: wait for the first byte however long it takes.
    :returns: the task, with what was piped in.
    :raises UsageError: that is too long, or no text.
    """
    import secrets

    from ironcurtain.cli.piped import FIRST_BYTE_SECONDS, read_piped, with_data

    data = read_piped(0, patient)
    if data is None:
        click.echo(
            f"Nothing was piped in within {FIRST_BYTE_SECONDS:g} s: TASK goes without it. --stdin waits for it.",
            err=True,
        )
    return with_data(task, data or b"", secrets.token_hex(4))


def show_agents() -> None:
    """Print the agents, each with the models it can use."""
    from ironcurtain.agents.registry import installed

    rows = [(BUILT_IN, "IronCurtain's own, without a container", "anthropic")]
    rows += [(a.id, a.display_name, a.problem or ", ".join(a.providers)) for a in installed().listing()]
    print_table(("AGENT", "NAME", "MODELS OF"), rows)


def to_resume(name: str, agent: str | None) -> tuple[str, str, str]:
    """
    :param name: of a session, as commands take it.
    :returns: its id, its agent, and why this one.
    :raises NotFound: there is no such session.
    :raises click.UsageError: it is none of this command's.
    """
    import msgspec

    from ironcurtain.session.elsewhere import session_directory
    from ironcurtain.session.model import SessionInfo

    directory = session_directory(home(), name, lambda kind: kind not in _OTHERS)
    info = msgspec.json.decode(directory.snapshot.read_bytes(), type=SessionInfo)
    if info.kind in _OTHERS:
        raise click.UsageError(f"session {info.number} {_OTHERS[info.kind].format(info.number)}")
    if agent is not None and agent != info.kind:
        raise click.UsageError(f"session {info.number} is one of {info.kind}: it cannot go on with {agent}")
    return info.id, info.kind, f"session {info.number} goes on"


def check(agent: str, options: dict[str, Any], workspace: Path | None, *, resuming: bool) -> None:
    """:raises click.UsageError: the options do not fit together."""
    if agent != BUILT_IN and "backend" in options:
        raise click.UsageError("--backend is for the built-in agent: other agents reach the models of their providers")
    if workspace is not None and "repo" in options:
        raise click.UsageError("give either --workspace or --repo")
    if resuming and (workspace is not None or "repo" in options):
        raise click.UsageError("a session that goes on has its workspace already: leave --workspace and --repo out")


def check_screen(agent: str) -> None:
    """
    :raises click.UsageError: the agent has no interactive interface.
    :raises NoTerminal: there is none to show it on.
    """
    from ironcurtain.agents.registry import installed
    from ironcurtain.terminal.local import NoTerminal, have_terminal

    if agent == BUILT_IN:
        raise click.UsageError(
            "the built-in agent has no interactive interface: name another one with --agent, or omit --pty"
        )
    if not (adapter := installed().find(agent)).supports_pty:
        raise click.UsageError(f"{adapter.display_name} has no interactive interface: omit --pty")
    if not have_terminal():
        raise NoTerminal


def absolute(backend: str | None) -> str | None:
    """:returns: the backend, with the file of a scripted one as the daemon finds it too."""
    name, colon, file = (backend or "").partition(":")
    return f"{name}:{Path(file).expanduser().absolute()}" if colon else backend


def path_text(path: Path | None) -> str | None:
    """:returns: a path as the daemon finds it too."""
    return str(path.expanduser().absolute()) if path is not None else None


def choose_agent(asked: str | None, default: str, pty: bool = False) -> tuple[str, str]:
    """
    :param asked: what ``--agent`` said.
    :param default: the setting ``default_agent``.
    :param pty: whether it has to have a screen of its own.
    :returns: the agent, and why this one.
    :raises click.UsageError: there is no such agent.
    """
    usual = (WITH_SCREEN, "the default with --pty") if pty else (BUILT_IN, "the default")
    agent, why = (asked, "--agent") if asked else (default, "default_agent") if default else usual
    if agent == BUILT_IN:
        return agent, why
    from ironcurtain.agents.registry import installed

    names = [BUILT_IN, *installed().names]
    if agent not in names:
        raise click.UsageError(f"there is no agent {agent!r} ({why}): choose one of {', '.join(names)}")
    return agent, why
