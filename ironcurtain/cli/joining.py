"""Attach to a session of another process at this terminal: to its terminal, or to its conversation."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from ironcurtain.cli.run import run
from ironcurtain.cli.shell_above import is_above
from ironcurtain.cli.terminal.frontend import FrontEnd
from ironcurtain.cli.terminal.plain import standard_printer, standard_surface
from ironcurtain.cli.terminal.printer import Printer
from ironcurtain.cli.terminal.watching import Watching
from ironcurtain.cli.undoing import proposer
from ironcurtain.cli.viewing import say_how_to_resume, say_that_it_goes_on, view_elsewhere
from ironcurtain.control.client import ControlClient
from ironcurtain.control.reactor_owners import ReactorOwners
from ironcurtain.errors import IronCurtainError, NotAllowed
from ironcurtain.home.layout import Home
from ironcurtain.session.model import SessionInfo, State
from ironcurtain.terminal.model import Mode
from ironcurtain.terminal.raw import NoTerminal, have_terminal


class Joining:
    """
    One session at this terminal.

    :param session: its number or id, or ``last``.
    """

    def __init__(self, home: Home, session: str, mode: Mode) -> None:
        self._home, self._session, self._mode = home, session, mode
        self._front: FrontEnd | Watching | None = None

    def run(self) -> int:
        """
        :returns: the exit status.
        :raises NotFound: there is no such session.
        :raises NoTerminal: it has a terminal, but standard input or output is not one.
        :raises NotAllowed: this command runs in its terminal.
        """
        return run(self.join, self.signalled)

    def signalled(self, number: int) -> bool:
        """
        :param number: number of a signal of the process.
        :returns: whether it is handled.
        """
        return self._front is not None and self._front.signalled(number)

    async def join(self, reactor: Any) -> int:
        """Attach, with the errors of :meth:`run`; returns the exit status."""
        owner, number = await ReactorOwners(reactor, self._home).of_session(self._session)
        info = await owner.session(number)
        if not info.terminal:
            return await (self._talk if self._mode is Mode.DRIVE else self._watch)(reactor, owner, info)
        if not have_terminal():
            raise NoTerminal
        if is_above(self._home, info.id):
            raise NotAllowed(f"this is the terminal of session {number}: attach to it from another one")
        return await view_elsewhere(reactor, owner, info, self._mode)

    async def _talk(self, reactor: Any, owner: ControlClient, info: SessionInfo) -> int:
        await owner.join(info.number)
        propose, paths = proposer(reactor, self._home, info), self._home.session(info.id)
        self._front = front = FrontEnd(owner, info, paths, reactor, standard_printer(reactor), propose)
        try:
            return await front.interactive()
        finally:
            self._front = None
            await _tell(owner, info)

    async def _watch(self, reactor: Any, owner: ControlClient, info: SessionInfo) -> int:
        stdin = sys.stdin if have_terminal() else None
        surface = standard_surface(reactor, stdin, sys.stdout, sys.stdout, os.environ, reactor.seconds)
        self._front = watching = Watching(owner, info, Printer(surface, reactor, time.time))
        try:
            return await watching.watch()
        finally:
            self._front = None


async def _tell(owner: ControlClient, info: SessionInfo) -> None:
    try:
        goes_on = (await owner.session(info.number)).state != State.CLOSED
    except IronCurtainError:  # its process has ended
        say_how_to_resume(info)
    else:
        if goes_on:
            say_that_it_goes_on(info.number)
