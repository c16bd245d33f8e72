"""``ironcurtain escalation-listener``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

import click

from ironcurtain.cli.output import home

if TYPE_CHECKING:
    from ironcurtain.cli.joining import Joining
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

    require_terminal(sys.stdin, sys.stdout, os.environ)
    listener = Listener(home(), os.environ)
    status = run(listener.listen, listener.signalled)
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


class Listener:
    """The console of this terminal, and the sessions to which its user attaches from there."""

    def __init__(self, where: Home, environ: Mapping[str, str]) -> None:
        self._home, self._environ = where, environ
        self._joining: Joining | None = None

    def signalled(self, number: int) -> bool:
        """:returns: whether a signal of the process is handled by the session to which its user is attached."""
        return self._joining is not None and self._joining.signalled(number)

    async def listen(self, reactor: Any) -> int:
        """
        Show the console until its user leaves; it comes back when a session is left.

        :returns: the exit status.
        :raises Unavailable: another listener is running.
        """
        from ironcurtain.errors import Unavailable
        from ironcurtain.files.locks import FileLock, Held

        self._home.prepare()
        lock = FileLock(self._home.listener_lock)
        try:
            lock.acquire()
        except Held as e:
            whose = f" (process {e.holder})" if e.holder else ""
            raise Unavailable(f"another escalation listener is running{whose}: end that one first") from None
        try:
            status, session = await self._show(reactor)
            while session:
                await self._attach(reactor, session)
                status, session = await self._show(reactor)
            return status
        finally:
            lock.release()

    async def _show(self, reactor: Any) -> tuple[int, int]:
        """:returns: the exit status, and the session to attach to; 0: none."""
        from ironcurtain.console.console import Console
        from ironcurtain.control.client import ControlClient
        from ironcurtain.fleet.lacking import lists_lack
        from ironcurtain.home.registry import SessionRegistry
        from ironcurtain.operations.home_source import HomeSource
        from ironcurtain.operations.principal import owner
        from ironcurtain.terminal.guard import Guard
        from ironcurtain.terminal.local import LocalTerminal

        terminal, guard, where = LocalTerminal(reactor), Guard(), self._home
        registry = SessionRegistry(where.registry)
        source = HomeSource(
            reactor,
            registry,
            where.daemon_socket,
            lambda path, host: ControlClient(reactor, path, host=host),
            lambda: lists_lack(where),
        )
        console = Console(source, terminal, reactor, owner().name, environ=self._environ, attaches=True)
        guard.begin(0)
        terminal.begin(console)
        try:
            console.start()
            return await console.ended, console.attached
        finally:
            console.stop()
            await terminal.closed
            guard.end()

    async def _attach(self, reactor: Any, session: int) -> None:
        from ironcurtain.cli.joining import Joining
        from ironcurtain.cli.output import print_lines
        from ironcurtain.errors import IronCurtainError
        from ironcurtain.terminal.model import Mode

        self._joining = Joining(self._home, str(session), Mode.DRIVE)
        try:
            await self._joining.join(reactor)
        except IronCurtainError as e:  # it may have ended meanwhile
            print_lines(str(e), err=True)
        finally:
            self._joining = None
