"""Containers whose main program has a terminal, real ones."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock, deferLater

from ironcurtain.container import execution, screened, terminal
from ironcurtain.container.errors import ContainerDied, NotReady, ProbeFailed
from ironcurtain.container.screened import ScreenedContainer
from ironcurtain.container.terminal import ContainerTerminal, waiting
from ironcurtain.terminal.model import ProgramExit
from tests import engine as test_engine
from tests.container.test_container import ContainerCase

RAW = ("sh", "-c", "stty raw -echo; echo ready; exec cat")
"""A program that sends back what it gets, byte for byte."""

SIZE = ("sh", "-c", "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done")
"""A program that says its size, and each new one."""


class Owner:
    """Keeps what comes."""

    def __init__(self) -> None:
        self.got = bytearray()
        self.full: list[bool] = []

    def received(self, data: bytes) -> None:
        self.got += data

    def input_full(self, full: bool) -> None:
        self.full.append(full)


class ScreenedCase(ContainerCase):
    def setUp(self) -> None:
        super().setUp()
        self.patch(screened, "READY_SECONDS", 60.0)
        self.patch(terminal, "DRAIN_SECONDS", 60.0)
        self.owner = Owner()
        self.terminal = ContainerTerminal(self.engine, 80, 24)
        self.terminal.owner = self.owner
        self.ends: list[ProgramExit] = []
        self.over: Deferred[None] = Deferred()

    def made(self, *argv: str, **changes: Any) -> ScreenedContainer:
        """:returns: a container with this program."""

        def end(ended: ProgramExit) -> None:
            self.ends.append(ended)
            self.over.callback(None)

        command = changes.pop("command", waiting(argv))
        spec = self.session_spec(command=command, tty=True, **changes)
        container = ScreenedContainer(self.engine, spec, self.terminal, end)
        self.addCleanup(self.stopped, container)
        return container

    async def until(self, text: bytes) -> None:
        """Wait until a text has come."""
        while text not in self.owner.got:
            await self.turn()


class LifeTests(ScreenedCase):
    async def test_from_start_to_the_end_of_its_program(self) -> None:
        container = self.made("sh", "-c", 'echo "$0|$1"; read word; echo got $word; exit 7', "a b", "$(c) 'd")
        findings = await container.start()
        self.assertEqual({finding.problem for finding in findings}, {""})
        await self.until(b"a b|$(c) 'd\r\n")
        self.assertEqual(bytes(self.owner.got), b"a b|$(c) 'd\r\n", "and nothing of what came before")
        self.terminal.write(b"hello\r")
        await self.over
        self.assertEqual(bytes(self.owner.got), b"a b|$(c) 'd\r\nhello\r\ngot hello\r\n")
        self.assertEqual(self.ends, [ProgramExit(7, "exit status 7")])
        await container.stop()
        self.assertEqual(self.containers(), [])

    async def test_it_is_stopped(self) -> None:
        container = self.made(*RAW)
        await container.start()
        await self.until(b"ready")
        await container.stop()
        self.assertEqual([ended.status for ended in self.ends], [143])
        self.assertEqual(self.containers(), [])
        await container.stop()
        self.assertEqual(len(self.ends), 1)

    async def test_all_output_comes_before_the_end(self) -> None:
        container = self.made("sh", "-c", "read _; seq 100000")
        await container.start()
        self.terminal.pause()
        self.terminal.write(b"\r")
        await self.over
        self.assertTrue(self.owner.got.endswith(b"\r\n99999\r\n100000\r\n"))

    async def test_it_is_killed_or_removed_by_somebody_else(self) -> None:
        container = self.made(*RAW)
        await container.start()
        test_engine.call("POST", f"/containers/{container.id}/kill")
        await self.over
        self.assertEqual(self.ends, [ProgramExit(137, "it was killed, exit status 137")])

    async def test_its_memory_is_used_up(self) -> None:
        container = self.made("sh", "-c", "exec tail /dev/zero")
        await container.start()
        await self.over
        self.assertEqual(self.ends[0].status, 137)


class ReadinessTests(ScreenedCase):
    async def test_a_container_that_is_not_closed_never_gets_its_program(self) -> None:
        container = self.made("sh", "-c", "echo started; sleep 1")
        listener = self.listen("workspace/engine.sock")
        with self.assertRaisesRegex(ProbeFailed, "listens on .*engine.sock"):
            await container.start()
        listener.close()
        self.assertEqual((self.owner.got, self.ends, self.containers()), (b"", [], []))

    async def test_one_that_is_not_ready_in_time(self) -> None:
        self.engine.clock = clock = Clock()
        starting = Deferred.fromCoroutine(self.made(command=("sh", "-c", "echo one; echo two; sleep 100")).start())
        while "two" not in self.terminal.said:
            await self.turn()
        clock.advance(screened.READY_SECONDS)
        while not starting.called:
            clock.advance(execution.POLL_SECONDS)
            await self.turn()
        error = await self.assertFailure(starting, NotReady)
        said = "the container was not ready for attaching within 60 s, saying: one | two"
        self.assertEqual((str(error), self.ends, self.containers()), (said, [], []))

    async def test_one_that_ends_before(self) -> None:
        container = self.made(command=("sh", "-c", "echo no luck; exit 69"))
        with self.assertRaises(ContainerDied) as caught:
            await container.start()
        said = "the container ended: exit status 69, saying: no luck"
        self.assertEqual((str(caught.exception), self.ends, self.containers()), (said, [], []))

    async def test_starting_can_be_given_up(self) -> None:
        starting = Deferred.fromCoroutine(self.made(command=("sleep", "100")).start())
        while not self.containers():
            await self.turn()
        starting.cancel()
        with self.assertRaises(CancelledError):
            await starting
        self.assertEqual((self.ends, self.containers()), ([], []))


class TerminalTests(ScreenedCase):
    async def test_every_byte_passes_both_ways(self) -> None:
        await self.made(*RAW).start()
        await self.until(b"ready")
        self.owner.got.clear()
        corpus = bytes(range(256)) * 16 + b"\x1c" + b"\xff\xfe" * 7 + b"."
        for at in range(0, len(corpus), 97):
            self.terminal.write(corpus[at : at + 97])
        await self.until(corpus[-300:])
        self.assertEqual(self.owner.got.lstrip(b"\r\n"), corpus)
        for byte in (b"\x1c", b"\x10", b"\x11", b"\xff"):
            self.owner.got.clear()
            self.terminal.write(byte)
            await self.turn()
            self.terminal.write(b"!")
            await self.until(b"!")
            self.assertEqual(self.owner.got, byte + b"!")

    async def test_sizes(self) -> None:
        self.terminal.resize(122, 33)
        await self.made(*SIZE).start()
        await self.until(b"33 122\r\n")
        for columns in (50, 60, 70):
            self.terminal.resize(columns, 10)
        await self.until(b"10 70\r\n")
        self.assertTrue(self.owner.got.startswith(b"33 122\r\n"))

    async def test_a_program_that_does_not_read_holds_whoever_types(self) -> None:
        container = self.made(
            "sh", "-c", "stty raw -echo; echo ready; until [ -e /tmp/go ]; do sleep 0.05; done; exec cat >/dev/null"
        )
        await container.start()
        await self.until(b"ready")
        while True not in self.owner.full:
            self.terminal.write(bytes(65536))
            await self.turn()
        await self.said(container, "touch /tmp/go")
        while self.owner.full[-1]:
            await self.turn()

    async def test_a_viewer_that_does_not_read_holds_the_program(self) -> None:
        container = self.made("sh", "-c", "while :; do echo many words; done")
        await container.start()
        await self.until(b"many words")
        self.terminal.pause()
        held = 0
        while held != (held := len(self.owner.got)):  # what was on its way still comes
            await deferLater(reactor, 0.5)
        self.terminal.resume()
        while len(self.owner.got) == held:
            await self.turn()
        self.terminal.pause()
        await container.stop()
        self.assertEqual(([ended.status for ended in self.ends], self.containers()), ([143], []))
