"""Real daemons, and a client with every permission at their server of NATS that lies, repeats, floods and destroys."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import Error as StreamError
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.signing import SigningKey
from ironcurtain.fleet.carried import SUBJECTS
from ironcurtain.fleet.frames import PIECE, Frame, Kind
from ironcurtain.fleet.members import Member, sign
from ironcurtain.fleet.nats import BUCKET
from ironcurtain.fleet.server_files import HEADS_STREAM, HEADS_SUBJECTS, QUEUE, TASK_SUBJECTS
from ironcurtain.fleet.tasks import Body, new_task
from tests.audit.doubles import scratch
from tests.fleet.hosts import EVERYBODY, ME, Fleet, Host
from tests.product import Command, wait_until

MUCH = bytes(1024 * 1024 - 1000)
"""About the largest message that the server takes."""

MEMORY_LIMIT = 96 * 1024 * 1024
"""Bytes that a daemon may have more of, after all that."""


class Enemy:
    """:ivar seen: all messages of members, with their subjects."""

    def __init__(self, fleet: Fleet, key: SigningKey) -> None:
        made = fleet.files.add(EVERYBODY, ("laptop", ""))
        self._options = msgspec.structs.replace(made, servers=tuple(fleet.cluster.addresses)).options()
        self._client, self._key, self.seen = Client(), key, list[tuple[str, bytes]]()

    async def listen(self) -> None:
        """Keep all messages from now on."""

        async def heard(message: Msg) -> None:
            self.seen.append((message.subject, message.data))

        await self._client.connect(**self._options)
        await self._client.subscribe(">", cb=heard)

    async def attack(self) -> None:
        """Do everything, and end."""
        streams = [(subject, data) for subject, data in self.seen if subject.startswith(f"{SUBJECTS}.")]
        others = [(subject, data) for subject, data in self.seen if subject.startswith(("$KV.", "ironcurtain."))]
        await self._say(self._lies())
        await self._say(streams + others)
        await self._say((subject, Frame(Kind.RESET).encode()) for subject, _ in streams)
        await self._say(self._floods(streams))
        await self._say(others)
        for name in (f"KV_{BUCKET}", HEADS_STREAM, QUEUE):
            with contextlib.suppress(StreamError):
                await self._client.jetstream().delete_stream(name)
        await self._say(self._lies())
        await self._client.close()

    async def _say(self, messages: Iterable[tuple[str, bytes]]) -> None:
        for subject, data in list(messages):
            await self._client.publish(subject, data)
        await self._client.flush()

    def _lies(self) -> Iterable[tuple[str, bytes]]:
        for host in ("laptop", "build-3", "stranger"):
            member = Member(host=host, start=2**62, number=2**62, sessions=1, changes=7)
            task = new_task(ME, "", Body(task="Steal it"), at=0.0)
            for data in (sign(member, self._key), b"{}", b"\xff", b"[" * 4000, MUCH):
                yield f"$KV.{BUCKET}.{host}", data
            for data in (task.offer(host, self._key), b"{}", b"x" * 4000):
                yield f"{TASK_SUBJECTS}.{host}.{secrets.token_hex(8)}", data
            for data in (b'{"session": "x", "sequence": 1}\n', b"\n" * 600, MUCH):
                yield f"{HEADS_SUBJECTS}.{host}", data

    def _floods(self, streams: list[tuple[str, bytes]]) -> Iterable[tuple[str, bytes]]:
        for host in ("laptop", "build-3"):
            opened = [f"{SUBJECTS}.{host}.{secrets.token_hex(16)}" for _ in range(1000)]
            for stream in opened:
                yield stream, Frame(Kind.OPEN, data=b"laptop" if host == "build-3" else b"build-3").encode()
                yield stream, Frame(Kind.DATA, 0, os.urandom(100)).encode()
            for stream in opened[-20:]:
                yield stream, MUCH
        for subject, _ in streams[-50:]:
            yield subject, Frame(Kind.DATA, 0, bytes(PIECE)).encode()
            yield subject, Frame(Kind.END, 2**63).encode()


def memory(host: Host) -> int:
    """:returns: the bytes of memory that a daemon has."""
    assert host.daemon is not None
    status = Path(f"/proc/{host.daemon.pid}/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])


class HostileClientTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.fleet = Fleet(("laptop", "build-3"))
        self.addCleanup(lambda: self.assertEqual(self.fleet.end(), []))
        self.enemy = Enemy(self.fleet, SigningKey.load_or_make(scratch(self)))

    def test_client_with_every_permission_decides_reads_and_starts_nothing(self) -> None:
        laptop, build = self.fleet.hosts.values()
        self.fleet.cluster.begin()
        session, grown = asyncio.run(self.attack(laptop, build))
        self.assertLess(max(grown), MEMORY_LIMIT, grown)
        self.assertEqual(build.decisions, [])
        self.assertEqual([len(host.product.sessions()) for host in (laptop, build)], [0, 1])
        self.assertIn(f"{SUBJECTS}.build-3", {subject.rpartition(".")[0] for subject, _ in self.enemy.seen})
        self.assertNotIn(b"names.txt", b"".join(data for _, data in self.enemy.seen))
        self.fleet.meet()
        wait_until(lambda: laptop.waiting() == ["build-3/1"])
        self.assertEqual(laptop.product.run("approve", "build-3/1").returncode, 0)
        self.assertIn("All done.", session.communicate()[0])
        self.assertEqual(build.decisions, [f"approved {ME}@laptop"])
        wait_until(lambda: laptop.witnesses(build))
        self.assertIn("Intact.", laptop.product.run("audit", "verify", "build-3/1").stdout)
        for host in (laptop, build):
            self.assertNotIn("Traceback", host.log.read_text())
            self.assertEqual([each["member"]["host"] for each in host.known["members"]], [other(host, laptop, build)])

    async def attack(self, laptop: Host, build: Host) -> tuple[Command, list[int]]:
        """:returns: the session whose question the other host has seen, and what the attack has cost each daemon."""
        await self.enemy.listen()
        await asyncio.to_thread(self.fleet.begin_hosts)
        session = build.ask()
        await asyncio.to_thread(wait_until, lambda: build.asking and laptop.waiting() == ["build-3/1"])
        before = [memory(host) for host in (laptop, build)]
        await self.enemy.attack()
        return session, [memory(host) - was for host, was in zip((laptop, build), before, strict=True)]


def other(host: Host, first: Host, second: Host) -> str:
    """:returns: the name of that of two hosts which is not this one."""
    return first.name if host is second else second.name
