"""The terminal at which a loop was started: it shows what all its viewers see, and has the keys that end it."""

from __future__ import annotations

from typing import Any

from ironcurtain.loop.agent import LoopAgent
from ironcurtain.loop.interrupts import Action
from ironcurtain.terminal.attachment import Attachment
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.keys import INTERRUPT, QUIT, ForwardedInput, Keys
from ironcurtain.terminal.local import Guard, LocalTerminal
from ironcurtain.terminal.model import Mode

OUTPUT = 1
"""Standard output, whose terminal it is: standard input may be something else."""

HELD_LIMIT = 256 * 1024
"""Most bytes typed to a program that reads nothing, before no more keys are read (a large paste)."""


SAVE_TITLE, RESTORE_TITLE = b"\x1b[22;2t", b"\x1b[23;2t"
"""The window's title is put on the terminal's stack, and taken from it (xterm's ctlseqs, XTWINOPS)."""


class LoopTerminal:
    """
    Joins the local terminal with the loop's.

    :param listens: whether the program gets keys.
    """

    def __init__(self, reactor: Any, agent: LoopAgent, *, listens: bool) -> None:
        self._agent, self._listens = agent, listens
        self._terminal, self._guard = LocalTerminal(reactor, OUTPUT), Guard(reactor)
        self._keys = Keys((INTERRUPT, QUIT))
        self._attachment: Attachment | None = None
        self._held: int | None = None
        self._begun = self._over = False

    def begin(self, hub: Hub) -> None:
        """Show it. Its size is the program's."""
        self._guard.begin(OUTPUT)
        self._terminal.begin(self)
        self._terminal.write(SAVE_TITLE)
        self._attachment = hub.attach(self, Mode.DRIVE, *self._terminal.size())

    async def left(self) -> None:
        """Be as before."""
        if self._attachment is not None:
            self._attachment.detach()
        self.ended("", None)
        if not self._terminal.closed.called:
            await self._terminal.closed
        await self._guard.end()

    def received(self, read: bytes) -> None:
        """For the terminal: keys."""
        for what in self._keys.feed(read):
            if isinstance(what, ForwardedInput) or self._agent.pressed(what.name) is Action.FORWARD:
                self._type(what.data)

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
        self._agent.interrupt("the terminal is gone")

    def draw(self, data: bytes) -> bool:
        """For the hub. What it draws first is an empty screen, but the person's own one may stay as it is."""
        if self._begun:
            self._terminal.write(data)
        self._begun = True
        return not self._terminal.blocked

    def hold(self, full: bool) -> None:
        """For the hub. Keys are still read, or a program that hangs could not be ended by them."""
        self._held = 0 if full else None
        self._terminal.hold(False)

    def ended(self, reason: str, status: int | None) -> None:
        """For the hub: the loop is over."""
        if not self._over:
            self._over = True
            self._terminal.write(RESTORE_TITLE)
            self._terminal.close(status)

    def _type(self, data: bytes) -> None:
        if not self._listens or self._attachment is None:
            return
        self._attachment.typed(data)
        if self._held is not None:
            self._held += len(data)
            if self._held > HELD_LIMIT:
                self._terminal.hold(True)
