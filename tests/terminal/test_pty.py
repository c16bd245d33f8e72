"""Real commands in real terminals."""

from __future__ import annotations

import errno
import os
import signal
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock, deferLater

from ironcurtain.errors import NotFound
from ironcurtain.process.termination import GRACE_SECONDS
from ironcurtain.terminal.forked import NoPty
from ironcurtain.terminal.model import ProgramExit
from tests.audit.doubles import open_files
from tests.terminal.ptys import ENVIRON, PtyCase

reactor: Any = _reactor


class PtyTests(PtyCase):
    """One command each."""

    async def test_it_is_a_terminal_of_its_own(self) -> None:
        self.shell("tty; stty size; cut -d' ' -f6 /proc/$$/stat; echo $$; echo $TERM; echo done >/dev/tty")
        ended = await self.pty.done
        name, size, session, pid, term, done = self.watcher.seen.decode().split("\r\n")[:6]
        self.assertRegex(name, "^/dev/pts/")
        self.assertEqual((size, term, done), ("30 100", "xterm-256color", "done"))
        self.assertEqual(int(session), int(pid))
        self.assertEqual((ended, self.watcher.ends), (ProgramExit(0), [ended]))

    async def test_statuses(self) -> None:
        self.shell("exit 7")
        self.assertEqual(await self.pty.done, ProgramExit(7, "ended with status 7"))

    async def test_the_end_of_a_signal(self) -> None:
        self.shell("kill -SEGV $$")
        self.assertEqual(await self.pty.done, ProgramExit(139, "ended by signal SIGSEGV"))

    async def test_keys_reach_it_and_all_bytes_come_back(self) -> None:
        self.shell("stty raw -echo; echo ready; dd bs=1 count=1024 2>/dev/null; sleep 0.1")
        await self.watcher.shows(b"ready")
        start = len(self.watcher.seen)
        self.pty.write(bytes(range(256)) * 4)
        await self.pty.done
        self.assertEqual(self.watcher.seen[start:].lstrip(b"\n"), bytes(range(256)) * 4)

    async def test_output_right_before_the_end_is_not_lost(self) -> None:
        self.shell("seq 1 5000")
        await self.pty.done
        self.assertEqual(self.watcher.seen.split(), b" ".join(b"%d" % i for i in range(1, 5001)).split())

    async def test_nor_is_it_while_paused(self) -> None:
        self.shell("echo begin; read x; seq 1 500; exit 3")
        await self.watcher.shows(b"begin")
        self.pty.pause()
        self.pty.write(b"\r")
        self.assertEqual(await self.pty.done, ProgramExit(3, "ended with status 3"))
        self.assertIn(b"\r\n500\r\n", self.watcher.seen)

    async def test_pausing_makes_it_wait(self) -> None:
        self.shell("echo begin; read x; yes | head -c 300000; echo end")
        await self.watcher.shows(b"begin")
        self.pty.pause()
        self.pty.write(b"\r")
        passed: Deferred[None] = Deferred()
        self.reactor.callLater(0.2, passed.callback, None)
        await passed
        self.assertNotIn(b"end", self.watcher.seen)
        self.assertLess(len(self.watcher.seen), 1000)
        self.pty.resume()
        await self.watcher.shows(b"end")

    async def test_what_it_does_not_read_is_said(self) -> None:
        self.shell("stty raw -echo; echo ready; read x </dev/null; kill -STOP $$")
        await self.watcher.shows(b"ready")
        self.pty.write(b"x" * 200_000)
        self.assertEqual(self.watcher.full, [True])

    async def test_its_size_changes(self) -> None:
        self.shell("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done")
        await self.watcher.shows(b"ready")
        self.pty.resize(120, 40)
        await self.watcher.shows(b"40 120")

    async def test_sizes_that_cannot_be(self) -> None:
        self.spawn("sh", "-c", "stty size; read x; stty size", columns=0, rows=70000)
        await self.watcher.shows(b"500 80")
        self.pty.resize(-3, 0)
        self.pty.write(b"\r")
        await self.watcher.shows(b"24 80")

    async def test_echo_is_known(self) -> None:
        self.shell("echo on; read x; stty -echo; echo off; read x")
        self.assertTrue(self.pty.echoes)
        await self.watcher.shows(b"on")
        self.pty.write(b"\r")
        await self.watcher.shows(b"off")
        self.assertFalse(self.pty.echoes)
        self.pty.write(b"\r")
        await self.pty.done
        self.assertFalse(self.pty.echoes)

    async def test_after_the_end_nothing_does_harm(self) -> None:
        self.shell("true")
        await self.pty.done
        for act in (self.pty.pause, self.pty.resume, self.pty.stop, self.pty.kill, self.pty.close):
            act()
        self.pty.write(b"x")
        self.pty.resize(10, 10)
        self.assertEqual(len(self.watcher.ends), 1)

    async def test_whoever_keeps_the_terminal_does_not_keep_us(self) -> None:
        """A process that ignores the kernel's hanging up."""
        self.shell("trap '' HUP; (sleep 60 & echo $! ); echo out")
        await self.pty.done
        os.kill(int(self.watcher.seen.split()[0]), signal.SIGKILL)


