"""Simulated members of a fleet: they say that they are there, and answer that nothing runs, over one connection."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from twisted.internet.task import LoopingCall

from ironcurtain.audit.signing import SigningKey
from ironcurtain.fleet.carried import SUBJECTS, Streams
from ironcurtain.fleet.members import INTERVAL, Member, sign
from ironcurtain.fleet.nats import BUCKET
from ironcurtain.fleet.sealed import Sealing
from ironcurtain.fleet.serving import Serving
from ironcurtain.fleet.trust import Host, Trust
from ironcurtain.home.layout import Home
from ironcurtain.operations import Role
from ironcurtain.services.asyncio_bridge import from_asyncio


class Simulated:
    """
    :param options: of the connection.
    :param believed: the real host that asks them, and its key.
    """

    def __init__(self, reactor: Any, options: dict[str, Any], believed: tuple[str, bytes]) -> None:
        self._top = tempfile.TemporaryDirectory()
        self._reactor, self._options, path = reactor, options, Path(self._top.name)
        name, key = believed
        self._trust = Trust({name: Host(name, key, {"*": frozenset({Role.VIEW})})})
        self._home = Home(path, path / "run")
        self._home.run.mkdir()
        self._home.daemon_socket.touch()
        self._client = Client()
        self._keys: dict[str, SigningKey] = {}
        self._streams: dict[str, Streams] = {}
        self._loop, self._said = LoopingCall(self._say), 0

    async def start(self) -> None:
        """Connect."""
        await from_asyncio(self._client.connect(**self._options))
        await from_asyncio(self._client.subscribe(f"{SUBJECTS}.*.*", cb=self._message))

    def grow(self, count: int) -> dict[str, SigningKey]:
        """:returns: the new members with their keys, which must be trusted before they say anything."""
        new = {}
        for number in range(len(self._keys), count):
            name = f"sim-{number}"
            key = new[name] = SigningKey.load_or_make(self._home.path / name)
            sealing = Sealing(name, key, lambda: self._trust)
            serving = Serving(self._reactor, self._home, lambda: self._trust)

            def accept(host: str, proved: Any, sealing: Sealing = sealing, serving: Serving = serving) -> Any:
                return sealing.accepting(host, serving.accept(proved))

            self._streams[name] = Streams(self, name, accept, self._reactor)
        return new

    def speak(self, new: dict[str, SigningKey]) -> None:
        """Have them say that they are there, and go on saying so in turn."""
        self._keys |= new
        for name in new:
            self._statement(name)
        if self._loop.running:
            self._loop.stop()
        self._loop.start(INTERVAL / len(self._keys), now=False)

    async def stop(self) -> None:
        """Leave."""
        if self._loop.running:
            self._loop.stop()
        for streams in self._streams.values():
            streams.lose()
        await from_asyncio(self._client.close())
        self._top.cleanup()

    def publish(self, subject: str, data: bytes) -> None:
        """See :class:`~ironcurtain.fleet.carried.Carrier`."""
        from_asyncio(self._client.publish(subject, data))

    async def _message(self, message: Msg) -> None:
        streams = self._streams.get(message.subject.split(".")[2])
        if streams is not None:
            streams.heard(message.subject, message.data)

    def _say(self) -> None:
        self._said += 1
        self._statement(list(self._keys)[self._said % len(self._keys)])

    def _statement(self, name: str) -> None:
        self._said += 1
        member = Member(
            host=name, start=1, number=self._said, version="1.0", capacity=20, load=0.25, free_memory=8_000_000_000,
            agents=("claude-code", "builtin"),
        )  # fmt: skip
        self.publish(f"$KV.{BUCKET}.{name}", sign(member, self._keys[name]))
