"""Commands in terminals that were started without the reactor, and are its own from then on."""

from __future__ import annotations

import os
import select
import signal

from ironcurtain.process.programs import find_program
from ironcurtain.terminal.forked import start_in_terminal
from ironcurtain.terminal.model import ProgramExit
from tests.machine import wait_until_ended
from tests.terminal.ptys import ENVIRON, PtyCase


class AdoptedTests(PtyCase):
    """One command each."""

    def adopt(self, script: str, *, until_exit: bool = False) -> None:
        shell = find_program("sh", ENVIRON, "/")
        pid, master = start_in_terminal(shell, ("sh", "-c", script), ENVIRON, (100, 30))
        if until_exit:
            wait_until_ended(pid)
        self.pty.adopt(pid, master)

    async def test_it_is_a_terminal_of_its_own(self) -> None:
        self.adopt("tty; stty size; cut -d' ' -f6 /proc/$$/stat; echo $$; echo $TERM; echo done >/dev/tty")
        ended = await self.pty.done
        name, size, session, pid, term, done = self.watcher.seen.decode().split("\r\n")[:6]
        self.assertRegex(name, "^/dev/pts/")
        self.assertEqual((size, term, done), ("30 100", "xterm-256color", "done"))
        self.assertEqual(int(session), int(pid))
        self.assertEqual((ended, self.watcher.ends), (ProgramExit(0), [ended]))

    async def test_statuses(self) -> None:
        self.adopt("exit 7")
        self.assertEqual(await self.pty.done, ProgramExit(7, "ended with status 7"))

    async def test_the_end_of_a_signal(self) -> None:
        self.adopt("kill -SEGV $$")
        self.assertEqual(await self.pty.done, ProgramExit(139, "ended by signal SIGSEGV"))

    async def test_one_that_has_exited_already(self) -> None:
        self.adopt("echo last; exit 3", until_exit=True)
        self.assertEqual(await self.pty.done, ProgramExit(3, "ended with status 3"))
        self.assertEqual(self.watcher.seen, b"last\r\n")

    async def test_keys_and_its_size(self) -> None:
        self.adopt("stty -echo; trap 'stty size' WINCH; echo ready; while read -r line; do echo got $line; done")
        await self.watcher.shows(b"ready")
        self.pty.resize(100, 30)  # as it is
        self.pty.write(b"one\n")
        await self.watcher.shows(b"got one")
        self.assertNotIn(b"30 100", self.watcher.seen)
        self.pty.resize(77, 33)
        self.pty.write(b"two\n")  # dash does not interrupt a read
        await self.watcher.shows(b"33 77")

    async def test_it_is_ended(self) -> None:
        self.adopt("trap 'echo bye; exit 4' HUP; echo ready; while :; do sleep 0.05; done")
        await self.watcher.shows(b"ready")
        self.pty.stop(signal.SIGHUP)
        self.assertEqual(await self.pty.done, ProgramExit(4, "ended with status 4"))
        self.pty.stop()  # late

    async def test_only_its_terminal_is_open_in_it(self) -> None:
        read, write = os.pipe()
        os.set_inheritable(write, True)
        self.adopt("exec sleep 100")
        os.close(write)
        ready, _, _ = select.select([read], [], [], 60)  # its end, once no process has the other side
        self.assertEqual((ready, os.read(read, 1)), ([read], b""))
        os.close(read)

    async def test_signals_that_python_ignores_end_it(self) -> None:
        self.adopt("kill -PIPE $$; echo ignored")
        self.assertEqual(await self.pty.done, ProgramExit(141, "ended by signal SIGPIPE"))

    async def test_one_that_cannot_be_executed(self) -> None:
        pid, master = start_in_terminal("/dev/null", ("null",), ENVIRON, (80, 24))
        self.pty.adopt(pid, master)
        self.assertEqual(await self.pty.done, ProgramExit(126, "ended with status 126"))
        self.assertIn(b"/dev/null cannot be executed", self.watcher.seen)
