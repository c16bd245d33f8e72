"""Systems without what only Linux has."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.process.portability import make_accessible, peer_uid

PROGRAM = """
import fcntl, importlib, os, resource, select, signal, socket, sys

class NoInotify:
    def find_spec(self, name, path=None, target=None):
        if name == "twisted.python._inotify":
            raise ImportError("this system has no inotify")

sys.meta_path.insert(0, NoInotify())
ONLY_LINUX = {
    fcntl: ("F_ADD_SEALS", "F_NOTIFY", "F_OFD", "F_SETPIPE"),
    os: ("O_DIRECT", "O_LARGEFILE", "O_NOATIME", "O_PATH", "O_TMPFILE", "eventfd", "fdatasync", "memfd_create",
         "pidfd_open", "pipe2", "setresgid", "setresuid", "setns", "splice", "unshare"),
    resource: ("RLIMIT_NICE", "RLIMIT_RTPRIO", "RLIMIT_SIGPENDING", "prlimit"),
    select: ("epoll", "EPOLL"),
    signal: ("SIGPWR", "SIGRTMIN", "SIGSTKFLT", "pidfd_send_signal"),
    socket: ("AF_NETLINK", "AF_PACKET", "SOCK_CLOEXEC", "SOCK_NONBLOCK", "SO_PASSCRED", "SO_PEERCRED"),
}
for module, names in ONLY_LINUX.items():
    for name in dir(module):
        if name in names or name.rstrip("_") in names or name.startswith(tuple(n + "_" for n in names if n.isupper())):
            if name != "O_DIRECTORY":
                delattr(module, name)
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


class OtherSystemTests(SynchronousTestCase):
    """All is imported without what only Linux has; what is missing shows only where it is used."""

    def imported(self, *names: str) -> str:
        done = subprocess.run([sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, timeout=60)
        return done.stderr

    def test_the_daemon(self) -> None:
        self.assertEqual(self.imported("ironcurtain.tap", "ironcurtain.assembly", "ironcurtain.ssh.service"), "")

    def test_sessions_and_commands(self) -> None:
        kinds = [f"ironcurtain.{package}.kind" for package in ("builtin_agent", "container_agent", "loop")]
        self.assertEqual(self.imported(*kinds, "ironcurtain.cli.start", "ironcurtain.process.confined"), "")


class CallTests(SynchronousTestCase):
    """What is called by another name elsewhere."""

    def test_who_connected(self) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.assertEqual(peer_uid(ours), os.geteuid())

    def test_a_directory_without_rights(self) -> None:
        for path_only in (True, False):
            if not path_only:
                self.patch(os, "O_PATH", None)
            with tempfile.TemporaryDirectory() as place:
                Path(place, "closed").mkdir(mode=0 if path_only else 0o400)
                Path(place, "link").symlink_to("closed")
                directory = os.open(place, os.O_RDONLY)
                self.addCleanup(os.close, directory)
                os.close(make_accessible(directory, "closed"))
                self.assertEqual(Path(place, "closed").stat().st_mode & 0o777, 0o700)
                self.assertRaises(OSError, make_accessible, directory, "link")
