"""``ironcurtain start``."""

from __future__ import annotations

from pathlib import Path

import click

from ironcurtain.cli.output import home, settings

AGENTS = ("builtin",)
"""What ``--agent`` accepts; the first is the default."""


@click.command()
@click.argument("task", required=False)
@click.option("--agent", help="Which agent: builtin (in this version the only one).")
@click.option("--model", help="The model, as its provider spells it.")
@click.option("--backend", help="Where the model is: anthropic, or scripted:FILE.")
@click.option("--workspace", type=click.Path(path_type=Path), help="The directory to work on; without it, a fresh one.")
def start(task: str | None, agent: str | None, model: str | None, backend: str | None, workspace: Path | None) -> None:
    """
    Run an agent on TASK, or, without one, talk with it.

    \b
    With a task: the answer goes to standard output, all else to standard error.
      ironcurtain start --workspace . "What does this project do?"
    Without: a conversation. /help lists what you can type.
      ironcurtain start --workspace .

    The agent works on the files of its workspace. What reaches further is put before you: answer with /approve N or
    /deny N there, or from another terminal with 'ironcurtain approve N'. Ctrl-C cancels the message, twice it ends the
    session.

    Exit status: 0 an answer, 1 the message failed, 64 wrong usage, 130 and 143 interrupted.
    """
    where = home()
    chosen, why = choose_agent(agent, settings(where).settings.default_agent)
    click.echo(f"Agent: {chosen} ({why})", err=True)
    from ironcurtain.cli.play import Play
    from ironcurtain.session.model import SessionRequest

    options = {name: value for name, value in (("model", model), ("backend", absolute(backend))) if value}
    place = workspace.expanduser().absolute() if workspace is not None else None
    raise SystemExit(Play(where, SessionRequest(chosen, task or "", place, options)).run())


def absolute(backend: str | None) -> str | None:
    """:returns: the backend, with the file of a scripted one as the daemon finds it too."""
    name, colon, file = (backend or "").partition(":")
    return f"{name}:{Path(file).expanduser().absolute()}" if colon else backend


def choose_agent(asked: str | None, default: str) -> tuple[str, str]:
    """
    :param asked: what ``--agent`` said.
    :param default: the setting ``default_agent``.
    :returns: the agent, and why this one.
    :raises click.UsageError: there is no such agent.
    """
    agent, why = (asked, "--agent") if asked else (default, "default_agent") if default else (AGENTS[0], "the default")
    if agent not in AGENTS:
        raise click.UsageError(f"there is no agent {agent!r} ({why}): choose one of {', '.join(AGENTS)}")
    return agent, why
