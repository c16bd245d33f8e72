"""The terminal at which a loop was started: it shows what all viewers see, and handles the keys that end the loop."""

from __future__ import annotations

import os
from typing import Any

from ironcurtain.loop.agent import LoopAgent
from ironcurtain.loop.interrupts import Action
from ironcurtain.terminal.attachment import Attachment
from ironcurtain.terminal.guard import Guard
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.keys import INTERRUPT, QUIT, ForwardedInput, Keys
from ironcurtain.terminal.local import LocalTerminal
from ironcurtain.terminal.model import Mode
from ironcurtain.terminal.raw import RawMode
from ironcurtain.terminal.title import Title

OUTPUT = 1
"""Standard output: standard input may be something else."""

HELD_LIMIT = 256 * 1024
"""Maximum bytes queued for a program that does not read, before keys are no longer read (a large paste)."""


class LoopTerminal:
    """
    Connects the local terminal with the loop's.

    :param listens: whether the program gets keys.
    """

    def __init__(self, reactor: Any, agent: LoopAgent, *, listens: bool) -> None:
        self._agent, self._listens = agent, listens
        self._terminal, self._guard = LocalTerminal(reactor, RawMode(OUTPUT)), Guard()
        self._title = Title(os.environ.get("TERM", ""), lambda text: self._terminal.write(text.encode()))
        self._keys = Keys((INTERRUPT, QUIT))
        self._attachment: Attachment | None = None
        self._held: int | None = None
        self._begun = self._over = False

    def begin(self, hub: Hub) -> None:
        """Show the loop's terminal, with the local terminal's size."""
        self._guard.begin(OUTPUT)
        self._terminal.begin(self)
        self._title.begin()
        self._attachment = hub.attach(self, Mode.DRIVE, *self._terminal.size())

    async def left(self) -> None:
        """Restore the local terminal."""
        if self._attachment is not None:
            self._attachment.detach()
        self.ended("", None)
        if not self._terminal.closed.called:
            await self._terminal.closed
        self._guard.end()

    def received(self, read: bytes) -> None:
        """For the terminal: input."""
        for what in self._keys.feed(read):
            if isinstance(what, ForwardedInput) or self._agent.pressed(what.name) is Action.FORWARD:
                self._type(what.data)

    def resized(self, columns: int, rows: int) -> None:
        """For the terminal: it has a new size."""
        if self._attachment is not None:
            self._attachment.resized(columns, rows)

    def drained(self) -> None:
        """For the terminal: it accepts output again."""
        if self._attachment is not None:
            self._attachment.drained()

    def lost(self) -> None:
        """For the terminal: it is gone."""
        self._agent.interrupt("the terminal is gone")

    def draw(self, data: bytes) -> bool:
        """For the hub. The first redraw clears the screen, but the person's own screen may stay."""
        if self._begun:
            self._terminal.write(data)
        self._begun = True
        return not self._terminal.blocked

    def hold(self, full: bool) -> None:
        """For the hub. Keys are still read, so that they can end a program that hangs."""
        self._held = 0 if full else None
        self._terminal.hold(False)

    def ended(self, reason: str, status: int | None) -> None:
        """For the hub: the loop ended."""
        if not self._over:
            self._over = True
            self._title.end()
            self._terminal.close(status)

    def _type(self, data: bytes) -> None:
        if not self._listens or self._attachment is None:
            return
        self._attachment.typed(data)
        if self._held is not None:
            self._held += len(data)
            if self._held > HELD_LIMIT:
                self._terminal.hold(True)
