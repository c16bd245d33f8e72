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

from ironcurtain.container import engine_socket
from ironcurtain.container.client import EngineClient
from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import EngineError, EngineUnavailable


def answer(text: str) -> str:
    """:returns: an answer in JSON."""
    return f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}"


def version(spoken: str) -> str:
    """:returns: the answer to what versions of its API an Engine has."""
    return answer(f'{{"ApiVersion": "{spoken}"}}')


class Peer(Protocol):
    """Answers requests as its factory says."""

    factory: Peers

    def connectionMade(self) -> None:
        """Let the factory know."""
        self.factory.open.add(self)

    def dataReceived(self, data: bytes) -> None:
        """Answer, or close the connection."""
        self.factory.requests.append(data)
        self.factory.tell()
        answer = self.factory.answers.pop(0)
        assert self.transport is not None
        if answer is None:
            self.transport.loseConnection()
        else:
            self.transport.write(answer.encode())

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Tell that it is over."""
        self.factory.open.discard(self)
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
        self.open: set[Peer] = set()
        self._asked: dict[int, Deferred[None]] = {}

    def asked(self, count: int) -> Deferred[None]:
        """:returns: fires when so many requests have come."""
        self._asked[count] = Deferred()
        self.tell()
        return self._asked[count]

    def tell(self) -> None:
        """A request has come."""
        if (waiting := self._asked.get(len(self.requests))) is not None and not waiting.called:
            waiting.callback(None)

    async def closed(self) -> None:
        """Close each connection and wait for that."""
        self.answers.clear()
        self.hang_up()
        await self.left()

    async def left(self) -> None:
        """Wait until nobody is connected."""
        while self.open:
            await deferLater(reactor, 0)

    def hang_up(self) -> None:
        """Close each connection once what was written has gone out."""
        for peer in list(self.open):
            assert peer.transport is not None
            peer.transport.loseConnection()


class EngineClientTests(TestCase):
    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = str(self.directory / "engine.sock")
        self.fresh()

    def fresh(self, seconds: float = 20.0) -> None:
        """Begin with another socket."""
        self.path += "x"
        self.engine = Engine(reactor, self.path, seconds)
        self.addCleanup(self.engine.close)

    async def serve(self, *answers: str | None) -> Peers:
        """Stand in for an Engine."""
        peers = Peers(*answers)
        self.port = await UNIXServerEndpoint(reactor, self.path).listen(peers)
        self.addCleanup(peers.closed)
        self.addCleanup(self.port.stopListening)
        return peers

    async def unavailable(self) -> str:
        with self.assertRaises(EngineUnavailable) as caught:
            await self.engine.info()
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

    async def test_it_ends_before_a_stream(self) -> None:
        await self.serve(version("1.41"))
        await self.engine.ping()
        await self.port.stopListening()
        with self.assertRaisesRegex(EngineUnavailable, "No such file or directory"):
            await self.engine.wait("c")

    async def test_versions_are_agreed_upon(self) -> None:
        for spoken, used in (("1.41", b"GET /v1.41/info "), ("1.99", b"GET /v1.47/info ")):
            self.fresh()
            peers = await self.serve(version(spoken), answer("{}"))
            self.assertEqual(await self.engine.info(), {})
            self.assertIn(b"GET /version ", peers.requests[0])
            self.assertIn(used, peers.requests[1])

    async def test_an_engine_that_is_too_old_or_none(self) -> None:
        await self.serve(version("1.40"), version("x"), answer("{}"), answer("no JSON"), answer('["a list"]'))
        self.assertEqual(await self.unavailable(), "its API is 1.40, and 1.41 is needed")
        self.assertIn("x, and 1.41", await self.unavailable())
        self.assertIn("unknown", await self.unavailable())
        for _ in range(2):
            self.assertEqual(await self.unavailable(), "its answer is not that of a Docker Engine")

    async def test_what_it_refuses(self) -> None:
        for body, message in (
            ('{"message":"no such container"}', "no such container"),
            ("page not found\n", "page not found"),
        ):
            self.fresh()
            refusal = f"HTTP/1.1 404 Not Found\r\nContent-Length: {len(body)}\r\n\r\n{body}"
            await self.serve(version("1.41"), refusal)
            with self.assertRaises(EngineError) as caught:
                await self.engine.inspect("c")
            self.assertEqual((caught.exception.status, caught.exception.message), (404, message))

    async def test_it_goes_away(self) -> None:
        for reply in (None, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"):
            self.fresh()
            peers = await self.serve(version("1.41"), reply)
            await self.engine.ping()
            asking = Deferred.fromCoroutine(self.unavailable())
            await peers.asked(2)
            peers.hang_up()
            self.assertEqual(await asking, "it closed the connection")

    async def test_it_goes_away_before_the_end_of_an_answer_that_comes_bit_by_bit(self) -> None:
        peers = await self.serve(version("1.41"), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        waiting = Deferred.fromCoroutine(self.engine.wait("c"))
        await peers.asked(2)
        peers.hang_up()
        with self.assertRaisesRegex(EngineUnavailable, "closed the connection"):
            await waiting

    async def test_it_falls_silent(self) -> None:
        for reply in ("", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"):
            self.fresh(0.1)
            peers = await self.serve(version("1.41"), reply)
            self.assertIn("silent", await self.unavailable())
            await peers.left()

    async def test_an_answer_that_comes_bit_by_bit_falls_silent(self) -> None:
        got, begun = bytearray(), "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
        peers = await self.serve(version("1.41"), begun)
        client = EngineClient(reactor, self.path, 20.0)
        self.addCleanup(client.close)
        with self.assertRaisesRegex(EngineUnavailable, "silent"):
            await client.read("/build", {}, b"archive", got.extend, silence=1.0)
        self.assertEqual(got, b"half")
        await peers.over

    async def test_a_call_that_is_cancelled_is_left_to_itself(self) -> None:
        peers = await self.serve(version("1.41"), "", answer("{}"))
        calling = Deferred.fromCoroutine(self.engine.inspect("c"))
        await peers.asked(2)
        calling.cancel()
        with self.assertRaises(CancelledError):
            await calling
        self.assertEqual(await self.engine.info(), {})
        peers.hang_up()

    async def test_cancelling_closes_the_connection_of_a_stream(self) -> None:
        peers = await self.serve(version("1.41"), "")
        waiting = Deferred.fromCoroutine(self.engine.wait("c"))
        await peers.asked(2)
        waiting.cancel()
        with self.assertRaises(CancelledError):
            await waiting
        await peers.over

    async def test_how_many_processors_there_are_is_asked_once(self) -> None:
        peers = await self.serve(version("1.41"), answer('{"NCPU": 3}'))
        self.assertEqual((await self.engine.processors(), await self.engine.processors()), (3.0, 3.0))
        self.assertEqual(len(peers.requests), 2)

    async def test_an_engine_that_does_not_say_how_many_processors_there_are(self) -> None:
        for reply in (answer("{}"), "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", None):
            self.fresh()
            await self.serve(version("1.41"), reply)
            self.assertEqual(await self.engine.processors(), math.inf)


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
        self.patch(engine_socket, "USUAL", str(system))
        environ = {"XDG_RUNTIME_DIR": str(directory)}
        self.assertEqual(self.address({}), f"unix://{system}")
        self.assertEqual(self.address(environ), f"unix://{system}")
        desktop = directory / ".docker/run/docker.sock"
        desktop.parent.mkdir(parents=True)
        desktop.touch()
        environ["HOME"] = str(directory)
        self.assertEqual(self.address(environ), f"unix://{desktop}")
        own.touch()
        self.assertEqual(self.address(environ), f"unix://{own}")
        system.touch()
        self.assertEqual(self.address(environ), f"unix://{system}")
