"""The shell at a terminal before its session is there."""

from __future__ import annotations

import os
import select
import signal
import termios
from fcntl import ioctl
from struct import pack

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound
from ironcurtain.shell.early import EarlyShell
from ironcurtain.shell.starting import ShellStart
from ironcurtain.shell_integration.preparation import Prepared
from ironcurtain.terminal.sequences import RESTORE
from ironcurtain.traces.context import TraceContext
from tests.product import LIMIT
from tests.shell.wrapped import NONCE
from tests.terminal.ptys import ENVIRON


class EarlyTests(SynchronousTestCase):
    """In a terminal of the test's."""

    def setUp(self) -> None:
        self.person, self.terminal = os.openpty()
        self.addCleanup(os.close, self.person)
        self.addCleanup(os.close, self.terminal)
        self.before = termios.tcgetattr(self.terminal)
        self.handler = signal.getsignal(signal.SIGWINCH)
        self.seen = b""

    def start(self, script: str) -> EarlyShell:
        prepared = Prepared(("sh", "-c", script), ENVIRON, True)
        early = EarlyShell(ShellStart(prepared, NONCE, TraceContext("1", "2")), self.terminal)
        early.begin()
        return early

    def shows(self, text: bytes) -> None:
        """Wait until the terminal shows it."""
        while text not in self.seen:
            ready, _, _ = select.select([self.person], [], [], LIMIT)
            self.assertTrue(ready, self.seen)
            self.seen += os.read(self.person, 65536)

    def status(self, early: EarlyShell) -> int:
        """:returns: how it ended."""
        return os.waitstatus_to_exitcode(os.waitpid(early.pid, 0)[1])

    def is_as_before(self) -> None:
        """The terminal is as it was, and nothing was sent to it that was not needed."""
        while select.select([self.person], [], [], 0)[0]:
            self.seen += os.read(self.person, 65536)
        self.assertNotIn(RESTORE, self.seen)
        self.assertEqual(termios.tcgetattr(self.terminal), self.before)
        self.assertEqual(signal.getsignal(signal.SIGWINCH), self.handler)

    def test_keys_and_output_pass_and_the_rest_is_handed_over(self) -> None:
        early = self.start("stty raw -echo; printf ready; dd bs=1 count=4 2>/dev/null; printf there; exec cat")
        self.shows(b"ready")
        os.write(self.person, b"\x03a\x1b\x04")
        self.shows(b"ready\x03a\x1b\x04there")
        master, relayed = early.hand_over()
        self.assertEqual(
            b"".join(each for each in relayed.shown if isinstance(each, bytes)), b"ready\x03a\x1b\x04there"
        )
        os.write(self.person, b"k")  # is for who took over
        self.assertEqual(
            (select.select([early.raw.opened], [], [], LIMIT)[0], os.read(early.raw.opened, 9)),
            ([early.raw.opened], b"k"),
        )
        os.write(master, b"later")
        self.assertEqual((select.select([master], [], [], LIMIT)[0], os.read(master, 9)), ([master], b"later"))
        os.close(master)
        early.close()
        self.is_as_before()
        self.assertEqual(self.status(early), -signal.SIGHUP)

    def test_nobody_takes_over(self) -> None:
        early = self.start("printf ready; exec sleep 100")
        self.shows(b"ready")
        self.assertNotEqual(termios.tcgetattr(self.terminal), self.before)
        early.close()
        self.is_as_before()
        self.assertEqual(self.status(early), -signal.SIGHUP)

    def test_the_shell_ends_before(self) -> None:
        early = self.start("printf '\\033[?1000h\\033[31mbye\\033[m'; exit 5")
        self.shows(b"bye\x1b[m")
        self.assertEqual(self.status(early), 5)
        master, relayed = early.hand_over()
        self.assertEqual(relayed.shown, (b"\x1b[?1000h\x1b[31mbye\x1b[m",))
        os.close(master)
        early.close()
        self.shows(b"bye\x1b[m\x1b[?1000l")
        self.is_as_before()

    def test_its_size_is_the_terminals(self) -> None:
        ioctl(self.terminal, termios.TIOCSWINSZ, pack("4H", 33, 77, 0, 0))
        early = self.start("stty size; stty raw -echo; printf ready; read x; stty size; exec sleep 100")
        self.shows(b"ready")
        self.assertIn(b"33 77", self.seen)
        ioctl(self.terminal, termios.TIOCSWINSZ, pack("4H", 44, 88, 0, 0))
        os.kill(os.getpid(), signal.SIGWINCH)  # that terminal is not the one of this process
        os.write(self.person, b"\n")
        self.shows(b"44 88")
        early.close()
        self.status(early)

    def test_there_is_no_such_shell(self) -> None:
        prepared = Prepared(("no-such-shell",), ENVIRON, True)
        start = ShellStart(prepared, NONCE, TraceContext("1", "2"))
        self.assertRaises(NotFound, EarlyShell, start, self.terminal)
        self.assertEqual(termios.tcgetattr(self.terminal), self.before)
