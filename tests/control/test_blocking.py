from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from twisted.internet import reactor
from twisted.internet.defer import maybeDeferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.control import blocking
from ironcurtain.control.blocking import BlockingClient, BlockingOwners, result
from ironcurtain.control.listening import listen
from ironcurtain.control.wire import RemoteError
from ironcurtain.errors import NotFound, Unavailable
from ironcurtain.escalation import Outcome
from ironcurtain.operations.operations import Operations
from ironcurtain.session.model import SessionInfo
from tests.audit.doubles import scratch
from tests.console.doubles import session
from tests.session.doubles import World, make_request, request


class BlockingOwnersTests(TestCase):
    timeout = 60

    async def test_owner_answers_what_commands_ask(self) -> None:
        world = World(scratch(self), reactor=reactor)
        world.home.prepare()
        port = listen(reactor, world.home.daemon_socket, Operations(world.manager))
        session = await world.manager.create(request())
        core = world.agents[0].core
        assert core is not None
        core.escalations.ask(make_request(core))
        denied, ended = await deferToThread(self._work, BlockingOwners(world.home), session.id)
        self.assertEqual((denied, ended), (Outcome.DENIED, "closed"))
        await world.manager.stop("the end")
        world.watcher.stop()
        await maybeDeferred(port.stopListening)

    def _work(self, owners: BlockingOwners, session: str) -> tuple[str, str]:
        """What commands do, in a thread: the owner answers under the reactor."""
        self.assertEqual([info.id for info in result(owners.sessions())], [session])
        (view,) = result(owners.escalations())
        result(owners.shown([view]))
        client, again = result(owners.of_escalation(view.number))
        self.assertEqual(again, view)
        denied = result(client.decide(view.number, Outcome.DENIED))
        self.assertRaises(NotFound, result, owners.of_escalation(99))
        client, number = result(owners.of_session("last"))
        self.assertRaises(RemoteError, result, client.session("nope"))
        return denied.outcome, result(client.stop(number)).state


class Silent(BlockingClient):
    """A process that is stopped."""

    async def sessions(self) -> list[SessionInfo]:
        threading.Event().wait(10)  # longer than anybody waits for it
        return []


class StoppedOwnerTests(SynchronousTestCase):
    def test_stopped_process_does_not_hide_others(self) -> None:
        owners = BlockingOwners(World(scratch(self)).home)
        asked = [Silent("/stopped"), BlockingClient("/missing")]
        stopped, missing = result(owners._asked(asked, lambda client: client.sessions(), [0.2, 0.2]))
        self.assertIsInstance(stopped, TimeoutError)
        self.assertIsInstance(missing, Unavailable)


class BlockingClientTests(SynchronousTestCase):
    def client_of(self, answer: bytes, seconds: float = 0.0) -> BlockingClient:
        """:returns: the client of a server that gives one answer after a time, and closes."""
        path = Path(scratch(self), "one.sock")
        listening = socket.socket(socket.AF_UNIX)
        self.addCleanup(listening.close)
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                threading.Event().wait(seconds)
                with contextlib.suppress(BrokenPipeError):
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        return BlockingClient(str(path))

    def fails(self, answer: bytes, call: Callable[[BlockingClient], Any]) -> str:
        return str(self.assertRaises(Unavailable, lambda: result(call(self.client_of(answer)))))

    def test_dead_process_and_missing_socket_are_unavailable(self) -> None:
        path = Path(scratch(self), "dead.sock")
        missing = self.assertRaises(Unavailable, lambda: result(BlockingClient(str(path)).sessions()))
        self.assertIn("it was killed", str(missing))
        bound = socket.socket(socket.AF_UNIX)
        bound.bind(str(path))
        bound.close()
        killed = self.assertRaises(Unavailable, lambda: result(BlockingClient(str(path)).sessions()))
        self.assertIn("it was killed", str(killed))

    def test_broken_answers_are_unavailable(self) -> None:
        for answer in (b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n[]"):
            self.assertIn("does not answer", self.fails(answer, BlockingClient.sessions))

    def test_decision_waits_for_a_limited_time_and_the_end_of_a_session_for_any(self) -> None:
        self.patch(blocking, "DECISION_SECONDS", 0.05)
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b"
        ended = msgspec.json.encode(session(1, state="closed"))
        client = self.client_of(answer % (len(ended), ended), 0.3)
        self.assertEqual(result(client.stop(1)).state, "closed")
        late = self.client_of(answer % (2, b"{}"), 0.3)
        error = self.assertRaises(Unavailable, lambda: result(late.decide(1, Outcome.DENIED)))
        self.assertIn("timed out", str(error))

    def test_answer_over_the_limit_is_refused(self) -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n[1, 2]"
        self.assertIn("over 5 bytes", self.fails(answer, lambda client: client.content("/v1/x", 5)))
        self.assertEqual(result(self.client_of(answer).content("/v1/x", 6)), b"[1, 2]")

    def test_text_that_is_no_json_is_a_protocol_error(self) -> None:
        client = self.client_of(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{]")
        self.assertRaises(RemoteError, lambda: result(client.sessions()))

    def test_coroutine_that_waits_is_refused(self) -> None:
        async def waiting() -> None:
            await Pause()

        self.assertRaises(RuntimeError, result, waiting())


class Pause:
    """Something to wait for."""

    def __await__(self) -> Any:
        yield


class ImportTests(SynchronousTestCase):
    def test_commands_that_ask_import_no_event_loop(self) -> None:
        """Twisted takes most of the time in which such a command starts."""
        program = (
            "import sys, ironcurtain.cli.sessions, ironcurtain.control.blocking, ironcurtain.view.sessions; "
            "print({'asyncio', 'cryptography', 'twisted', 'zope'} & set(sys.modules))"
        )
        done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "set()\n")
