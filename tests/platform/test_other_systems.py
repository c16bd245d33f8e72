"""Systems without what only Linux has."""

from __future__ import annotations

import ast
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import ironcurtain
from ironcurtain.platform.files import has_access_list, make_accessible, nameless_file
from ironcurtain.platform.sockets import hung_up, keep_alive, peer_uid
from ironcurtain.sandbox import container, programs
from ironcurtain.sandbox.spec import Kind, Sandbox

PACKAGE = Path(ironcurtain.__file__).parent

PROGRAM = """
import fcntl, importlib, os, resource, select, signal, socket, sys
import zoneinfo  # it reads a file of this system's Python

class NoInotify:
    def find_spec(self, name, path=None, target=None):
        if name == "twisted.python._inotify":
            raise ImportError("this system has no inotify")

sys.meta_path.insert(0, NoInotify())
ONLY_LINUX = {
    fcntl: ("F_ADD_SEALS", "F_NOTIFY", "F_OFD", "F_SETPIPE"),
    os: ("O_DIRECT", "O_LARGEFILE", "O_NOATIME", "O_PATH", "O_TMPFILE", "eventfd", "fdatasync", "getxattr",
         "listxattr", "memfd_create", "pidfd_open", "pipe2", "setresgid", "setresuid", "setns", "setxattr", "splice",
         "unshare", "waitid"),
    resource: ("RLIMIT_NICE", "RLIMIT_RTPRIO", "RLIMIT_RTTIME", "RLIMIT_SIGPENDING", "prlimit"),
    select: ("epoll", "EPOLL", "POLLRDHUP"),
    signal: ("SIGPWR", "SIGRTMIN", "SIGSTKFLT", "pidfd_send_signal"),
    socket: ("AF_NETLINK", "AF_PACKET", "SOCK_CLOEXEC", "SOCK_NONBLOCK", "SO_PASSCRED", "SO_PEERCRED", "TCP_KEEPIDLE"),
}
socket.TCP_KEEPALIVE = 0x10
import twisted.internet.asyncioreactor, twisted.internet.process, asyncio, ssl, subprocess, uuid  # which ask, too
sys.platform = "darwin"
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

    def test_the_way_to_servers_and_the_checks(self) -> None:
        modules = ("mcp_proxy.http_channel", "cli.doctor", "sandbox.programs", "servers.files.protected")
        self.assertEqual(self.imported(*(f"ironcurtain.{module}" for module in modules)), "")


class CallTests(SynchronousTestCase):
    """What is called by another name elsewhere."""

    def test_who_connected(self) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            self.assertEqual(peer_uid(ours), os.geteuid())

    def test_a_directory_without_rights(self) -> None:
        for path_only in (True, False):
            if not path_only:
                self.patch(sys, "platform", "darwin")
            with tempfile.TemporaryDirectory() as place:
                Path(place, "closed").mkdir(mode=0 if path_only else 0o400)
                Path(place, "link").symlink_to("closed")
                directory = os.open(place, os.O_RDONLY)
                self.addCleanup(os.close, directory)
                os.close(make_accessible(directory, "closed"))
                self.assertEqual(Path(place, "closed").stat().st_mode & 0o777, 0o700)
                self.assertRaises(OSError, make_accessible, directory, "link")

    def test_a_nameless_file(self) -> None:
        for system in ("linux", "darwin"):
            self.patch(sys, "platform", system)
            with os.fdopen(nameless_file(), "w+b") as file:
                file.write(b"content")
                file.seek(0)
                self.assertEqual(file.read(), b"content")

    def test_a_file_may_have_an_access_list_where_that_is_not_known(self) -> None:
        self.assertFalse(has_access_list(__file__))
        self.patch(sys, "platform", "darwin")
        self.assertTrue(has_access_list(__file__))

    def test_silence_is_noticed_under_either_name(self) -> None:
        self.assertIn((socket.IPPROTO_TCP, 4, 60), keep_alive(60, 10, 3), "TCP_KEEPIDLE of Linux")
        setattr(socket, "TCP_KEEPALIVE", 0x10)  # noqa: B010  # Linux has no such name
        self.addCleanup(delattr, socket, "TCP_KEEPALIVE")
        self.patch(sys, "platform", "darwin")
        self.assertIn((socket.IPPROTO_TCP, 0x10, 60), keep_alive(60, 10, 3))

    def test_who_hung_up(self) -> None:
        for system in ("linux", "darwin"):
            self.patch(sys, "platform", system)
            ours, theirs = socket.socketpair()
            with ours, theirs:
                theirs.shutdown(socket.SHUT_WR)
                self.assertFalse(hung_up(ours.fileno()))
                theirs.close()
                self.assertTrue(hung_up(ours.fileno()))


class KindTests(SynchronousTestCase):
    def test_kinds_of_sandboxes_that_are_parts_of_linux_say_so(self) -> None:
        self.patch(sys, "platform", "darwin")
        container.available.cache_clear()
        self.addCleanup(container.available.cache_clear)
        found = dict(programs.problems(Sandbox()))
        self.assertEqual(set(found), set(Kind))
        for problem in found.values():
            self.assertIn("needs Linux, and this system is darwin", str(problem))


class PlaceTests(SynchronousTestCase):
    """Nothing but this package asks which system it is."""

    ALONE = "sandbox/hold.py"
    """Runs without the rest of the package, and only on Linux."""

    NAMES = frozenset(("accounts/named_login.py", "shell/session_prompts.py"))
    """What gives the system's name to people and models."""

    def test_other_modules_do_not_ask(self) -> None:
        asking = set()
        for path in PACKAGE.rglob("*.py"):
            module = str(path.relative_to(PACKAGE))
            if not module.startswith(("platform/", "prove/data/")) and "platform" in (text := path.read_text()):
                attributes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute))
                named = (node for node in attributes if node.attr == "platform")
                asking |= {module for node in named if ast.unparse(node) == "sys.platform"}
        self.assertEqual(asking, self.NAMES | {self.ALONE})
