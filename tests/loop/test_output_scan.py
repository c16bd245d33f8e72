"""The process that reads output, for real; and what is made of one that misbehaves."""

from __future__ import annotations

import socket
import sys
import threading
from typing import Any

from twisted.internet import reactor as the_reactor
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from ironcurtain.loop import output_scan
from ironcurtain.loop.output_scan import OutputScan
from ironcurtain.process.frames import packed
from ironcurtain.process.identity import ProcessIdentity, identify
from ironcurtain.terminal.echo import LoopEvent
from ironcurtain.terminal.emulator_process import COMMAND
from ironcurtain.terminal.emulator_wire import (
    KEPT,
    BytesRead,
    EmulatorFailed,
    EmulatorReply,
    EndScan,
    EventFound,
    FeedOutput,
    OpenScan,
    Ready,
    ScanResult,
    reply_reader,
    sendable,
)
from ironcurtain.terminal.emulator_worker import serve
from tests.loop.corpus import MADE, MISSED, PROMISE, PROMPT

reactor: Any = the_reactor

TALKS = """
import socket, sys, time
owner = socket.socket(fileno=0)
owner.sendall(bytes.fromhex(sys.argv[1]))
while owner.recv(65536):
    pass
"""
"""In place of the process: says something, whatever it is told."""


class ProcessCase(TestCase):
    """Each test has one of its own."""

    timeout = 120

    def begin(self, *command: str) -> OutputScan:
        self.heard: list[LoopEvent] = []
        self.held: list[bool] = []
        process = OutputScan(reactor, self.heard.append, self.held.append, command or COMMAND)
        process.begin(PROMISE, PROMPT, (40, 12))
        if process.pid is not None:
            self.addCleanup(self.gone, identify(process.pid), process)
        return process

    async def gone(self, identity: ProcessIdentity, process: OutputScan) -> None:
        process.lost("is not needed")
        while identity.alive:
            await deferLater(reactor, 0.005)

    def saying(self, *replies: EmulatorReply | OpenScan) -> OutputScan:
        """:returns: one that says this at once."""
        return self.begin(sys.executable, "-S", "-c", TALKS, b"".join(map(packed, (Ready(), *replies))).hex())


class WorkingTests(ProcessCase):
    """As it should be."""

    async def test_it_finds_what_the_scanner_finds(self) -> None:
        for name, output in (("alone", MADE["alone"]), ("a file", MISSED["a file"])):
            process = self.begin()
            for at in range(0, len(output), 7):
                process.feed(output[at : at + 7])
            found = await process.end()
            self.assertEqual((found.promised, process.problem), (output in MADE.values(), ""), name)

    async def test_events_are_heard_before_the_end(self) -> None:
        process = self.begin()
        process.feed(b'<event topic="a">b</event>\x1b[2J')
        while not self.heard:
            await deferLater(reactor, 0.005)
        self.assertEqual((self.heard, process.events), ([LoopEvent("a", "b")], [LoopEvent("a", "b")]))

    async def test_what_is_typed_and_sizes_come_in_their_order(self) -> None:
        process = self.begin()
        process.feed(b"LOOP_COM")
        process.resize(30, 8)
        process.feed(b"PLETE\r\n\x1b[2J")
        self.assertTrue((await process.end()).promised)
        process = self.begin()
        process.typed(b"do not say LOOP_COMPLETE before the docs are done\r")
        process.feed(b"do not say LOOP_COMPLETE before the docs are done\r\n")
        self.assertFalse((await process.end()).promised)

    async def test_who_writes_faster_is_held_back(self) -> None:
        self.patch(output_scan, "BEHIND_LIMIT", 60_000)
        process = self.begin()
        for _ in range(20):
            process.feed(b"line\r\n" * 1000)
        self.assertEqual(self.held, [True])
        found = await process.end()
        self.assertEqual(self.held, [True, False])
        self.assertLessEqual(len(found.text), KEPT)

    async def test_it_has_no_files_and_no_keys(self) -> None:
        process = self.begin()
        process.feed(b"x")
        while process._unread.size:
            await deferLater(reactor, 0.005)
        with open(f"/proc/{process.pid}/limits") as file:
            limits = [line.split() for line in file.read().splitlines()]
        files = next(line for line in limits if line[:3] == ["Max", "open", "files"])
        self.assertEqual(files[3:5], ["0", "0"])


