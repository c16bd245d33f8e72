"""``ironcurtain shell`` at this terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from ironcurtain.assembly import Application
from ironcurtain.cli.run import run
from ironcurtain.errors import ConfigurationError
from ironcurtain.home.layout import Home
from ironcurtain.services.lifecycle import to_its_end
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.session import Session
from ironcurtain.shell.agent import ShellAgent
from ironcurtain.shell.early import EarlyShell
from ironcurtain.shell.nesting import KIND
from ironcurtain.terminal.attachment import Attachment
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.local import LocalTerminal
from ironcurtain.terminal.model import Mode
from ironcurtain.terminal.sequences import RESTORE
from ironcurtain.text.display import one_line

if TYPE_CHECKING:
    from ironcurtain.operations.watchers import Watchers


class ShellTerminal:
    """
    One shell at this terminal. Every key is the shell's, or the agent's while that works.

    :param options: of the session.
    :param config_file: settings in place of the home's.
    :param early: the shell, which is relayed to this terminal.
    """

    def __init__(self, home: Home, options: Mapping[str, Any], config_file: Path | None, early: EarlyShell) -> None:
        self._home, self._options, self._config_file, self._early = home, options, config_file, early
        self._terminal: LocalTerminal | None = None
        self._attachment: Attachment | None = None
        self._session: Session | None = None
        self._over: Deferred[int | None] = Deferred()
        self._begun = False
        self._signal = 0

    def run(self) -> int:
        """:returns: the exit status of the shell, 128 and the number of a signal that ended us."""
        return run(self._main, self._on_signal)

    def _on_signal(self, number: int) -> bool:
        if number == signal.SIGINT:  # from elsewhere: the terminal itself is raw
            return self._attachment is not None
        self._signal = number
        if self._session is None or self._over.called:
            return False
        # Its terminal says when it has ended, and is as it was by then.
        Deferred.fromCoroutine(self._session.close(f"ended by {signal.Signals(number).name}"))
        return True

    async def _main(self, reactor: Any) -> int:
        early = self._early
        terminal = self._terminal = LocalTerminal(reactor, early.raw)
        application = Application.alone(reactor, self._home, os.environ, self._config_file, early.start)
        await application.start()
        watchers = None
        try:
            request = SessionRequest(KIND, "", None, self._options, terminal=terminal.size())
            session = self._session = await application.manager.create(request)
            agent, hub = session.agent, session.terminal
            assert isinstance(agent, ShellAgent) and hub is not None  # that is what this kind makes
            terminal.begin(self)
            master, relayed = early.hand_over()
            terminal.write(relayed.unshown)
            agent.take_over(early.pid, master, relayed)
            self._attach(hub)
            agent.take(relayed.waiting)
            watchers = await follow_watchers(reactor, self._home, agent)
            status = await self._over
        finally:
            if self._attachment is not None:
                self._attachment.detach()
            terminal.close(None)
            if watchers is not None:
                await to_its_end(watchers.stop())
            await to_its_end(application.stop("the command ends"))
            if terminal.connected and not terminal.closed.called:
                await terminal.closed
        return 128 + self._signal if self._signal else status if status is not None else 1

    def _attach(self, hub: Hub) -> None:
        assert self._terminal is not None
        self._attachment = hub.attach(self, Mode.DRIVE, *self._terminal.size())

    def received(self, read: bytes) -> None:
        """For the terminal: keys."""
        if self._attachment is not None:
            self._attachment.typed(read)

    def resized(self, columns: int, rows: int) -> None:
        """For the terminal: its size has changed."""
        if self._attachment is not None:
            self._attachment.resized(columns, rows)

    def drained(self) -> None:
        """For the terminal: it is not blocked any more."""
        if self._attachment is not None:
            self._attachment.drained()

    def lost(self) -> None:
        """For the terminal: it is gone."""
        self.ended("", 128 + signal.SIGHUP)

    def draw(self, data: bytes) -> bool:
        """For the hub. What it draws first is an empty screen, but the user's own one stays as it is."""
        assert self._terminal is not None
        if self._begun:
            data = self._early.changes.restoration() if data == RESTORE else data
            self._early.changes.feed(data)
            self._terminal.write(data)
        self._begun = True
        return not self._terminal.blocked

    def hold(self, full: bool) -> None:
        """For the hub: the shell does not read."""
        assert self._terminal is not None
        self._terminal.hold(full)

    def ended(self, reason: str, status: int | None) -> None:
        """For the hub: the shell ended."""
        if not self._over.called:
            self._over.callback(status)


async def follow_watchers(reactor: Any, home: Home, agent: ShellAgent) -> Watchers | None:
    """
    Follow the watchers whose agent is that of a shell.

    :returns: what follows them; ``None``: there is no such file.
    """
    if not os.path.lexists(home.watchers):
        return None
    from ironcurtain.operations.watchers import Watchers
    from ironcurtain.shell.watcher_runs import ShellRuns

    say = agent.front_ends.announcements.say
    watchers = Watchers(reactor, home, os.environ, ShellRuns(agent.typed.waiting, say), in_shell=True, say=say)
    try:
        await watchers.start()
    except ConfigurationError as e:
        say(f"no watchers: {one_line(str(e))}")
    return watchers
