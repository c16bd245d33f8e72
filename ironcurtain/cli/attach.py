"""``ironcurtain attach`` and ``observe``."""

from __future__ import annotations

from typing import Any

import click

from ironcurtain.cli.output import home
from ironcurtain.terminal.model import Mode


@click.command(short_help="Sit down at a session's terminal.")
@click.argument("session")
def attach(session: str) -> None:
    """
    Sit down at the terminal of SESSION, given by its number.

    What you type goes to its agent, and the size of your terminal becomes the agent's. Ctrl-] and then d leaves it; a
    lone Ctrl-\\ ends the session. Sessions with a terminal are those of 'ironcurtain start --pty' and 'ironcurtain
    loop', in whatever process they run. If your terminal is in disorder after SIGKILL: reset, and Enter or Ctrl-J.

    Exit status: that of the agent's program; 0 if you left it, 69 if it cannot be known.
    """
    _show(session, Mode.DRIVE)


@click.command(short_help="Look at a session's terminal.")
@click.argument("session")
def observe(session: str) -> None:
    """
    Look at the terminal of SESSION, given by its number.

    What you type goes nowhere. A lone Ctrl-\\, or Ctrl-] and then d, leaves it. If your terminal is in disorder after
    SIGKILL: reset, and Enter or Ctrl-J.

    Exit status: that of the agent's program; 0 if you left it, 69 if it cannot be known.
    """
    _show(session, Mode.OBSERVE)


def _show(session: str, mode: Mode) -> None:
    from ironcurtain.cli.run import run
    from ironcurtain.cli.viewing import view_elsewhere
    from ironcurtain.control.owners import Owners
    from ironcurtain.terminal.local import NoTerminal, have_terminal

    where = home()
    if not have_terminal():
        raise NoTerminal

    async def look(reactor: Any) -> int:
        owner = await Owners(reactor, where).of_session(session)
        return await view_elsewhere(reactor, owner, await owner.session(session), mode)

    raise SystemExit(run(look))