class FailingTests(ProcessCase):
    """Whatever it does, it makes no promise that the program did not make, and nobody waits for ever."""

    async def fails(self, process: OutputScan, why: str) -> None:
        process.feed(b"LOOP_COMPLETE\r\n")
        found = await process.end()
        self.assertEqual(found, ScanResult(1, False, ""))
        self.assertIn(why, process.problem)

    async def test_it_dies(self) -> None:
        process = self.begin(sys.executable, "-S", "-c", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
        await self.fails(process, "ended")

    async def test_it_does_not_answer(self) -> None:
        self.patch(output_scan, "SILENCE_SECONDS", 0.2)
        await self.fails(self.saying(), "does not answer")

    async def test_it_does_not_read_and_holds_the_program_back(self) -> None:
        self.patch(output_scan, "SILENCE_SECONDS", 0.2)
        self.patch(output_scan, "BEHIND_LIMIT", 1000)
        process = self.saying()
        process.feed(b"x" * 2000)
        while not process.problem:
            await deferLater(reactor, 0.005)
        self.assertEqual(self.held, [True, False])

    async def test_more_output_makes_it_no_less_silent(self) -> None:
        self.patch(output_scan, "SILENCE_SECONDS", 0.3)
        process = self.saying()
        while not process.problem:
            process.feed(b"x" * 20)
            await deferLater(reactor, 0.01)
        self.assertIn("does not answer", process.problem)

    async def test_somebody_does_not_want_to_wait(self) -> None:
        process = self.saying()
        found = await process.end(0.1)
        self.assertEqual((found, process.problem), (ScanResult(1, False, ""), "was abandoned"))

    async def test_it_says_what_it_may_not(self) -> None:
        for replies, why in (
            ((BytesRead(1, 1_000_000),), "read more than there was"),
            ((EventFound(1, "a", "b"), EventFound(1, "a", "b")), "said too much"),
            ((OpenScan(1, "a", "b", None),), "broke the protocol"),
            ((EmulatorFailed(1, "MemoryError: "),), "failed (MemoryError"),
        ):
            process = self.saying(*replies)
            while not process.problem:
                await deferLater(reactor, 0.005)
            await self.fails(process, why)

    async def test_it_promises_before_it_has_read_all(self) -> None:
        process = self.saying(ScanResult(1, True, "x"))
        while not process.problem:
            await deferLater(reactor, 0.005)
        await self.fails(process, "answered before it had read all")
        process = self.saying(ScanResult(1, True, "x"))
        await self.fails(process, "answered before it had read all")

    async def test_there_is_no_such_command(self) -> None:
        await self.fails(self.begin("/nowhere"), "cannot be started")


class ServingTests(TestCase):
    """The other end, within this process."""

    def test_orders_are_carried_out(self) -> None:
        ours, theirs = socket.socketpair()
        thread = threading.Thread(target=serve, args=(theirs,))
        thread.start()
        event = b'<event topic="a">b</event>\r\n'
        orders = (OpenScan(1, PROMISE, PROMPT, None), FeedOutput(1, event + b"\nLOOP_COMPLETE\n"), EndScan(1))
        ours.sendall(b"".join(map(packed, orders)))
        ours.shutdown(socket.SHUT_WR)
        thread.join()
        theirs.close()
        with ours:
            replies = list(reply_reader().feed(ours.recv(65536)))
        text = '<event topic="a">b</event>\n\nLOOP_COMPLETE'
        self.assertEqual(
            replies, [Ready(), EventFound(1, "a", "b"), BytesRead(1, len(event) + 15), ScanResult(1, True, text)]
        )

    def test_what_is_no_character_is_replaced(self) -> None:
        self.assertEqual(sendable("a\udcffé\ud800中"), "a\ufffd\ufffd\ufffdé\ufffd\ufffd\ufffd中")
