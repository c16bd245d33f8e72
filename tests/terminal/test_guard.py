from __future__ import annotations

import os
import pty
import select
import signal
import termios
import tty

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.guard import Guard
from ironcurtain.terminal.sequences import RESTORE
from tests.machine import UID

LIMIT = 60.0
"""Seconds until it is restored."""


class GuardTests(SynchronousTestCase):
    """A process whose terminal is raw, and that is killed."""

    def restored(self, flags: int, other: bool) -> None:
        """
        :param flags: with which the terminal is its standard input.
        :param other: whether it is another account's.
        """
        person, terminal = pty.openpty()
        self.addCleanup(os.close, person)
        self.addCleanup(os.close, terminal)
        before = termios.tcgetattr(terminal)
        given = os.open(os.ttyname(terminal), flags | os.O_NOCTTY)
        if not (pid := os.fork()):
            try:
                if other:
                    os.setgroups([])
                    os.setresgid(UID, UID, UID)
                    os.setresuid(UID, UID, UID)
                os.dup2(given, 0)
                Guard().begin(0)
                tty.setraw(0)
                os.kill(os.getpid(), signal.SIGKILL)
            finally:
                os._exit(1)
        os.close(given)
        self.assertEqual(os.WTERMSIG(os.waitpid(pid, 0)[1]), signal.SIGKILL)
        said = b""
        while not said.replace(b"\r\n", b"\n").endswith(RESTORE):
            self.assertTrue(select.select([person], [], [], LIMIT)[0], said)
            said += os.read(person, 65536)
        self.assertEqual(termios.tcgetattr(terminal), before)

    def test_terminal_of_this_account(self) -> None:
        self.restored(os.O_RDWR, False)

    def test_terminal_that_was_opened_for_reading(self) -> None:
        self.restored(os.O_RDONLY, False)

    def test_terminal_of_another_account(self) -> None:
        if os.geteuid() == 0:  # who else could become another one?
            self.restored(os.O_RDWR, True)