class StoppingTests(PtyCase):
    """TERM, a grace, KILL; to all of it."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock()
        self.make_pty(self.clock)

    async def test_a_polite_one(self) -> None:
        self.shell("trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.05; done")
        await self.watcher.shows(b"ready")
        self.pty.stop()
        self.pty.stop()
        self.assertEqual(await self.pty.done, ProgramExit(4, "ended with status 4"))
        self.assertIn(b"bye", self.watcher.seen)

    async def test_one_that_does_not_listen(self) -> None:
        self.shell("trap 'echo no' TERM; echo ready; while :; do sleep 0.05; done")
        await self.watcher.shows(b"ready")
        self.pty.stop()
        await self.watcher.shows(b"no")
        self.clock.advance(GRACE_SECONDS - 0.1)
        self.assertNotIn("Z", _state(self.pty.pid))
        self.clock.advance(0.1)
        self.assertEqual(await self.pty.done, ProgramExit(137, "ended by signal SIGKILL"))

    async def test_its_children_end_with_it(self) -> None:
        self.shell("trap '' TERM HUP; sh -c 'echo child $$; while :; do sleep 0.05; done' & wait")
        await self.watcher.shows(b"child")
        await self.watcher.shows(b"\r\n")
        child = int(self.watcher.seen.split()[1])
        self.pty.stop()
        self.clock.advance(GRACE_SECONDS)
        await self.pty.done
        await _gone(child)

    async def test_nor_do_children_outlive_a_polite_one(self) -> None:
        self.shell("trap 'exit 0' TERM; sh -c 'trap \"\" TERM HUP; echo child $$; while :; do sleep 0.05; done' & wait")
        await self.watcher.shows(b"child")
        await self.watcher.shows(b"\r\n")
        child = int(self.watcher.seen.split()[1])
        self.pty.stop()
        await self.pty.done
        await _gone(child)

    async def test_the_job_of_a_shell_gets_it_too(self) -> None:
        self.spawn("bash", "--norc", "--noprofile", "-i")
        self.pty.write(b"sh -c 'echo job $((40+2)) $$; exec sleep 100'\r")
        await self.watcher.shows(b"job 42")
        await self.watcher.shows(b"\r\n")
        self.pty.kill()
        self.assertEqual((await self.pty.done).status, 137)

    async def test_at_once(self) -> None:
        self.shell("trap '' TERM INT QUIT HUP; echo ready; while :; do sleep 0.05; done")
        await self.watcher.shows(b"ready")
        self.pty.kill()
        self.assertEqual(await self.pty.done, ProgramExit(137, "ended by signal SIGKILL"))


class FailureTests(PtyCase):
    """It cannot be started."""

    def test_no_such_command(self) -> None:
        for name in ("no-such-command-here", "./no-such-file", "/etc/passwd"):
            self.assertRaises(NotFound, self.spawn, name)

    def test_no_such_directory(self) -> None:
        self.assertRaises(NotFound, self.pty.spawn, ["true"], ENVIRON, "/no/such", 80, 24)

    def test_no_terminal_left(self) -> None:
        def openpty() -> tuple[int, int]:
            raise OSError(errno.ENOSPC, "No space left on device")

        self.patch(os, "openpty", openpty)
        error = self.assertRaises(NoPty, self.spawn, "true")
        self.assertIn("No space left", str(error))

    def test_no_process_left(self) -> None:
        def fork() -> int:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

        before = open_files(alone=True)
        self.patch(os, "fork", fork)
        self.assertRaises(NoPty, self.spawn, "true")
        self.assertEqual(open_files(), before)


async def _gone(pid: int) -> None:
    """Wait until a process has ended: after it was killed it takes a moment."""
    while _state(pid) not in ("", "Z"):
        await deferLater(reactor, 0.01)


def _state(pid: int) -> str:
    """:returns: of a process: ``Z`` when it has ended and its parent has not taken note; empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""
