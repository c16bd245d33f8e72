"""A daemon of the installed product, and OpenSSH's client to reach it with."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from unittest import TestCase

from tests.ports import free_port
from tests.product import Product
from tests.programs import program

FAILED = 255
"""What ssh(1) ends with if it reaches nobody. Whoever may not see sessions gets another status."""


def new_key(path: Path, comment: str = "") -> None:
    """Make a key without a passphrase."""
    line = [program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(path), "-C", comment]
    subprocess.run(line, check=True)


def ssh_command(key: Path, port: int, *words: str) -> list[str]:
    """
    :param words: more options.
    :returns: the command line of a user's client, for a daemon on this machine.
    """
    options = ["-F", "/dev/null", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-q"]
    return [program("ssh"), *options, "-o", "IdentitiesOnly=yes", "-i", str(key), "-p", str(port), *words, "localhost"]


class SshDaemon:
    """
    Serves from now to the end of a test.

    :param roles: of its users, each with a key of its own; at least one.
    :raises SkipTest: there is no client.
    :ivar keys: where they are, by role.
    """

    def __init__(self, case: TestCase, product: Product, *roles: str) -> None:
        self.keys = {role: product.person / f"key-{role}" for role in roles}
        for role, key in self.keys.items():
            new_key(key, role)
            added = product.run("ssh", "add-key", f"{key}.pub", "--roles", role)
            case.assertEqual(added.returncode, 0, added.stderr)
        self._port = free_port()
        done = product.twistd("ironcurtain", "--ssh-port", str(self._port))
        case.assertEqual(done.returncode, 0, done.stderr)
        pid = int((product.home / "twistd.pid").read_text())
        case.addCleanup(os.waitpid, pid, 0)
        case.addCleanup(os.kill, pid, signal.SIGTERM)
        line = [*self.ssh(roles[0]), "sessions"]
        while subprocess.run(line, capture_output=True, check=False).returncode == FAILED:
            time.sleep(0.1)

    def ssh(self, role: str, *words: str) -> list[str]:
        """:returns: the command line of a user's client; more words are options."""
        return ssh_command(self.keys[role], self._port, *words)
