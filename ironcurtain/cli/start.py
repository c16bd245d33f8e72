"""``ironcurtain start``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ironcurtain.cli.output import home, settings

if TYPE_CHECKING:
    from ironcurtain.cli.terminal import FrontEnd
    from ironcurtain.home import Home
    from ironcurtain.operations.api import SessionApi
    from ironcurtain.session.model import SessionInfo, SessionRequest

BUILTIN = "builtin"
"""The agent that needs nothing but a key."""


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
    from ironcurtain.session.model import SessionRequest

    options = {name: value for name, value in (("model", model), ("backend", backend)) if value}
    place = workspace.expanduser().absolute() if workspace is not None else None
    raise SystemExit(play(where, SessionRequest(chosen, task or "", place, options)))


def choose_agent(asked: str | None, default: str) -> tuple[str, str]:
    """
    :param asked: what ``--agent`` said.
    :param default: the setting ``default_agent``.
    :returns: the agent, and why this one.
    """
    if asked:
        return asked, "--agent"
    return (default, "default_agent") if default else (BUILTIN, "the default")


def play(where: Home, request: SessionRequest, environ: Mapping[str, str] | None = None) -> int:
    """
    Run one session in this terminal, in the daemon if there is one, else in this process.

    :param environ: in place of ours, and then never in the daemon.
    :returns: the exit status.
    """
    from ironcurtain.cli.run import run

    front: list[FrontEnd] = []

    def on_signal(number: int) -> bool:
        for end in front:
            end.interrupt() if number == signal.SIGINT else end.terminate()
        return bool(front)

    return run(lambda reactor: _play(reactor, where, request, environ, front), on_signal)


async def _play(
    reactor: Any, where: Home, request: SessionRequest, environ: Mapping[str, str] | None, front: list[FrontEnd]
) -> int:
    from ironcurtain.assembly import Application
    from ironcurtain.control.client import ControlClient
    from ironcurtain.errors import Unavailable

    if environ is None and where.daemon_socket.exists():
        daemon = ControlClient(reactor, str(where.daemon_socket))
        try:
            info = await daemon.start(request)
        except Unavailable:
            pass  # left behind by a daemon that was killed
        else:
            let_go = await daemon.hold(info.number)
            try:
                return await _talk(reactor, where, daemon, info, request.task, front)
            finally:
                let_go()
    application = Application.alone(reactor, where, os.environ if environ is None else environ)
    await application.start()
    try:
        session = await application.manager.create(request, attended=lambda: _attended(where, request.task))
        return await _talk(reactor, where, application.api, session.info, request.task, front)
    finally:
        await application.stop("the command ends")


def _attended(where: Home, task: str) -> bool:
    """Only a single shot without a terminal has nobody to ask, unless a console is open somewhere."""
    from ironcurtain.locks import is_held

    return not task or sys.stdin.isatty() or is_held(where.listener_lock)


async def _talk(
    reactor: Any, where: Home, api: SessionApi, info: SessionInfo, task: str, front: list[FrontEnd]
) -> int:
    import time

    from ironcurtain.cli.terminal import FrontEnd

    end = FrontEnd(api, info, where.session(info.id), reactor, time.time)
    front.append(end)
    try:
        if not task:
            return await end.interactive()
        click.echo(await end.single_shot(task))
        return 0
    finally:
        front.clear()
