"""Show the terminal of a session at the command's terminal, and report how it ended."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import CancelledError, Deferred, FailureGroup, race
from twisted.internet.interfaces import IDelayedCall, IReadDescriptor
from twisted.python.failure import Failure
from zope.interface import implementer

from ironcurtain.cli.output import print_lines
from ironcurtain.errors import IronCurtainError, Unavailable
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.session.model import SessionInfo, State
from ironcurtain.terminal.guard import Guard
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.keys import DETACH, QUIT, Keys
from ironcurtain.terminal.local import LocalTerminal
from ironcurtain.terminal.model import Mode, ProgramExit
from ironcurtain.terminal.raw import in_foreground
from ironcurtain.terminal.viewing import Viewing, attach
from ironcurtain.text.display import one_line
from ironcurtain.view.sessions import how_to_resume

if TYPE_CHECKING:
    from ironcurtain.control.client import ControlClient
    from ironcurtain.session.session import Session

FOREGROUND_SECONDS = 0.5
"""Seconds between checks of a background job whether it is in the foreground again."""

GONE = 69
"""Exit status if the program's is unknown (sysexits.h, EX_UNAVAILABLE)."""


async def view(reactor: Any, hub: Hub, on_key: Callable[[str, Viewing], None]) -> ProgramExit | None:
    """
    Control a terminal of this process.

    :param on_key: called with the names of reserved keys; it may call :meth:`Viewing.leave`.
    :returns: how the program ended; ``None`` if it was detached, or this terminal is gone.
    """
    terminal, over = LocalTerminal(reactor), Deferred[None]()

    def done(*_: object) -> None:
        if not over.called:
            over.callback(None)

    viewing = Viewing(terminal, reactor, Keys((QUIT, DETACH)), lambda name: on_key(name, viewing), done)
    guard = Guard()
    guard.begin(0)
    terminal.begin(viewing)
    terminal.closed.addCallback(done)
    try:
        viewing.begin(hub, Mode.DRIVE)
        await over
    finally:
        viewing.lost()
        terminal.close(None)
        if terminal.connected:
            await terminal.closed
        guard.end()
        if hub.over is None or hub.over.status:
            _begin_line()
    return hub.over


async def view_elsewhere(reactor: Any, owner: ControlClient, info: SessionInfo, mode: Mode) -> int:
    """
    Observe or control the terminal of a session of another process, until it ends or is detached.

    :param owner: that process.
    :returns: the exit status of the command: that of the program; 0 if it was detached.
    :raises NotAllowed: and other errors, if it cannot be attached to.
    """
    from ironcurtain.terminal.wire import Hello

    terminal = LocalTerminal(reactor)
    ticket = await owner.ticket(info.number, mode)
    left: list[str] = []

    def on_key(name: str, viewing: Viewing) -> None:
        if name == QUIT.name and mode is Mode.DRIVE:
            Deferred.fromCoroutine(_end(owner, info.number))
        elif not left:
            left.append(name)
            viewing.leave("left")

    hello = Hello(ticket.session, mode, *terminal.size(), ticket.token)
    guard = Guard()
    guard.begin(0)
    try:
        ended = await attach(reactor, ticket.socket, hello, terminal, Keys((QUIT, DETACH)), on_key)
    except CancelledError:
        _begin_line()
        say_that_it_goes_on(info.number)
        raise
    finally:
        guard.end()
    if left or ended.status != 0:
        _begin_line()
    if left:
        say_that_it_goes_on(info.number)
        return 0
    status = report_end(info.number, ended)
    if ended.status is None and (how := how_to_resume(info)):
        try:
            await owner.session(info.number)
        except Unavailable:  # its process died
            print_lines(how, err=True)
    return status


def _begin_line() -> None:
    """Begin a line below what a program that did not end by itself left on the screen, wherever the cursor is."""
    with suppress(OSError):  # the terminal may have disconnected
        if os.isatty(2):
            os.write(2, b"\r\n\x1b[J")


def report_end(number: int, ended: ProgramExit) -> int:
    """
    Print why a program ended.

    :returns: the exit status of the command.
    """
    print_lines(f"Session {number}: {one_line(ended.reason, 500)}.", err=True)
    return GONE if ended.status is None else ended.status


def say_that_it_goes_on(number: int) -> None:
    """Print how to attach to or end a session that was detached."""
    with suppress(OSError):  # the terminal may have disconnected
        come_back, end = f"ironcurtain attach {number}", f"ironcurtain stop {number}"
        print_lines(f"Session {number} continues. To attach again: {come_back}   To end it: {end}", err=True)


def say_how_to_resume(info: SessionInfo) -> None:
    """Print at a terminal how to resume a session of this machine that has ended, and how to read it."""
    how = "" if isinstance(info.number, HostNumber) else how_to_resume(info)
    with suppress(OSError):  # the terminal may have disconnected
        if how and os.isatty(2):
            print_lines(f"{how}\nTo read its log: ironcurtain logs {info.number}", err=True)


async def come_back(reactor: Any, session: Session) -> bool:
    """
    Wait until the person returns to a detached session of this process, or it ends.

    :returns: whether to return to it.
    """
    here = os.isatty(0) and os.isatty(2)
    how = "Enter returns to it, Ctrl-C ends it" if here else "Ctrl-C ends it"
    print_lines(
        f"Session {session.number} runs in this process, and ends with it. {how}; "
        f"from another terminal: ironcurtain attach {session.number}",
        err=True,
    )
    try:
        await race([session.ended(), *([_enter_pressed(reactor)] if here else [])])
    except FailureGroup:  # neither fails except by cancellation, as by Ctrl-C
        raise CancelledError from None
    return session.state is not State.CLOSED


def _enter_pressed(reactor: Any) -> Deferred[None]:
    pressed: Deferred[None] = Deferred(lambda _: reader.stop())
    reader = _Enter(reactor, pressed)
    reader.start()
    return pressed


@implementer(IReadDescriptor)
class _Enter:
    def __init__(self, reactor: Any, pressed: Deferred[None]) -> None:
        self._reactor, self._pressed = reactor, pressed
        self._later: IDelayedCall | None = None

    def start(self) -> None:
        self._later = None
        self._reactor.addReader(self)

    def stop(self) -> None:
        self._reactor.removeReader(self)
        if self._later is not None:
            self._later.cancel()

    def fileno(self) -> int:
        return 0

    def logPrefix(self) -> str:
        return "standard input"

    def doRead(self) -> None:
        if not in_foreground(
            0
        ):  # input is for other processes, and reading it would stop this process, with the session
            self._reactor.removeReader(self)
            self._later = self._reactor.callLater(FOREGROUND_SECONDS, self.start)
            return
        with suppress(OSError):
            os.read(0, 4096)
        self._reactor.removeReader(self)
        self._pressed.callback(None)

    def connectionLost(self, reason: Failure) -> None:
        pass


async def _end(owner: ControlClient, number: int) -> None:
    with suppress(IronCurtainError):  # it has just ended, or its process has
        await owner.stop(number)
