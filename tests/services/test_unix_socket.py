"""UNIX sockets that only one account may use."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import stat
import tempfile
from functools import partial
from pathlib import Path
from typing import Any
from unittest import skipIf

from twisted.internet import reactor as _reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import UNIXClientEndpoint, connectProtocol
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.threads import deferToThread
from twisted.logger import capturedLogs
from twisted.trial.unittest import TestCase

from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.home.layout import SOCKET_PATH_LIMIT
from ironcurtain.services.unix_socket import UnixListener, listen

reactor: Any = _reactor


STRANGER = 64_000
"""A uid that nobody has here."""


def said_to(client: socket.socket) -> bytes:
    """:returns: what a client hears first; nothing if it is turned away."""
    try:
        return client.recv(99)
    except ConnectionResetError:
        return b""


class Greeter(Protocol):
    def connectionMade(self) -> None:
        assert self.transport is not None
        self.transport.write(b"hello")


class ListenTests(TestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.path = self.top / "run" / "x.sock"

    async def listen(self, path: Path | None = None) -> UnixListener:
        """:returns: a listener that is stopped after the test."""
        listener = await listen(path or self.path, Factory.forProtocol(Protocol))
        self.addCleanup(lambda: Deferred.fromCoroutine(listener.stop()))
        return listener

    async def test_no_more_than_so_many_come_in(self) -> None:
        listener = await listen(self.path, Factory.forProtocol(Greeter), clients=3)
        self.addCleanup(lambda: Deferred.fromCoroutine(listener.stop()))
        with capturedLogs() as logged:
            clients = [await deferToThread(self.client) for _ in range(8)]
        self.assertEqual([said for _, said in clients], [b"hello"] * 3 + [b""] * 5)
        self.assertEqual([event["why"] for event in logged if "why" in event], ["there are already 3"])
        for client, _ in clients:
            client.close()
        while (await deferToThread(self.client))[1] == b"":  # until it is known that they have gone
            pass

    async def test_the_last_descriptors_are_not_for_clients(self) -> None:
        listener = await listen(self.path, Factory.forProtocol(Greeter))
        self.addCleanup(lambda: Deferred.fromCoroutine(listener.stop()))
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        # What earlier tests left open counts, too, and limits a quarter.
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 400, hard))
        filling = [os.dup(0) for _ in range(330)]
        self.addCleanup(lambda: list(map(os.close, filling)))
        self.assertEqual((await deferToThread(self.client))[1], b"")
        while filling:
            os.close(filling.pop())
        self.assertEqual((await deferToThread(self.client))[1], b"hello")

    def client(self) -> tuple[socket.socket, bytes]:
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.settimeout(60)
        client.connect(str(self.path))
        return client, said_to(client)

    async def test_it_lets_its_owner_in(self) -> None:
        mask = os.umask(0)
        self.addCleanup(os.umask, mask)
        listener = await self.listen()
        self.assertEqual(stat.S_IMODE(self.path.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.path.parent.stat().st_mode), 0o700)
        self.assertTrue(listener.alive)
        client = await connectProtocol(UNIXClientEndpoint(reactor, str(self.path)), Protocol())
        client.transport.loseConnection()

    @skipIf(os.geteuid() != 0, "only root can connect as another user")
    async def test_a_changed_mode_lets_nobody_else_in(self) -> None:
        made: list[Any] = []

        class Greeting(Protocol):
            def connectionMade(self) -> None:
                made.append(self)
                self.transport.write(b"hello")  # type: ignore[union-attr]

        for owner, welcome in ((None, {0}), ((STRANGER + 1, STRANGER + 1), {0, STRANGER + 1})):
            listener = await listen(self.path, Factory.forProtocol(Greeting), owner)
            for place, mode in ((self.top, 0o755), (self.path.parent, 0o755), (self.path, 0o666)):
                place.chmod(mode)
            for uid in (0, STRANGER, STRANGER + 1):
                made.clear()
                said = await deferToThread(partial(said_to, self.connected(uid)))
                self.assertEqual((said, len(made)), (b"hello", 1) if uid in welcome else (b"", 0), (owner, uid))
                for each in made:
                    each.transport.abortConnection()
            await listener.stop()

    def connected(self, uid: int) -> socket.socket:
        """:returns: a connection to the socket, as another user."""
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        os.seteuid(uid)
        try:
            client.connect(str(self.path))
        finally:
            os.seteuid(0)
        return client

    async def test_cancelled_it_leaves_no_file(self) -> None:
        listening = Deferred.fromCoroutine(listen(self.path, Factory.forProtocol(Protocol)))
        self.assertTrue(self.path.exists())
        listening.cancel()
        with self.assertRaises(CancelledError):
            await listening
        self.assertFalse(self.path.exists())

    async def test_a_stale_socket_is_removed(self) -> None:
        self.path.parent.mkdir(mode=0o700)
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(self.path))
        await self.listen()

    async def test_what_is_in_the_way_stays(self) -> None:
        await self.listen()
        file, link = self.top / "run" / "file", self.top / "run" / "link"
        file.write_text("x")
        link.symlink_to(self.path)
        for path in (self.path, file, link):
            with self.assertRaises(Unavailable):
                await self.listen(path)
            self.assertTrue(path.exists())

    async def test_a_directory_of_everybody_is_refused(self) -> None:
        (self.top / "open").mkdir()
        (self.top / "open").chmod(0o777)
        with self.assertRaises(Unavailable):
            await self.listen(self.top / "open" / "x.sock")

    async def test_a_long_path_is_named(self) -> None:
        path = self.top / ("x" * SOCKET_PATH_LIMIT)
        with self.assertRaises(ConfigurationError) as caught:
            await self.listen(path)
        self.assertIn(str(path), str(caught.exception))

    async def test_it_is_dead_without_its_file(self) -> None:
        for spoil in (
            self.path.unlink,
            lambda: shutil.rmtree(self.path.parent),
            lambda: self.path.rename(self.top / "y"),
        ):
            listener = await listen(self.path, Factory.forProtocol(Protocol))
            spoil()
            self.assertFalse(listener.alive)
            await listener.stop()
            self.assertFalse(self.path.exists())

    async def test_it_is_dead_after_its_end(self) -> None:
        listener = await self.listen()
        await listener.stop()
        self.assertFalse(listener.alive or self.path.exists())
