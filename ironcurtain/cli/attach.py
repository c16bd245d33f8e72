"""``ironcurtain attach`` and ``observe``."""

from __future__ import annotations

import click

from ironcurtain.cli.completion import running_sessions
from ironcurtain.cli.output import home
from ironcurtain.terminal.model import Mode


@click.command(short_help="Join a session.")
@click.argument("session", default="last", shell_complete=running_sessions)
def attach(session: str) -> None:
    """
    Join SESSION, given by its number or id, in whatever process it runs; without one, the newest that runs.

    At one with a terminal ('ironcurtain start --pty', 'ironcurtain loop'): what you type goes to its agent, and the
    size of your terminal becomes the agent's. Ctrl-] and then d leaves it; a lone Ctrl-\\ ends the session. If your
    terminal is in disorder after SIGKILL: reset, and Enter or Ctrl-J.

    At a conversation ('ironcurtain start'): you see what was said, go on with it, and decide what waits. The first
    terminal may stay or go: from now on the session does not end with it, if it is one of the daemon's. /quit leaves
    it, and it goes on.

    A loop without a terminal, or what 'ironcurtain mcp-proxy' serves, can be joined as well: to see what it does, and
    to decide. It takes no messages.

    Exit status: that of the agent's program; 0 if you left it, 69 if it cannot be known, 1 if a conversation was ended
    elsewhere, 130 if you left it with Ctrl-C.
    """
    _show(session, Mode.DRIVE)


@click.command(short_help="Look at a session's terminal.")
@click.argument("session", default="last", shell_complete=running_sessions)
def observe(session: str) -> None:
    """
    Look at the terminal of SESSION, given by its number or id; without one, of the newest that has a terminal.

    What you type goes nowhere. A lone Ctrl-\\, or Ctrl-] and then d, leaves it. If your terminal is in disorder after
    SIGKILL: reset, and Enter or Ctrl-J.

    Exit status: that of the agent's program; 0 if you left it, 69 if it cannot be known.
    """
    _show(session, Mode.OBSERVE)


def _show(session: str, mode: Mode) -> None:
    from ironcurtain.cli.joining import Joining

    raise SystemExit(Joining(home(), session, mode).run())
