"""Containers of the tests: real ones, made by the client that is tested and removed without it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from msgspec.structs import replace
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from ironcurtain.container import execution
from ironcurtain.container.engine import Engine
from ironcurtain.container.execution import Sink
from ironcurtain.container.spec import ContainerSpec, Mount
from tests import engine as test_engine
from tests.machine import UID

MAIN = ("sh", "-c", "sleep 77777 & exec sleep 88888")
"""A main program with a child, as the bridge to the proxies is one."""

SPEC = ContainerSpec(
    name="",
    image="image",
    command=MAIN,
    uid=UID,
    gid=UID,
    environment={},
    mounts=(),
    tmpfs_mb=16,
    memory_mb=256,
    cpus=2.0,
    pids=64,
    labels={},
)
"""A container with nothing mounted."""


class Said(NamedTuple):
    """What came of a script."""

    status: int
    out: str
    err: str


class Until:
    """
    A sink that tells when a text has come.

    :ivar seen: fires then.
    """

    def __init__(self, text: str) -> None:
        self._text, self._got = text.encode(), bytearray()
        self.seen: Deferred[None] = Deferred()

    def __call__(self, data: bytes) -> None:
        self._got += data
        if self._text in self._got and not self.seen.called:
            self.seen.callback(None)


class EngineCase(TestCase):
    """A test with a real Engine; its containers carry its own label and are removed in the end."""

    def setUp(self) -> None:
        """Find or start the Engine."""
        self.engine = Engine(reactor, test_engine.engine())
        self.addCleanup(self.engine.close)
        self.label = f"{os.getpid()}-{self.id()}"
        self.addCleanup(self._remove_containers)
        self.directory = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.directory)

    def spec(self, **changes: Any) -> ContainerSpec:
        """:returns: a small container that can really run."""
        labels = {"ironcurtain.test": self.label, **changes.pop("labels", {})}
        return replace(SPEC, image=test_engine.image(), labels=labels, **changes)

    def mount(self, name: str, target: str, read_only: bool = True) -> Mount:
        """:returns: a new directory of the container's user, mounted."""
        path = self.directory / name
        path.mkdir()
        os.chmod(self.directory, 0o755)
        if os.geteuid() == 0:
            os.chown(path, UID, UID)
        return Mount(str(path), target, read_only)

    async def running(self, **changes: Any) -> str:
        """:returns: the id of a container that runs."""
        container = await self.engine.create(self.spec(**changes))
        await self.engine.start(container)
        return container

    async def sh(self, container: str, script: str, stdin: bytes = b"", **environment: str) -> Said:
        """:returns: what came of a shell script inside."""
        out, err = bytearray(), bytearray()
        status = await self.start_sh(container, script, out.extend, err.extend, stdin, **environment)
        return Said(status, out.decode(), err.decode())

    def start_sh(
        self, container: str, script: str, out: Sink, err: Sink, stdin: bytes = b"", **environment: str
    ) -> Deferred[int]:
        """:returns: fires with the status of a shell script inside."""
        line = ("sh", "-c", script)
        return Deferred.fromCoroutine(
            execution.run(self.engine, container, line, stdin=stdin, stdout=out, stderr=err, environment=environment)
        )

    def turn(self) -> Deferred[None]:
        """:returns: fires in the reactor's next turn."""
        return deferLater(reactor, 0)

    def listen(self, name: str) -> socket.socket:
        """:returns: a socket of a program of this machine."""
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.directory / name))
        listener.listen()
        return listener

    def containers(self) -> list[dict[str, Any]]:
        """:returns: what the Engine has of this test's containers."""
        filters = quote(json.dumps({"label": [f"ironcurtain.test={self.label}"]}))
        found: list[dict[str, Any]] = test_engine.call("GET", f"/containers/json?all=1&filters={filters}")[0]
        return found

    def _remove_containers(self) -> None:
        for container in self.containers():
            test_engine.call("DELETE", f"/containers/{container['Id']}?force=1&v=1")
