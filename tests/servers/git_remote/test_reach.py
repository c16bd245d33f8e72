"""What git and the programs that it starts reach from the sandbox with the way to one address."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from pathlib import Path
from threading import Thread

from twisted.internet.threads import deferToThread

from ironcurtain.errors import IronCurtainError
from ironcurtain.servers.git_remote.runner import GitFailed, Runner
from tests.ports import closed_port
from tests.programs import program
from tests.servers.git_remote.served import ServedCase
from tests.ssh_daemon import new_key

REACH = """!bash -c '
for where in 127.0.0.1/{port} ::1/{port} localhost/{port} 127.0.0.10/{port} 127.0.0.1/{served} 192.0.2.1/443; do
  timeout 60 bash -c "exec 3<>/dev/tcp/$where" 2>/dev/null && echo "reached $where"
done
echo done
'"""
"""An alias for git, which tries to connect elsewhere."""


class ReachTests(ServedCase):
    def in_network(self, alias: str, url: str) -> str:
        """:returns: what a program says that git starts where it would fetch from a URL."""
        runner = Runner(str(self.workspace), self.environ)
        (private := self.top / "private").mkdir()
        return runner.in_network(["-c", f"alias.try={alias}", "try"], str(private), url)

    async def test_program_of_git_reaches_its_own_address_only(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.setblocking(False)
            alias = REACH.format(port=listening.getsockname()[1], served=self.port.getHost().port)
            said = await deferToThread(self.in_network, alias, self.url)
            self.assertEqual(said.split("\n"), [f"reached 127.0.0.1/{self.port.getHost().port}", "done"])
            self.assertRaises(BlockingIOError, listening.accept)

    async def test_why_a_connection_is_not_made_is_told(self) -> None:
        port = closed_port(self)
        for host, why in (("nowhere.invalid", "known"), (f"localhost:{port}", "refused")):
            error = await self.assertFailure(
                self.call("git_clone", directory="app", url=f"https://{host}/app.git"), IronCurtainError
            )
            self.assertIn(f"the connection to {host}", str(error))
            self.assertIn(why, str(error))


class _Daemon:
    """``sshd``, one process for each connection."""

    def __init__(self, line: list[str]) -> None:
        self._listening, self._line = socket.create_server(("127.0.0.1", 0)), line
        self.port = self._listening.getsockname()[1]
        self._started = list[subprocess.Popen[bytes]]()
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                return
            with accepted:
                ends = accepted.fileno()
                process = subprocess.Popen(self._line, stdin=ends, stdout=ends, stderr=subprocess.DEVNULL)
                self._started.append(process)

    def stop(self) -> None:
        """Stop."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        for process in self._started:
            process.terminate()
            process.wait()


class SshTests(ServedCase):
    def setUp(self) -> None:
        super().setUp()
        sshd = program("sshd")
        if os.geteuid() == 0 and not Path("/run/sshd").exists():
            self.skipTest("root's sshd needs the directory /run/sshd")
        self.ssh = self.person / ".ssh"
        self.ssh.mkdir(mode=0o700)
        for name in ("host", "user"):
            new_key(self.ssh / name)
        (self.top / "sshd_config").write_text(
            f"HostKey {self.ssh}/host\nAuthorizedKeysFile {self.ssh}/user.pub\nStrictModes no\nUsePAM no\n"
        )
        self.daemon = _Daemon([sshd, "-i", "-f", f"{self.top}/sshd_config"])
        self.addCleanup(self.daemon.stop)
        self.real = program("ssh")
        self.wrap(f'exec {self.real} -F {self.ssh}/config "$@"')
        self.environ["PATH"] = f"{self.ssh}:{os.environ['PATH']}"
        self.tools = self.tools_for(self.environ)

    def wrap(self, script: str) -> None:
        """Make an ``ssh`` with our settings: it finds the user's by the account rather than by ``HOME``."""
        (self.ssh / "ssh").write_text(f"#!/bin/sh\n{script}\n")
        (self.ssh / "ssh").chmod(0o755)

    def settings(self, further: str = "", known: str = "host") -> None:
        key = (self.ssh / f"{known}.pub").read_text()
        port = self.daemon.port
        (self.ssh / "known").write_text(f"[localhost]:{port},far {key}\n")
        (self.ssh / "config").write_text(
            f"{further}\nIdentityFile {self.ssh}/user\nIdentitiesOnly yes\nUserKnownHostsFile {self.ssh}/known\n"
        )

    def address(self, host: str) -> str:
        return f"ssh://{getpass.getuser()}@{host}{self.served}/app.git"

    async def transfer(self, url: str) -> None:
        await self.call("git_clone", directory="app", url=url)
        clone = self.workspace / "app"
        self.commit(clone, "two")
        await self.call("git_push", repository="app", branch="main", url=url)
        self.assertIn("two", self.git("log", "--format=%s", "main", cwd=self.served / "app.git"))
        shutil.rmtree(clone)

    async def test_clone_and_push(self) -> None:
        self.settings()
        await self.transfer(self.address(f"localhost:{self.daemon.port}"))

    async def test_host_that_the_settings_lead_elsewhere(self) -> None:
        self.settings(f"Host far\nHostName localhost\nPort {self.daemon.port}\nHostKeyAlias far\nHost *")
        await self.transfer(self.address("far"))

    async def test_jump(self) -> None:
        # The first host is reached from the sandbox; it connects to the second.
        port = self.daemon.port
        self.settings(
            f"Host far\nHostName 127.0.0.1\nPort {port}\nProxyJump hop\nHostKeyAlias far\n"
            f"Host hop\nHostName localhost\nPort {port}\nHostKeyAlias far\nHost *"
        )
        self.wrap(f'export PATH={self.ssh}:$PATH; exec {self.real} -F {self.ssh}/config "$@"')
        await self.transfer(self.address("far"))

    async def test_another_host_key_is_refused(self) -> None:
        self.settings("NoHostAuthenticationForLocalhost no", known="user")
        url = self.address(f"localhost:{self.daemon.port}")
        error = await self.assertFailure(self.call("git_clone", directory="app", url=url), IronCurtainError)
        self.assertIn("verification failed", str(error))

    async def test_host_keys_are_checked_though_every_host_seems_to_be_local(self) -> None:
        self.settings()
        self.wrap(f'case "$1" in -G) exec {self.real} "$@";; esac; echo "$@" >&2; exit 1')
        for host, checked in (("git.example", True), ("192.0.2.1", True), ("localhost", False)):
            url = self.address(host)
            error = await self.assertFailure(self.call("git_clone", directory="app", url=url), GitFailed)
            self.assertEqual("NoHostAuthenticationForLocalhost=no" in str(error), checked, str(error))

    async def test_settings_that_cannot_be_kept_are_refused(self) -> None:
        for further, why in (
            ("ProxyCommand nc %h %p", "ProxyCommand"),
            ("ProxyJump bastion.example\nNoHostAuthenticationForLocalhost yes", "host key of the jump"),
            ("Host far\nProxyJump far2\nHost far2\nProxyJump far", "more than"),
        ):
            self.settings(further)
            url = self.address("far")
            error = await self.assertFailure(self.call("git_clone", directory="app", url=url), GitFailed)
            self.assertIn(why, str(error))
