"""``ironcurtain escalation-listener``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

import click

from ironcurtain.cli.output import home

if TYPE_CHECKING:
    from ironcurtain.home.layout import Home

INSTEAD = "use 'ironcurtain escalations', 'ironcurtain approve' and 'ironcurtain deny' instead"
"""The commands that work without a terminal."""


@click.command("escalation-listener", short_help="Watch sessions and decide on waiting calls, full screen.")
def escalation_listener() -> None:
    """
    Watch sessions and decide on waiting calls, full screen.

    It shows the sessions of the daemon and of all terminals, the waiting calls with all their arguments, and past
    decisions. Press ? for its keys. Only one listener can run. Calls that wait when you leave it keep waiting.
    """
    from ironcurtain.cli.run import run

    where = home()
    require_terminal(sys.stdin, sys.stdout, os.environ)
    status = run(lambda reactor: listen(reactor, where, os.environ))
    if status:
        raise SystemExit(status)


def require_terminal(stdin: TextIO | None, stdout: TextIO | None, environ: Mapping[str, str]) -> None:
    """:raises UsageError: there is no terminal, or an unsuitable one."""
    from ironcurtain.errors import UsageError

    if stdin is None or stdout is None or not (stdin.isatty() and stdout.isatty()):
        raise UsageError(f"escalation-listener needs a terminal: {INSTEAD}")
    if environ.get("TERM", "") in ("", "dumb", "unknown"):
        raise UsageError(
            f"escalation-listener cannot draw on this terminal (TERM={environ.get('TERM', '')}): {INSTEAD}"
        )


async def listen(reactor: Any, where: Home, environ: Mapping[str, str]) -> int:
    """
    Show the console until its user leaves.

    :returns: the exit status.
    :raises Unavailable: another listener is running.
    """
    from ironcurtain.console.console import Console
    from ironcurtain.control.client import ControlClient
    from ironcurtain.control.server import owner
    from ironcurtain.errors import Unavailable
    from ironcurtain.files.locks import FileLock, Held
    from ironcurtain.home.registry import SessionRegistry
    from ironcurtain.operations.home_source import HomeSource
    from ironcurtain.terminal.guard import Guard
    from ironcurtain.terminal.local import LocalTerminal

    where.prepare()
    lock = FileLock(where.listener_lock)
    try:
        lock.acquire()
    except Held as e:
        whose = f" (process {e.holder})" if e.holder else ""
        raise Unavailable(f"another escalation listener is running{whose}: end that one first") from None
    terminal, guard = LocalTerminal(reactor), Guard()
    registry = SessionRegistry(where.registry)
    source = HomeSource(reactor, registry, where.daemon_socket, lambda socket: ControlClient(reactor, socket))
    console = Console(source, terminal, reactor, owner().name, environ=environ)
    guard.begin(0)
    terminal.begin(console)
    try:
        console.start()
        return await console.ended
    finally:
        console.stop()
        await terminal.closed
        guard.end()
        lock.release()
