"""Tests for another host's sessions in this home, when that host lies."""

from __future__ import annotations

import json
import os
from typing import Any

import msgspec
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol
from twisted.trial.unittest import TestCase

from ironcurtain.control import client
from ironcurtain.fleet.mirror import LOOKS, PROCESSES_LIMIT, Mirrors
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.home.layout import Home
from ironcurtain.home.registry import SessionEntry, SessionRegistry
from ironcurtain.process.identity import identify
from tests.audit.doubles import scratch
from tests.mitm_proxy.waiting import until


class Liar:
    """Another host: answers every request with what the test wants."""

    def __init__(self) -> None:
        self.answer: Any = []
        self.asked, self.hangs = list[str](), False

    def open(self, host: str, service: str, protocol: IProtocol) -> None:
        self.asked.append(host)
        if self.hangs:
            protocol.makeConnection(_Sink(protocol, b""))  # type: ignore[arg-type]
            return
        body = json.dumps(self.answer).encode()
        protocol.makeConnection(_Sink(protocol, body))  # type: ignore[arg-type]


class _Sink:
    def __init__(self, protocol: Any, body: bytes) -> None:
        self._protocol, self._answers = protocol, bool(body)
        self._answer = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)

    def write(self, data: bytes) -> None:
        if data.endswith(b"\r\n\r\n") and self._answers:
            self._protocol.dataReceived(self._answer)

    def registerProducer(self, producer: Any, streaming: bool) -> None: ...

    def unregisterProducer(self) -> None: ...

    def loseConnection(self) -> None: ...

    def abortConnection(self) -> None: ...

    def pauseProducing(self) -> None: ...

    def resumeProducing(self) -> None: ...


def entry(session_id: str, **more: Any) -> dict[str, Any]:
    said = {
        "escalationDir": "/etc",
        "label": "builtin: \x1b]0;x\x07task",
        "startedAt": "2026-01-01T00:00:00Z",
        "pid": 1,
    }
    return {"sessionId": session_id, "number": 7, "controlSocket": "/run/daemon.sock", **said, **more}


class MirrorTests(TestCase):
    def setUp(self) -> None:
        path = scratch(self)
        self.home = Home(path, scratch(self))
        self.home.registry.mkdir(mode=0o700)
        self.registry, self.liar = SessionRegistry(self.home.registry), Liar()
        self.mirrors = Mirrors(reactor, self.home, self.liar.open)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.finish()))

    async def finish(self) -> None:
        await self.mirrors.keep(())
        self.assertEqual(self.registry.live(), [])

    async def look(self, answer: Any) -> list[SessionEntry]:
        self.liar.answer = answer
        self.mirrors.look("build-3")
        mirror = self.mirrors
        await until(lambda: not mirror.looking)
        return self.registry.live()

    async def test_sessions_of_another_host_have_its_numbers_and_our_sockets(self) -> None:
        (found,) = await self.look([{"name": "owner-12", "sessions": [entry("0a-1", host="laptop", bootId="x")]}])
        self.assertEqual((found.number, str(found.number)), (HostNumber("build-3", 7), "build-3/7"))
        self.assertEqual((found.host, found.pid, found.escalation_dir), ("build-3", os.getpid(), ""))
        self.assertEqual(found.control_socket, str(self.home.fleet_socket("build-3", "owner-12")))
        self.assertEqual(await self.look([]), [])

    async def test_a_session_of_this_host_cannot_be_named(self) -> None:
        here = identify()
        own = msgspec.convert(entry("0a-1"), SessionEntry)
        own = msgspec.structs.replace(own, pid=here.pid, pid_start_time=here.start_time, boot_id=here.boot_id)
        self.registry.add(own)
        await self.look([{"name": "daemon", "sessions": [entry("0a-1")]}])
        self.assertEqual([each.host for each in self.registry.live()], ["", "build-3"])
        await self.look([])
        self.assertEqual(self.registry.live(), [own])
        self.registry.remove("0a-1")

    async def test_names_that_are_paths_are_left_out(self) -> None:
        before = {str(path) for path in self.home.path.rglob("*")}
        for name in ("../x", "a/b", "", ".", "x" * 41, "0a\x00", "0a\n"):
            self.assertEqual(await self.look([{"name": "daemon", "sessions": [entry(name)]}]), [], name)
        for process in ("../daemon", "daemon/x", "", "owner-", "owner-1x", "daemon\n", "other"):
            self.assertEqual(await self.look([{"name": process, "sessions": [entry("0a-1")]}]), [], process)
        self.assertEqual({str(path) for path in self.home.path.rglob("*") if "run" not in path.parts} - before, set())

    async def test_an_answer_that_is_none_changes_nothing(self) -> None:
        good = [{"name": "daemon", "sessions": [entry("0a-1")]}]
        self.assertEqual(len(await self.look(good)), 1)
        wrong: list[Any] = [
            {},
            [1],
            [{"name": "daemon"}],
            "x",
            None,
            [{"name": "daemon", "sessions": [{"sessionId": 1}]}],
        ]
        for answer in wrong:
            self.assertEqual(len(await self.look(answer)), 1, answer)

    async def test_only_so_many_sessions_of_a_host_are_taken(self) -> None:
        many = [entry(f"{number:x}") for number in range(1500)]
        self.assertEqual(len(await self.look([{"name": "daemon", "sessions": many}])), 1000)

    async def test_only_so_many_processes_of_a_host_get_a_socket(self) -> None:
        await self.look([{"name": f"owner-{number}", "sessions": []} for number in range(1, 1000)])
        self.assertEqual(len(list(self.home.fleet_socket("build-3", "daemon").parent.glob("*.sock"))), PROCESSES_LIMIT)

    async def test_numbers_and_texts_beyond_all_measure_are_left_out_or_cut(self) -> None:
        for number in (-1, 1 << 50, 1 << 62):
            self.assertEqual(await self.look([{"name": "daemon", "sessions": [entry("0a-1", number=number)]}]), [])
        (found,) = await self.look([{"name": "daemon", "sessions": [entry("0a-1", label="x" * 100_000)]}])
        self.assertEqual(found.label, "x" * 200)

    async def test_only_so_many_hosts_are_asked_at_the_same_time(self) -> None:
        asked, hosts = self.liar.asked, [f"host-{number}" for number in range(3 * LOOKS)]
        self.liar.hangs = True
        for host in hosts:
            self.mirrors.look(host)
        await until(lambda: all(self.home.fleet_socket(host, "daemon").exists() for host in hosts))
        await until(lambda: len(asked) >= LOOKS)
        await self.mirrors.keep(hosts[LOOKS:])  # those that hang are lost, and others are asked
        await until(lambda: len(asked) >= 2 * LOOKS)
        self.assertEqual(len(set(asked)), 2 * LOOKS)

    async def test_huge_answer_is_refused(self) -> None:
        self.patch(client, "ANSWER_LIMIT", 1000)
        self.assertEqual(await self.look([{"name": "daemon", "sessions": [entry("0a-1", kind="x" * 2000)]}]), [])
