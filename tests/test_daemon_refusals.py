"""What the daemon refuses to start with, and where it listens."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from tests.ports import free_port
from tests.test_daemon import DaemonCase


class RefusedTests(DaemonCase):
    """What makes a daemon impossible is said in a sentence, with a status, before it goes to the background."""

    def refused(self, *words: str) -> tuple[int, str]:
        done = self.product.twistd("ironcurtain", *words)
        self.assertNotIn("Traceback", done.stdout + done.stderr)
        return done.returncode, done.stderr + done.stdout

    def test_the_port_is_busy(self) -> None:
        with socket.socket() as busy:
            busy.bind(("127.0.0.1", 0))
            busy.listen()
            port = busy.getsockname()[1]
            status, text = self.refused("--ssh-port", str(port))
        self.assertEqual(status, 69)
        self.assertIn(f"SSH cannot listen on 127.0.0.1, port {port}: it is in use", text)
        self.assertIn("--ssh-port", text)

    def test_the_home_cannot_be_used(self) -> None:
        (self.product.person / "file").write_text("")
        for path, why in (("/proc/nowhere", "No such file"), (f"{self.product.person}/file", "is not a directory")):
            status, text = self.refused("--home", path)
            self.assertEqual(status, 64)
            self.assertIn(why, text)

    def test_the_disk_is_full(self) -> None:
        twistd = str(Path(sys.executable).parent / "twistd")
        done = subprocess.run(
            ["/bin/sh", "-c", 'ulimit -f 0; exec "$0" ironcurtain', twistd],  # no file may grow
            env=self.product.environ, cwd=self.product.person, capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 64, done.stderr)
        said = f"ironcurtain: cannot write to the home {self.product.home}: File too large\n"
        self.assertEqual(done.stdout + done.stderr, said)

    def test_files_that_sessions_need_are_wrong(self) -> None:
        (self.product.home / "mcp-servers.json").write_text('{"mcpServers":\n 1}')
        status, text = self.refused()
        self.assertEqual(status, 78)
        self.assertIn("mcp-servers.json:1: mcpServers: ", text)

    def test_the_settings_are_wrong(self) -> None:
        self.setting("[ssh]\nport = 'x'")
        status, text = self.refused()
        self.assertEqual(status, 78)
        self.assertIn("config.toml:2: ssh.port", text)

    def test_another_daemon_runs(self) -> None:
        self.begin()
        self.heard("READY")
        status, text = self.refused()
        self.assertEqual(status, 69)
        self.assertIn("a daemon is already running in", text)

    def test_wrong_options(self) -> None:
        for words, why in (
            (("--ssh-port", "70000"), "must be from 0 to 65535"),
            (("--ssh-port", "x"), "must be from 0 to 65535"),
            (("--ssh-listen", "localhost"), "give an IP address"),
        ):
            status, text = self.refused(*words)
            self.assertEqual(status, 1)
            self.assertIn(why, text)

    def test_addresses_to_listen_on(self) -> None:
        port = free_port()
        self.begin("--ssh-port", str(port), "--ssh-listen", "127.0.0.3", "--ssh-listen", "127.0.0.2")
        self.assertEqual(self.heard("READY")["STATUS"], f"serves sessions, and SSH on port {port}")
        for address, answers in (("127.0.0.2", True), ("127.0.0.3", True), ("127.0.0.1", False)):
            with socket.socket() as tried:
                self.assertEqual(tried.connect_ex((address, port)) == 0, answers, address)
