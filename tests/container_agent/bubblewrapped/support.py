"""Sandboxes of bubblewrap as sessions have them, with a shell as the agent's program."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.trial.unittest import SkipTest, TestCase

from ironcurtain.container.container import ProgramEnded
from ironcurtain.container.spec import Mount, group_text, mounts, passwd_text
from ironcurtain.container_agent.bubblewrapped.description import plan
from ironcurtain.container_agent.bubblewrapped.programs import AgentProgram, needed
from ironcurtain.container_agent.bubblewrapped.sandbox import BubblewrapSandbox, Plan
from ironcurtain.home.sections import Resources
from ironcurtain.process.accounts import Account
from ironcurtain.sandbox import bubblewrap
from ironcurtain.services.stream import serve
from tests.machine import UID

reactor: Any = global_reactor


class Greeting(Protocol):
    """Stands for the MITM proxy."""

    def connectionMade(self) -> None:
        assert self.transport is not None
        self.transport.write(b"here is the proxy")
        self.transport.loseConnection()


class BubblewrappedCase(TestCase):
    """A directory with all that a session mounts."""

    def setUp(self) -> None:
        self.account = Account(UID, UID if os.geteuid() == 0 else os.getegid())
        if (reason := bubblewrap.available(self.account.switched)) is not None:
            raise SkipTest(reason)
        self.top = Path(tempfile.mkdtemp(prefix="ic-")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.top.chmod(0o755)
        for name in ("workspace", "home", "orientation"):
            (self.top / name).mkdir()
            if os.geteuid() == 0:
                os.chown(self.top / name, UID, UID)
        (self.top / "passwd").write_text(passwd_text(self.account.uid, self.account.gid))
        (self.top / "group").write_text(group_text(self.account.gid))
        self.listen(self.top / "proxy.sock")
        self.deaths: list[str] = []
        self.died: Deferred[None] = Deferred()

    def listen(self, path: Path) -> None:
        """Listen on a UNIX socket."""
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(path))
        listener.listen()
        path.chmod(0o666)

    def plan(self, *further: Mount, **resources: Any) -> Plan:
        """:returns: a session's sandbox, with further mounts."""
        names = ("workspace", "home", "orientation", "passwd", "group")
        shell = AgentProgram("sh", "/bin/sh", "native", "/bin")
        usual = mounts(places=("/workspace",), sockets="", **{name: str(self.top / name) for name in names})
        return plan(
            name="test",
            account=self.account,
            environment={"HOME": "/home/agent", "A": "1"},
            needed=needed(shell, None, os.defpath, ("/root",), (), str(self.top / "workspace")),
            mounts=(*(mount for mount in usual if mount.source), *further),
            proxy_socket=self.top / "proxy.sock",
            resources=Resources(**{"memory_mb": 1024, "pids": 64, **resources}),
            temporary_mb=16,
        )

    def sandbox(self, plan: Plan | None = None) -> BubblewrapSandbox:
        """:returns: one whose death is noted."""

        def death(error: Exception) -> None:
            self.deaths.append(str(error))
            self.died.callback(None)

        made = BubblewrapSandbox(
            reactor, plan or self.plan(), lambda listening: serve(listening, Factory.forProtocol(Greeting)), death
        )
        self.addCleanup(lambda: Deferred.fromCoroutine(made.stop()))
        return made

    async def started(self, plan: Plan | None = None) -> BubblewrapSandbox:
        """:returns: one that is up."""
        sandbox = self.sandbox(plan)
        await sandbox.start()
        return sandbox

    async def sh(self, sandbox: BubblewrapSandbox, script: str, stdin: bytes = b"") -> tuple[ProgramEnded, str]:
        """:returns: the end and the output of a shell script inside."""
        said = bytearray()
        ended = await sandbox.run(
            ("sh", "-c", script), stdin=stdin, stdout=said.extend, stderr=said.extend, environment={"B": "2"}
        )
        return ended, said.decode()
