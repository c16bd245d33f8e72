from __future__ import annotations

import asyncio
import hmac
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet import reactor
from twisted.internet.protocol import Factory
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.internet.threads import deferToThread
from twisted.protocols.wire import Echo
from twisted.trial.unittest import SynchronousTestCase, TestCase

from ironcurtain.container.proven_ports import PROVE_SECONDS, UNPROVEN, HostProof, ProvenFactory, ProvenPorts
from ironcurtain.container.sidecar_program import PART, READY, proof
from ironcurtain.errors import ProtocolViolation
from ironcurtain.secrets.redaction import Secret
from ironcurtain.services.client_limits import ClientAdmission
from ironcurtain.services.stream import Wrap, serve

SECRET = bytes(range(PART))
parts = st.binary(min_size=PART, max_size=PART)


def answer(number: bytes, secret: bytes = SECRET, name: bytes = b"a", side: bytes = b"sidecar") -> bytes:
    """:returns: what a sidecar sends that got the host's number."""
    own = b"o" * PART
    return own + proof(secret, side, name, number + own)


class ProofTests(SynchronousTestCase):
    @given(parts, st.integers(1, 2 * PART))
    def test_any_slicing_of_a_right_proof_is_answered_once(self, number: bytes, size: int) -> None:
        host, sent = HostProof(SECRET, "a", number), answer(number)
        answers = [host.feed(sent[at : at + size]) for at in range(0, len(sent), size)]
        self.assertEqual(answers.pop(), proof(SECRET, b"host", b"a", number + b"o" * PART))
        self.assertEqual(set(answers) - {None}, set())

    @given(st.binary(min_size=2 * PART, max_size=4 * PART))
    def test_other_bytes_are_refused(self, sent: bytes) -> None:
        with self.assertRaises(ProtocolViolation):
            HostProof(SECRET, "a", b"n" * PART).feed(sent)

    def test_a_proof_is_of_no_use_elsewhere(self) -> None:
        number = b"n" * PART
        for wrong in (
            answer(b"m" * PART),  # replayed: each connection has another number
            answer(number, name=b"b"),  # from the other socket
            answer(number, side=b"host"),  # reflected
            answer(number, secret=SECRET[::-1]),  # of another session
            answer(number) + b"GET",  # not waiting for the host's proof
        ):
            with self.assertRaises(ProtocolViolation):
                HostProof(SECRET, "a", number).feed(wrong)

    def test_parts_cannot_be_shifted_into_each_other(self) -> None:
        self.assertFalse(
            hmac.compare_digest(proof(SECRET, b"host", b"a", b"b" * PART), proof(SECRET, b"host", b"ab", b"b" * PART))
        )


class Transport(StringTransport):
    """Of one client, which hears at once that its connection was aborted."""

    protocol: Any
    aborted = False

    def abortConnection(self) -> None:
        self.aborted = True
        self.protocol.connectionLost()


