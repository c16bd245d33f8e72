"""Run one session in this terminal, in the daemon if there is one, else in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from ironcurtain.cli.output import print_json, print_lines
from ironcurtain.cli.placement import review_session, started_on
from ironcurtain.cli.progress import ProgressDisplay, started_by
from ironcurtain.cli.review import review_of
from ironcurtain.cli.run import run
from ironcurtain.cli.terminal.frontend import FrontEnd, Left
from ironcurtain.cli.terminal.plain import standard_printer
from ironcurtain.cli.undoing import proposer
from ironcurtain.errors import IronCurtainError, StaleDecision
from ironcurtain.escalation import Outcome
from ironcurtain.files.locks import is_held
from ironcurtain.home.layout import Home
from ironcurtain.operations.api import SessionApi
from ironcurtain.services.lifecycle import to_its_end
from ironcurtain.session.events import EscalationRaised, Stamped
from ironcurtain.session.model import Reply, SessionInfo, SessionRequest, State
from ironcurtain.text.display import one_line, paragraphs

if TYPE_CHECKING:
    from ironcurtain.assembly import Application
    from ironcurtain.control.client import ControlClient
    from ironcurtain.control.early import EarlyStart
    from ironcurtain.session.session import Session

READING_SECONDS = 0.5
"""Seconds for which the demo shows a question before answering it."""


class Play:
    """
    One session at this terminal.

    :param environ: the environment to use instead of this process's; then the session does not run in the daemon.
    :param answer: the answer to every escalation; ``None``: the person answers.
    :param json_output: print the answer to a task as JSON, with its usage and the session.
    :param host: in whose daemon it runs; empty: this host's, or this process.
    :param early: the session, if the daemon was asked for it, which holds it for this process.
    """

    log = Logger()

    def __init__(
        self,
        home: Home,
        request: SessionRequest,
        environ: Mapping[str, str] | None = None,
        answer: bool | None = None,
        json_output: bool = False,
        host: str = "",
        early: EarlyStart | None = None,
    ) -> None:
        self._json_output, self._host, self._early = json_output, host, early
        self._home, self._request, self._environ, self._answer = home, request, environ, answer
        self._front: FrontEnd | None = None
        self._detached = False

    def run(self) -> int:
        """:returns: the exit status."""
        return run(self._main, self._on_signal)

    def _on_signal(self, number: int) -> bool:
        return self._front is not None and self._front.signalled(number)

    async def _main(self, reactor: Any) -> int:
        if self._host:
            daemon, info = await started_on(reactor, self._home, self._host, self._request)
            return await self._in_daemon(reactor, daemon, info, await daemon.hold(info.number))
        if self._early is not None and (started := await started_by(partial(self._early.started, reactor))) is not None:
            from ironcurtain.control.client import ControlClient  # slow to import, and usually there is no daemon

            daemon = ControlClient(reactor, str(self._home.daemon_socket))
            return await self._in_daemon(reactor, daemon, started, self._early.leave)
        return await self._alone(reactor)

    async def _in_daemon(
        self, reactor: Any, daemon: ControlClient, info: SessionInfo, release: Callable[[], None]
    ) -> int:
        goes_on = False
        try:
            status = await self._talk(reactor, daemon, info)
            if self._detached:
                await daemon.release(info.number)
            return status
        finally:
            with suppress(IronCurtainError):  # it may have ended, or the daemon with it
                goes_on = (await daemon.stop(info.number, held=True)).state != State.CLOSED
            release()
            if goes_on:
                from ironcurtain.cli.viewing import say_that_it_goes_on  # slow to import, like the other two below

                say_that_it_goes_on(info.number)
            else:
                await review_session(reactor, self._home, info)
                self._say_how_to_resume(info)

    async def _alone(self, reactor: Any) -> int:
        from ironcurtain.assembly import Application  # slow to import, and the daemon has it already

        application = Application.alone(reactor, self._home, os.environ if self._environ is None else self._environ)
        await application.start()
        session = None
        try:
            session = await self._started(application)
            status = await self._talk(reactor, application.api, session.info)
            while self._detached:
                from ironcurtain.cli.viewing import come_back

                if not await come_back(reactor, session):
                    print_lines(f"Session {session.number} was closed: {one_line(session.reason)}", err=True)
                    return 1
                status = await self._talk(reactor, application.api, session.info, again=True)
            return status
        finally:
            await to_its_end(application.stop("the command ends"))
            if session is not None:
                review_of(session.paths)
                self._say_how_to_resume(session.info)

    def _say_how_to_resume(self, info: SessionInfo) -> None:
        if not self._request.task:  # else scripts would say it with each task
            from ironcurtain.cli.viewing import say_how_to_resume

            say_how_to_resume(info)

    async def _started(self, application: Application) -> Session:
        progress = ProgressDisplay(sys.stderr)
        try:
            return await application.manager.create(self._request, self._attended, progress.follow)
        finally:
            progress.done()

    def _attended(self) -> bool:
        # Only a single task without a terminal has nobody to ask, unless a console is open.
        return (
            not self._request.task
            or self._answer is not None
            or sys.stdin.isatty()
            or is_held(self._home.listener_lock)
        )

    async def _talk(self, reactor: Any, api: SessionApi, info: SessionInfo, again: bool = False) -> int:
        if self._answer is not None and not again:
            await api.follow(info.number, 0, lambda stamped: self._answer_for_person(reactor, api, stamped))
        propose, paths = proposer(reactor, self._home, info), self._home.session(info.id)
        self._front = front = FrontEnd(api, info, paths, reactor, standard_printer(reactor), propose)
        try:
            if again or not self._request.task:
                return await front.interactive()
            self._print(info, await front.single_shot(self._request.task, self._request.typed))
            return 0
        except Left:
            if not front.detached:
                raise
            return 0
        finally:
            self._front, self._detached = None, front.detached

    def _print(self, info: SessionInfo, reply: Reply) -> None:
        if self._json_output:
            session = {"number": info.number, "id": info.id, "agent": info.kind, "workspace": info.workspace}
            print_json({"answer": reply.text, "usage": reply.usage, "cost": reply.usage.cost, "session": session})
        else:
            print_lines(paragraphs(reply.text) if sys.stdout.isatty() else reply.text)

    def _answer_for_person(self, reactor: IReactorTime, api: SessionApi, stamped: Stamped) -> None:
        if isinstance(stamped.event, EscalationRaised):
            outcome = Outcome.APPROVED if self._answer else Outcome.DENIED
            deciding = Deferred.fromCoroutine(_decide(reactor, api, stamped.event, outcome))
            deciding.addErrback(lambda failure: self.log.failure("the answer was not accepted", failure))


async def _decide(clock: IReactorTime, api: SessionApi, raised: EscalationRaised, outcome: Outcome) -> None:
    await deferLater(clock, READING_SECONDS)
    with suppress(StaleDecision):  # it was decided elsewhere first
        await api.decide(raised.number, outcome, raised.digest)
