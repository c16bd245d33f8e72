"""The service, started as systemd starts it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.audit.doubles import scratch
from tests.product import LIMIT

SERVE = """
import os, sys
os.dup2(int(sys.argv.pop(1)), 3)
os.environ["LISTEN_PID"] = str(os.getpid())
from pathlib import Path
from twisted.internet.asyncioreactor import install
install()
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from ironcurtain.home.layout import Home
from ironcurtain.ssh.service import SshService

service = SshService(reactor, Home(Path(sys.argv[1]), Path(sys.argv[1])), sys.argv[2:], 0, None)
started = Deferred.fromCoroutine(service.start())
started.addErrback(lambda failure: (print(failure.value), reactor.stop()))
started.addCallback(lambda _: print(*service.ports, flush=True))
reactor.run()
"""

TOP = str(Path(__file__).parents[2])


class SystemdTests(SynchronousTestCase):
    """A socket is there before the service is."""

    def serve(self, *addresses: str) -> subprocess.Popen[str]:
        """:returns: a service that was passed one socket, as descriptor 3."""
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listening.close)
        environ = {**os.environ, "PYTHONPATH": TOP, "LISTEN_FDS": "1", "LISTEN_FDNAMES": "ssh"}
        given = self.listening.fileno()
        process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(given), str(scratch(self)), *addresses],
            env=environ,
            pass_fds=[given],
            stdout=subprocess.PIPE,
            text=True,
        )

        def end() -> None:
            process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def test_its_socket_is_listened_on(self) -> None:
        for address in ("systemd:domain=INET:index=0", "systemd:domain=INET:name=ssh"):
            process = self.serve(address)
            port = self.listening.getsockname()[1]
            assert process.stdout is not None
            self.assertEqual(process.stdout.readline(), f"{port}\n")
            with socket.create_connection(("127.0.0.1", port), LIMIT) as client:
                self.assertTrue(client.recv(100).startswith(b"SSH-2.0-IronCurtain"))

    def test_one_that_was_not_passed(self) -> None:
        for address in ("systemd:domain=INET:index=1", "systemd:domain=INET:name=web"):
            said, _ = self.serve("127.0.0.1", address).communicate(timeout=LIMIT)
            self.assertIn(f"systemd passed this process no socket for {address}", said)
