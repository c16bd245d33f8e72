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
    Attach to SESSION, given by its number or id, in any process; default: the newest running one.

    A session with a terminal ('ironcurtain start --pty', 'ironcurtain loop'): your input goes to its agent, which gets
    the size of your terminal. Ctrl-] and then d detaches; Ctrl-\\ typed alone ends the session. If SIGKILL leaves your
    terminal garbled: type reset, and Enter or Ctrl-J.

    A conversation ('ironcurtain start'): you see it, continue it, and decide on waiting calls. From now on, a session
    of the daemon does not end with the terminal that started it. /quit detaches, and the session continues.

    You can also attach to a loop without a terminal and to a session of 'ironcurtain mcp-proxy', to watch it and to
    decide. They accept no messages.

    Exit status: that of the agent's program; 0 if you detached, 69 if unknown, 1 if a conversation was ended elsewhere,
    130 after Ctrl-C.
    """
    _show(session, Mode.DRIVE)


@click.command(short_help="Watch a session.")
@click.argument("session", default="last", shell_complete=running_sessions)
def observe(session: str) -> None:
    """
    Watch SESSION, given by its number or id, without taking part; default: the newest running one.

    A session with a terminal: your input is ignored. Ctrl-\\ typed alone, or Ctrl-] and then d, detaches. If SIGKILL
    leaves your terminal garbled: type reset, and Enter or Ctrl-J.

    Others are told as in a conversation: messages, the agent's text, tools and changes, as they come; without a
    terminal as lines on standard output. Ctrl-D leaves.

    Exit status: that of the agent's program; 0 if there is none, or you detached; 69 if unknown; 130 after Ctrl-C.
    """
    _show(session, Mode.OBSERVE)


def _show(session: str, mode: Mode) -> None:
    from ironcurtain.cli.joining import Joining

    raise SystemExit(Joining(home(), session, mode).run())
