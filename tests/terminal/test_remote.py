"""A terminal in one process, and a person at a terminal of another."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

from twisted.internet.interfaces import IAddress, IReactorTime

from ironcurtain.errors import NotAllowed
from ironcurtain.services.unix_socket import UnixListener, listen
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode, ProgramExit
from ironcurtain.terminal.pty import LocalPty
from ironcurtain.terminal.remote import AttachFactory, AttachServer, Check
from ironcurtain.terminal.screen import Screens
from ironcurtain.terminal.sequences import RESTORE
from ironcurtain.terminal.wire import Hello
from tests.terminal.ptys import ENVIRON, PtyCase

TOP = Path(__file__).parent.parent.parent


class Remembering(AttachFactory):
    """Knows its connections."""

    def __init__(self, check: Check, clock: IReactorTime) -> None:
        super().__init__(check, clock)
        self.made: list[AttachServer] = []

    def buildProtocol(self, addr: IAddress | None) -> AttachServer:
        self.made.append(super().buildProtocol(addr))
        return self.made[-1]


class RemoteTests(PtyCase):
    """The outer terminal is the person's, the inner one is the program's."""

    async def setUp(self) -> None:  # type: ignore[override]
        super().setUp()
        self.directory = Path(tempfile.mkdtemp(dir="/tmp"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.socket = self.directory / "stream.sock"
        self.factory = Remembering(self.check, self.reactor)
        self.listener: UnixListener = await listen(self.socket, self.factory)
        self.inner = LocalPty(self.reactor, self.reactor)
        self.hub = Hub(self.inner, self.reactor, Screens(self.reactor).open(80, 24), (80, 24))
        self.inner.owner = self.hub

    async def tearDown(self) -> None:  # type: ignore[override]
        await super().tearDown()
        await self.listener.stop()
        if self.inner.pid and not self.inner.done.called:
            self.inner.kill()
            await self.inner.done
        self.hub.ended(ProgramExit(None))

    def check(self, hello: Hello) -> Hub:
        if hello.token != "right":
            raise NotAllowed("the token is wrong")
        return self.hub

    def program(self, script: str) -> None:
        self.inner.spawn(["sh", "-c", script], ENVIRON, "/", 80, 24)

    def view(self, token: str = "right", mode: Mode = Mode.DRIVE) -> None:
        run = f"PYTHONPATH={TOP} {sys.executable} {TOP}/tests/terminal/at_viewer.py {self.socket} {token} {mode} 2>&1"
        self.shell(f"stty -g; {run}; stty -g; echo over")

    async def is_as_before(self) -> str:
        """:returns: what the program printed about the end."""
        await self.watcher.shows(b"over\r\n")
        before, after = re.findall(rb"^[0-9a-f]+(?::[0-9a-f]+){10,}", self.watcher.seen, re.MULTILINE)
        self.assertEqual(before, after)
        await self.pty.done
        said = re.search(rb"\[[^\x1b]*?: [^\x1b]*?\]\r", self.watcher.seen)
        assert said is not None, self.watcher.seen
        return said[0].decode().strip()

    async def test_the_whole_way(self) -> None:
        self.program("while read line; do echo got $line $(stty size); [ $line = end ] && exit 7; done")
        self.view()
        await self.watcher.shows(RESTORE)
        self.pty.write(b"first\r")
        await self.watcher.shows(b"got first 30 100")
        self.pty.resize(120, 40)
        while b"40 120" not in self.watcher.seen:
            self.pty.write(b"next\r")
            await self.watcher.more()
        self.pty.write(b"end\r")
        self.assertEqual(await self.is_as_before(), "[ended with status 7: 7]")
        self.assertIn(RESTORE, self.watcher.seen)

    async def test_detached_and_attached_again(self) -> None:
        self.program("printf 'old screen \\033[?1049h\\033[Hfull screen'; read x")
        self.view()
        await self.watcher.shows(b"full screen")
        self.pty.write(b"\x1c")
        self.assertEqual(await self.is_as_before(), "[quit: None]")
        self.assertIsNone(self.hub.over)
        self.watcher.seen = b""
        self.make_pty(self.reactor)
        self.view()
        await self.watcher.shows(b"full screen")
        self.assertIn(b"old screen", self.watcher.seen)
        self.pty.write(b"\r")
        self.assertEqual(await self.is_as_before(), "[: 0]")

    async def test_one_who_only_looks_on(self) -> None:
        self.program("echo shown; read x; echo typed; read x")
        self.view(mode=Mode.OBSERVE)
        await self.watcher.shows(b"shown")
        self.pty.write(b"\r")
        self.inner.write(b"\r")
        await self.watcher.shows(b"typed")
        self.assertIsNone(self.hub.over)
        self.inner.kill()
        self.assertEqual(await self.is_as_before(), "[ended by signal SIGKILL: 137]")

    async def test_refused(self) -> None:
        self.program("read x")
        self.view("wrong")
        self.assertEqual(await self.is_as_before(), "[NOT_ALLOWED: the token is wrong]")
        self.assertNotIn(RESTORE, self.watcher.seen)

    async def test_nobody_there(self) -> None:
        await self.listener.stop()
        self.view()
        self.assertIn("[UNAVAILABLE: the session's process does not answer", await self.is_as_before())

    async def test_a_megabyte(self) -> None:
        self.program("echo begin; read x; seq 1 150000; echo end; read x")
        self.view()
        await self.watcher.shows(b"begin")
        self.pty.write(b"\r")
        await self.watcher.shows(b"end")
        self.assertIn(b"149999\r\n150000\r\nend", self.watcher.seen)
        numbers = re.findall(rb"^(\d+)\r$", self.watcher.seen, re.MULTILINE)
        self.assertEqual(numbers, [b"%d" % i for i in range(1, 150001)])
        self.pty.write(b"\r")
        await self.is_as_before()

    async def test_the_owner_goes(self) -> None:
        self.program("echo ready; read x")
        self.view()
        await self.watcher.shows(b"ready")
        for connection in self.factory.made:
            connection.transport.abortConnection()
        self.assertEqual(await self.is_as_before(), "[the connection to the session was lost: None]")
