"""The terminal at which a program was started is afterwards as before, whatever happens."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.terminal.raw import NoTerminal, RawMode
from ironcurtain.terminal.sequences import RESTORE
from tests.terminal.ptys import PtyCase

TOP = Path(__file__).parent.parent.parent
PROGRAM = "tests/terminal/at_terminal.py"


class LocalTests(PtyCase):
    """A shell in a terminal says what the terminal's settings are, before and after the program."""

    async def start(self, how: str) -> int:
        """:returns: the program's pid, once it has switched to raw mode."""
        run = f"PYTHONPATH={TOP} {sys.executable} {TOP}/{PROGRAM} {how} 2>/dev/null"
        self.shell(f"stty -g; {run}; echo status $?; stty -g; echo over")
        await self.watcher.shows(b";")
        match = re.search(rb"raw (\d+) shared=(\d) (\d+) (\d+);", self.watcher.seen)
        assert match is not None
        self.assertEqual(match.group(2, 3, 4), (b"0", b"100", b"30"))
        return int(match[1])

    async def is_as_before(self, status: int) -> None:
        await self.watcher.shows(b"over\r\n")
        before, after = re.findall(rb"^[0-9a-f]+(?::[0-9a-f]+){10,}", self.watcher.seen, re.MULTILINE)
        self.assertEqual(before, after)
        self.assertIn(RESTORE, self.watcher.seen)
        self.assertIn(b"status %d\r\n" % status, self.watcher.seen)
        await self.pty.done

    async def test_keys_come_as_they_are(self) -> None:
        await self.start("plain")
        for key in (b"\x03", b"\x1c", b"\x1a", b"\x11", b"\r", b"\xff", b"\x1b[A"):
            self.pty.write(key)
            await self.watcher.shows(b"<%b>" % key)
        self.pty.write(b"q")
        await self.is_as_before(0)
        self.assertIn(b"bye", self.watcher.seen)

    async def test_its_size(self) -> None:
        await self.start("plain")
        self.pty.resize(77, 33)
        await self.watcher.shows(b"size 77 33;")
        self.pty.write(b"q")
        await self.is_as_before(0)

    async def test_it_says_when_it_is_full(self) -> None:
        await self.start("plain")
        self.pty.pause()
        self.pty.write(b"b")
        self.pty.resume()
        await self.watcher.shows(b"drained 1;")
        self.assertIn(b"y" * 1_000_000, self.watcher.seen)
        self.pty.write(b"q")
        await self.is_as_before(0)

    async def test_an_exception(self) -> None:
        await self.start("raise")
        await self.is_as_before(1)

    async def test_an_exit(self) -> None:
        await self.start("exit")
        await self.is_as_before(6)

    async def test_the_reactor_is_stopped(self) -> None:
        await self.start("plain")
        self.pty.write(b"x")
        await self.is_as_before(0)

    async def test_signals_that_the_reactor_handles(self) -> None:
        os.kill(await self.start("plain"), signal.SIGTERM)
        await self.is_as_before(0)

    async def test_interrupted(self) -> None:
        os.kill(await self.start("plain"), signal.SIGINT)
        await self.is_as_before(0)

    async def dies_of(self, number: signal.Signals) -> None:
        os.kill(await self.start("bare"), number)
        await self.is_as_before(128 + number)

    async def test_terminated_with_nobody_to_handle_it(self) -> None:
        await self.dies_of(signal.SIGTERM)

    async def test_hung_up(self) -> None:
        await self.dies_of(signal.SIGHUP)

    async def test_quit(self) -> None:
        await self.dies_of(signal.SIGQUIT)


class NoTerminalTests(SynchronousTestCase):
    """There is none."""

    def test_a_pipe_is_none(self) -> None:
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        self.addCleanup(os.close, write)
        error = self.assertRaises(NoTerminal, RawMode, read)
        self.assertIn("redirected", str(error))
