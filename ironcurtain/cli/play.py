"""Run one session in this terminal, in the daemon if there is one, else in this process."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import click
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ironcurtain.assembly import Application
from ironcurtain.cli.progress import Progress, started_by
from ironcurtain.cli.review import review_of
from ironcurtain.cli.run import run
from ironcurtain.cli.terminal import FrontEnd
from ironcurtain.display import paragraphs
from ironcurtain.errors import IronCurtainError, StaleDecision
from ironcurtain.escalation import Outcome
from ironcurtain.home import Home
from ironcurtain.locks import is_held
from ironcurtain.operations.api import SessionApi
from ironcurtain.session.events import EscalationRaised, Stamped
from ironcurtain.session.model import SessionInfo, SessionRequest
from ironcurtain.session.session import Session

READING_SECONDS = 0.5
"""How long a question stands on the screen before it is answered for the person (our choice)."""


class Play:
    """
    One session at this terminal.

    :param environ: in place of ours, and then the session is never the daemon's.
    :param answer: to every escalation; ``None``: the person answers.
    """

    log = Logger()

    def __init__(
        self, home: Home, request: SessionRequest, environ: Mapping[str, str] | None = None, answer: bool | None = None
    ) -> None:
        self._home, self._request, self._environ, self._answer = home, request, environ, answer
        self._front: FrontEnd | None = None

    def run(self) -> int:
        """:returns: the exit status."""
        return run(self._main, self._on_signal)

    def _on_signal(self, number: int) -> bool:
        if self._front is None:
            return False
        if number == signal.SIGINT:
            self._front.interrupt()
        else:
            self._front.terminate()
        return True

    async def _main(self, reactor: Any) -> int:
        if self._environ is None and self._home.daemon_socket.exists():
            from ironcurtain.control.client import ControlClient  # slow to import, and mostly there is no daemon

            daemon = ControlClient(reactor, str(self._home.daemon_socket))
            if (info := await started_by(daemon, self._request)) is not None:
                let_go = await daemon.hold(info.number)
                try:
                    return await self._talk(reactor, daemon, info)
                finally:
                    with suppress(IronCurtainError):  # it may have ended, or the daemon with it
                        await daemon.stop(info.number)
                    let_go()
                    review_of(self._home.session(info.id))
        return await self._alone(reactor)

    async def _alone(self, reactor: Any) -> int:
        application = Application.alone(reactor, self._home, os.environ if self._environ is None else self._environ)
        await application.start()
        paths = None
        try:
            session = await self._started(application)
            paths = session.paths
            return await self._talk(reactor, application.api, session.info)
        finally:
            await application.stop("the command ends")
            if paths is not None:
                review_of(paths)

    async def _started(self, application: Application) -> Session:
        progress = Progress(sys.stderr)
        try:
            return await application.manager.create(self._request, self._attended, progress.follow)
        finally:
            progress.done()

    def _attended(self) -> bool:
        # Only a single shot without a terminal has nobody to ask, unless a console is open somewhere.
        return (
            not self._request.task
            or self._answer is not None
            or sys.stdin.isatty()
            or is_held(self._home.listener_lock)
        )

    async def _talk(self, reactor: Any, api: SessionApi, info: SessionInfo) -> int:
        if self._answer is not None:
            await api.follow(info.number, 0, lambda stamped: self._answer_for_person(reactor, api, stamped))
        self._front = FrontEnd(api, info, self._home.session(info.id), reactor, time.time)
        try:
            if not self._request.task:
                return await self._front.interactive()
            answer = await self._front.single_shot(self._request.task)
            click.echo(paragraphs(answer) if sys.stdout.isatty() else answer)
            return 0
        finally:
            self._front = None

    def _answer_for_person(self, reactor: IReactorTime, api: SessionApi, stamped: Stamped) -> None:
        if isinstance(stamped.event, EscalationRaised):
            outcome = Outcome.APPROVED if self._answer else Outcome.DENIED
            deciding = Deferred.fromCoroutine(_decide(reactor, api, stamped.event, outcome))
            deciding.addErrback(lambda failure: self.log.failure("the answer was not taken", failure))


async def _decide(clock: IReactorTime, api: SessionApi, raised: EscalationRaised, outcome: Outcome) -> None:
    await deferLater(clock, READING_SECONDS)
    with suppress(StaleDecision):  # somebody else was faster
        await api.decide(raised.number, outcome, raised.digest)
