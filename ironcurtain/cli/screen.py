"""Run one session with its agent's own screen at this terminal: in the daemon if there is one, else in this process."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from ironcurtain.cli.output import print_lines
from ironcurtain.cli.placement import review_session, started_on
from ironcurtain.cli.progress import ProgressDisplay, started_by
from ironcurtain.cli.review import review_of
from ironcurtain.cli.run import run
from ironcurtain.cli.viewing import come_back, report_end, say_how_to_resume, view, view_elsewhere
from ironcurtain.control.client import ControlClient
from ironcurtain.errors import IronCurtainError
from ironcurtain.home.layout import Home
from ironcurtain.operations.principal import owner
from ironcurtain.services.lifecycle import to_its_end
from ironcurtain.session.model import SessionInfo, SessionRequest, State
from ironcurtain.terminal.keys import QUIT
from ironcurtain.terminal.model import Mode
from ironcurtain.terminal.raw import have_terminal
from ironcurtain.terminal.viewing import Viewing

if TYPE_CHECKING:
    from ironcurtain.assembly import Application
    from ironcurtain.control.early import EarlyStart
    from ironcurtain.session.session import Session

KEYS = "Ctrl-\\ ends it; Ctrl-] and then d leaves it"


class Screen:
    """
    One session at this terminal.

    :param host: in whose daemon it runs; empty: this host's, or this process.
    :param early: the session, if the daemon was asked for it.
    """

    def __init__(self, home: Home, request: SessionRequest, host: str = "", early: EarlyStart | None = None) -> None:
        self._home, self._request, self._host, self._early = home, request, host, early

    def run(self) -> int:
        """
        :returns: the exit status: that of the agent's program; 0 if it was detached.
        :raises NoTerminal: standard input or output is not a terminal.
        """
        return run(self._main)

    async def _main(self, reactor: Any) -> int:
        if self._host:
            started = await started_on(reactor, self._home, self._host, self._request, notices=True)
            return await self._in_daemon(reactor, *started)
        if self._early is not None:
            info = await started_by(partial(self._early.started, reactor), notices=True)
            if info is not None:
                return await self._in_daemon(reactor, ControlClient(reactor, str(self._home.daemon_socket)), info)
        return await self._alone(reactor)

    async def _in_daemon(self, reactor: Any, daemon: ControlClient, info: SessionInfo) -> int:
        place = f"the daemon of {self._host}" if self._host else "the daemon"
        print_lines(f"Session {info.number}, in {place}. {KEYS}.", err=True)
        status = await view_elsewhere(reactor, daemon, info, Mode.DRIVE)
        with suppress(IronCurtainError):  # it has ended, and the daemon perhaps, too
            await review_if_over(reactor, self._home, daemon, info)
        return status

    async def _alone(self, reactor: Any) -> int:
        from ironcurtain.assembly import Application  # slow to import, and the daemon has it already

        application = Application.alone(reactor, self._home, os.environ)
        await application.start()
        session = None
        try:
            session = await self._started(application)
            print_lines(f"Session {session.number}, in this process. {KEYS}.", err=True)
            return await self._view(reactor, application, session)
        finally:
            await to_its_end(application.stop("the command ends"))
            if session is not None:
                review_of(session.paths)
                say_how_to_resume(session.info)

    async def _started(self, application: Application) -> Session:
        progress = ProgressDisplay(sys.stderr, notices=True)
        try:
            return await application.manager.create(self._request, made=progress.follow)
        finally:
            progress.done()

    async def _view(self, reactor: Any, application: Application, session: Session) -> int:
        hub = application.operations.terminal(owner(), session.number, Mode.DRIVE)

        def on_key(name: str, viewing: Viewing) -> None:
            if name == QUIT.name:
                Deferred.fromCoroutine(application.operations.stop(owner(), session.number))
            else:
                viewing.leave("left")

        while (ended := hub.over or await view(reactor, hub, on_key)) is None:
            if not have_terminal():
                return 128 + signal.SIGHUP
            await come_back(reactor, session)
        return report_end(session.number, ended)


async def review_if_over(reactor: Any, home: Home, owner: ControlClient, info: SessionInfo) -> None:
    """
    Print the files to review once a session of another process has ended; nothing if it continues.

    :param owner: that process.
    """
    now = await owner.session(info.number)
    if now.state == State.CLOSED or now.status is not None:
        await owner.stop(info.number)  # this waits for its end
        await review_session(reactor, home, info)
        say_how_to_resume(info)