class FactoryTests(SynchronousTestCase):
    """Clients that cannot prove anything, and one that can."""

    def setUp(self) -> None:
        self.clock, self.built = Clock(), 0
        inner = Factory.forProtocol(Echo)
        built = inner.buildProtocol

        def build(addr: Any) -> Any:
            self.built += 1
            return built(addr)

        inner.buildProtocol = build  # type: ignore[method-assign]
        self.factory = ProvenFactory(inner, Secret(SECRET.hex()), "a", self.clock)

    def client(self) -> Transport:
        """:returns: the transport of one that has connected."""
        transport = Transport()
        transport.protocol = self.factory.buildProtocol(None)
        transport.protocol.makeConnection(transport)
        return transport

    def test_nothing_passes_before_the_proof_and_everything_after_it(self) -> None:
        client = self.client()
        number = client.value()
        sent = answer(number)
        client.protocol.dataReceived(sent[:-1])
        self.assertEqual((self.built, client.value()), (0, number))
        client.protocol.dataReceived(sent[-1:])
        client.clear()
        client.protocol.dataReceived(b"hello")
        self.assertEqual((self.built, client.value()), (1, b"hello"))
        self.clock.advance(2 * PROVE_SECONDS)
        self.assertFalse(client.aborted)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_a_client_that_proves_nothing_reaches_nothing_and_is_told_nothing(self) -> None:
        for sent in (b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n" * 4, bytes(2 * PART)):
            client = self.client()
            client.clear()
            client.protocol.dataReceived(sent)
            self.assertEqual((client.aborted, client.value(), self.built), (True, b"", 0))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_numbers_are_not_used_twice(self) -> None:
        self.assertEqual(len({self.client().value() for _ in range(20)}), 20)
        self.factory.close()

    def test_a_silent_client_has_to_go(self) -> None:
        client = self.client()
        self.clock.advance(PROVE_SECONDS - 0.1)
        self.assertFalse(client.aborted)
        self.clock.advance(0.1)
        self.assertTrue(client.aborted)

    def test_clients_that_only_wait_keep_nobody_out(self) -> None:
        silent = [self.client() for _ in range(10 * UNPROVEN)]
        self.assertEqual(sum(not client.aborted for client in silent), UNPROVEN)
        last = self.client()
        last.protocol.dataReceived(answer(last.value()))
        self.assertEqual(self.built, 1)
        for _ in range(2 * UNPROVEN):
            self.client()
        self.assertFalse(last.aborted)
        self.factory.close()
        self.assertTrue(last.aborted)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_a_client_that_ends_its_input_first_is_let_go(self) -> None:
        client = self.client()
        client.protocol.readConnectionLost()
        self.assertTrue(client.disconnecting)
        self.factory.close()


class SidecarTests(TestCase):
    """The program of a sidecar, run here without a container, over real sockets."""

    def setUp(self) -> None:
        self.opened = ProvenPorts(reactor)
        self.addCleanup(self.opened.close)
        self.directory = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.directory)

    async def accept(self, listening: socket.socket, wrap: Wrap) -> asyncio.Server:
        """Echo what proven clients send."""
        return await serve(listening, wrap(Factory.forProtocol(Echo)), ClientAdmission())

    def sidecar(self, secret: str = "") -> subprocess.Popen[str]:
        """:returns: the program, which was given the secret."""
        text = resources.files("ironcurtain.container").joinpath("sidecar_program.py").read_text()
        named_ports = [f"{name}:{port}" for name, port in self.opened.ports.items()]
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", text, str(self.directory), "127.0.0.1", *named_ports],
            stdin=pipe, stdout=pipe, stderr=pipe, text=True,
        )  # fmt: skip
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        assert process.stdin is not None
        process.stdin.write(f"{secret or self.opened.secret.reveal()}\n")
        process.stdin.flush()
        return process

    def echoed(self, name: str, size: int) -> bool:
        """:returns: whether as much comes back of what is sent to a socket."""
        data = os.urandom(size)
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(20.0)
            client.connect(str(self.directory / name))
            client.sendall(data)
            back = bytearray()
            while len(back) < size and (piece := client.recv(65536)):
                back += piece
            return bytes(back) == data

    async def test_connections_of_both_sockets_pass(self) -> None:
        for name in ("a.sock", "b.sock"):
            await self.opened.open("127.0.0.1", name, self.accept)
        process = self.sidecar()
        assert process.stdout is not None
        self.assertEqual(await deferToThread(process.stdout.readline), f"{READY}\n")
        self.assertEqual([(self.directory / name).stat().st_mode & 0o777 for name in ("a.sock", "b.sock")], [0o600] * 2)
        done = [deferToThread(self.echoed, name, 100_000) for name in ("a.sock", "b.sock") * 4]
        self.assertEqual([await each for each in done], [True] * 8)

    async def test_a_wrong_secret_ends_it(self) -> None:
        await self.opened.open("127.0.0.1", "a.sock", self.accept)
        process = self.sidecar("00" * PART)
        out, err = await deferToThread(process.communicate)
        self.assertEqual((process.returncode, out), (1, ""))
        self.assertIn("the host cannot be reached at 127.0.0.1", err)
        self.assertEqual(list(self.directory.iterdir()), [])

    async def test_a_program_that_took_the_port_gets_no_byte(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.opened.ports["a.sock"] = listening.getsockname()[1]
            process = self.sidecar()

            def impersonate() -> bytes:
                connection, _ = listening.accept()
                with connection:
                    connection.sendall(bytes(PART))
                    got = connection.recv(4 * PART)
                    connection.sendall(bytes(PART))
                    return got + connection.recv(4 * PART)

            got = await deferToThread(impersonate)
            _, err = await deferToThread(process.communicate)
        self.assertEqual(len(got), 2 * PART)
        self.assertIn("another program listens", err)
        self.assertNotIn(self.opened.secret.reveal(), err + got.hex())

    def test_the_secret_is_not_shown(self) -> None:
        self.assertNotIn(self.opened.secret.reveal(), repr(vars(self.opened)))
