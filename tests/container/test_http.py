"""The client against something that is no good Engine; the real one answers in the other tests."""

from __future__ import annotations

import math
import shutil
import socket
import tempfile
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import UNIXServerEndpoint
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.internet.task import deferLater
from twisted.python.failure import Failure
from twisted.trial.unittest import TestCase

from ironcurtain.container import engine
from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineError, EngineUnavailable
from ironcurtain.container.http import EngineHttp

PONG = "HTTP/1.1 200 OK\r\nApi-Version: {}\r\nContent-Length: 2\r\n\r\nOK"


def information(text: str) -> str:
    """:returns: what an Engine says of itself and its machine."""
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}"


class Peer(Protocol):
    """Answers requests as its factory says."""

    factory: Peers

    def dataReceived(self, data: bytes) -> None:
        """Answer, or close the connection."""
        self.factory.requests.append(data)
        answer = self.factory.answers.pop(0)
        assert self.transport is not None
        if answer is None:
            self.transport.loseConnection()
        else:
            self.transport.write(answer.encode())

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Tell that it is over."""
        if not self.factory.answers and not self.factory.over.called:
            self.factory.over.callback(None)


class Peers(Factory):
    """
    :ivar answers: to requests in their order; ``None``: the connection is closed.
    :ivar over: fires when a connection ends after the last answer.
    """

    protocol = Peer  # type: ignore[assignment]  # the class is a callable that returns one

    def __init__(self, *answers: str | None) -> None:
        self.answers, self.requests = list(answers), list[bytes]()
        self.over: Deferred[None] = Deferred()


class EngineHttpTests(TestCase):
    timeout = 120

    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = str(self.directory / "engine.sock")
        self.http = EngineHttp(reactor, self.path)

    def fresh(self) -> None:
        """Begin with another socket."""
        self.path += "x"
        self.http = EngineHttp(reactor, self.path)

    async def serve(self, *answers: str | None) -> Peers:
        """Stand in for an Engine."""
        peers = Peers(*answers)
        port = await UNIXServerEndpoint(reactor, self.path).listen(peers)
        self.addCleanup(port.stopListening)
        return peers

    async def unavailable(self, patience: float = 20.0) -> str:
        with self.assertRaises(EngineUnavailable) as caught:
            await self.http.call("GET", "/x", patience=patience)
        self.assertEqual(caught.exception.exit_status, 69)
        self.assertIn("ironcurtain doctor", str(caught.exception))
        why: str = caught.exception.why
        return why

    async def test_no_socket(self) -> None:
        self.assertEqual(await self.unavailable(), "No such file or directory")

    async def test_nobody_listens(self) -> None:
        with socket.socket(socket.AF_UNIX) as ended:
            ended.bind(self.path)
        self.assertEqual(await self.unavailable(), "Connection refused")

    async def test_versions_are_agreed_upon(self) -> None:
        for spoken, used in (("1.41", b"/v1.41/x"), ("1.99", b"/v1.47/x")):
            self.fresh()
            peers = await self.serve(PONG.format(spoken), "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny")
            self.assertEqual(await self.http.call("GET", "/x"), b"y")
            self.assertIn(used, peers.requests[1])
            self.assertIn(b"GET /_ping ", peers.requests[0])

    async def test_an_engine_that_is_too_old_or_none(self) -> None:
        await self.serve(PONG.format("1.40"), PONG.format("x"), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        self.assertEqual(await self.unavailable(), "its API is 1.40, and 1.41 is needed")
        self.assertIn("x, and 1.41", await self.unavailable())
        self.assertIn("unknown", await self.unavailable())

    async def test_what_it_refuses(self) -> None:
        body = '{"message":"no such container"}'
        await self.serve(PONG.format("1.41"), f"HTTP/1.1 404 Not Found\r\nContent-Length: {len(body)}\r\n\r\n{body}")
        with self.assertRaises(EngineError) as caught:
            await self.http.call("GET", "/x")
        self.assertEqual((caught.exception.status, caught.exception.message), (404, "no such container"))

    async def test_it_goes_away(self) -> None:
        for answer in (None, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"):
            self.fresh()
            peers = await self.serve(PONG.format("1.41"), answer)
            await self.http.negotiate()
            await self.unavailable(0.2)
            await peers.over

    async def test_it_falls_silent(self) -> None:
        peers = await self.serve(PONG.format("1.41"), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        await self.http.negotiate()
        self.assertIn("silent", await self.unavailable(0.2))
        await peers.over

    async def test_cancelling_closes_the_connection(self) -> None:
        peers = await self.serve(PONG.format("1.41"), "")
        await self.http.negotiate()
        waiting = Deferred.fromCoroutine(self.http.call("POST", "/wait", patience=None))
        while len(peers.requests) < 2:
            await deferLater(reactor, 0)
        waiting.cancel()
        with self.assertRaises(CancelledError):
            await waiting
        await peers.over

    async def test_how_many_processors_there_are_is_asked_once(self) -> None:
        peers = await self.serve(PONG.format("1.41"), information('{"NCPU": 3}'))
        found = Engine(reactor, self.path)
        self.assertEqual((await found.processors(), await found.processors()), (3.0, 3.0))
        self.assertEqual(len(peers.requests), 2)

    async def test_an_engine_that_does_not_say_how_many_processors_there_are(self) -> None:
        for answer in (information("{}"), "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", None):
            self.fresh()
            await self.serve(PONG.format("1.41"), answer)
            self.assertEqual(await Engine(reactor, self.path).processors(), math.inf)


class FindTests(TestCase):
    def address(self, environ: dict[str, str]) -> str:
        return Engine.find(reactor, environ).address

    def test_the_environment_names_it(self) -> None:
        self.assertEqual(self.address({"DOCKER_HOST": "unix:///a/b.sock"}), "unix:///a/b.sock")

    def test_other_kinds_of_address_are_refused(self) -> None:
        for named in ("tcp://127.0.0.1:2375", "ssh://host", "unix://relative", "/path"):
            with self.assertRaisesRegex(EngineUnavailable, "DOCKER_HOST"):
                self.address({"DOCKER_HOST": named})

    def test_else_the_systems_or_the_users_own(self) -> None:
        directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, directory)
        system, own = directory / "system.sock", directory / "docker.sock"
        self.patch(engine, "USUAL_SOCKET", str(system))
        environ = {"XDG_RUNTIME_DIR": str(directory)}
        self.assertEqual(self.address({}), f"unix://{system}")
        self.assertEqual(self.address(environ), f"unix://{system}")
        own.touch()
        self.assertEqual(self.address(environ), f"unix://{own}")
        system.touch()
        self.assertEqual(self.address(environ), f"unix://{system}")
