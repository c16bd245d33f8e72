"""Listening sockets inside sandboxes, made from outside."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

from msgspec.structs import replace
from twisted.internet import reactor as _reactor
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from ironcurtain.errors import Unavailable
from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds, Finished
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.awaited_sockets import awaited_sockets
from ironcurtain.sandbox.bubblewrap import tried
from ironcurtain.sandbox.handover import Handover, Sockets
from ironcurtain.sandbox.spec import Kind, Listener, Sandbox
from tests.machine import demand_sandbox, python_inside

reactor: Any = _reactor

PROXY, DATABASE, NAMES = Listener("127.0.0.1", 18080), Listener("127.0.0.10", 443), Listener("127.0.0.1", 53, True)
LISTENERS = (PROXY, DATABASE, NAMES)
SECONDS = 100.0

ASK = """
import socket
for address in ("127.0.0.1", 18080), ("127.0.0.10", 443):
    with socket.create_connection(address, 10) as connected:
        print(connected.recv(100).decode())
with socket.socket(type=socket.SOCK_DGRAM) as asking:
    asking.settimeout(10)
    asking.sendto(b"name", ("127.0.0.1", 53))
    print(asking.recv(100).decode())
"""

REACH = """
import os, socket, sys
ports, abstract = sys.argv[1].split(","), sys.argv[2]
def attempt(what, family, address, kind=socket.SOCK_STREAM):
    try:
        with socket.socket(family, kind) as trying:
            trying.settimeout(5)
            trying.connect(address)
        print("reached", what)
    except OSError:
        pass
for port in ports:
    attempt("loopback", socket.AF_INET, ("127.0.0.1", int(port)))
    attempt("loopback by IPv6", socket.AF_INET6, ("::1", int(port)))
attempt("abstract", socket.AF_UNIX, "\\0" + abstract)
attempt("vsock", socket.AF_VSOCK, (2, 22))
attempt("elsewhere", socket.AF_INET, ("192.0.2.1", 443))
attempt("datagrams elsewhere", socket.AF_INET, ("192.0.2.1", 53), socket.SOCK_DGRAM)
attempt("clouds", socket.AF_INET, ("169.254.169.254", 80))
print("done", *(line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line))
"""


def answer(sockets: Sockets) -> None:
    """Say something to one client of each listener."""
    for listener, listening in sockets.items():
        with listening:
            listening.settimeout(SECONDS)
            if listener.datagrams:
                asked, client = listening.recvfrom(100)
                listening.sendto(b"re " + asked, client)
            else:
                with listening.accept()[0] as accepted:
                    accepted.sendall(str(listener).encode())


class HandoverTests(TestCase):
    """Whatever the sandbox is made of, the sockets come out before the program starts."""

    account: Account | None = None

    def setUp(self) -> None:
        self.python, needed = python_inside()
        self.sandbox = Sandbox(read=needed, listeners=LISTENERS, account=self.account, kind=Kind.BUBBLEWRAP)
        demand_sandbox(self.sandbox)

    def run_python(self, sandbox: Sandbox, script: str, *arguments: str, handover: Handover) -> Finished:
        """:returns: what this Python did inside; the sockets may be taken before or afterwards."""
        line = [self.python, "-I", "-S", "-c", script, *arguments]
        try:
            return programs.run(sandbox, line, {"PATH": os.environ["PATH"]}, Bounds(SECONDS), handover=handover)
        finally:
            handover.theirs.close()

    def asked(self, sandbox: Sandbox) -> str:
        """:returns: what a program printed that asked each listener."""
        handover = Handover(sandbox.listeners)
        serving = Thread(target=lambda: answer(handover.take()))
        serving.start()
        done = self.run_python(sandbox, ASK, handover=handover)
        serving.join()
        self.assertEqual((done.status, done.errors), (0, b""))
        return done.output.decode()

    def nested(self) -> Sandbox:
        """:returns: a sandbox that an older bubblewrap makes with a second one around it."""
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        top = Path(place.name).resolve()
        (top / "part").mkdir()
        if self.account is not None:
            os.chown(top, self.account.uid, self.account.gid)
        return replace(self.sandbox, write=(str(top),), read=(*self.sandbox.read, str(top / "part")))

    def test_programs_reach_the_listeners(self) -> None:
        self.assertEqual(self.asked(self.sandbox).split("\n")[:3], [str(PROXY), str(DATABASE), "re name"])

    def test_programs_in_nested_sandboxes_reach_the_listeners(self) -> None:
        program = tried(self.account).program
        self.assertTrue(program is not None and (program.safe() or self.nested().inner_mount_points()))
        self.assertEqual(self.asked(self.nested()).split("\n")[:3], [str(PROXY), str(DATABASE), "re name"])

    async def test_the_reactor_takes_the_sockets_while_a_thread_runs_the_program(self) -> None:
        handover = Handover(LISTENERS)
        running = deferToThread(self.run_python, self.sandbox, "print(1)", handover=handover)
        sockets = await awaited_sockets(handover, reactor)
        self.assertEqual(
            [each.getsockname() for each in sockets.values()][:2], [("127.0.0.1", 18080), ("127.0.0.10", 443)]
        )
        self.assertEqual((await running).output, b"1\n")
        for each in sockets.values():
            each.close()

    def test_nothing_of_the_host_is_reached(self) -> None:
        abstract = f"ironcurtain-test-{os.getpid()}"
        with (
            socket.create_server(("127.0.0.1", 0)) as four,
            socket.create_server(("::1", 0), family=socket.AF_INET6) as six,
            socket.socket(socket.AF_UNIX) as unix,
        ):
            unix.bind(f"\0{abstract}")
            unix.listen()
            ports = ",".join(str(each.getsockname()[1]) for each in (four, six))
            handover = Handover(LISTENERS)
            done = self.run_python(self.sandbox, REACH, ports, abstract, handover=handover)
        for each in handover.take().values():
            each.close()
        self.assertEqual((done.output, done.errors), (b"done lo\n", b""))

    def test_a_listener_that_cannot_be_made_ends_the_program_before_it_starts(self) -> None:
        sandbox = replace(self.sandbox, listeners=(PROXY, PROXY))
        handover = Handover(sandbox.listeners)
        done = self.run_python(sandbox, "print('runs')", handover=handover)
        self.assertEqual((done.status == 0, done.output), (False, b""))
        self.assertIn(b"IronCurtain: its network could not be made: [Errno 98]", done.errors)
        with self.assertRaisesRegex(Unavailable, "could not be made: .Errno 98"):
            handover.take()

    def test_a_sandbox_that_does_not_start_says_why_itself(self) -> None:
        handover = Handover(LISTENERS)
        done = self.run_python(replace(self.sandbox, read=("/there/is/none",)), "", handover=handover)
        self.assertRegex(done.errors, rb"\Abwrap: .*/there/is/none: [^\n]*\n\Z")
        with contextlib.suppress(Unavailable):  # depends on who was faster
            for each in handover.take().values():
                each.close()

    def test_nobody_who_takes_the_sockets_ends_the_program_before_it_starts(self) -> None:
        handover = Handover(LISTENERS)
        handover.give_up()
        done = self.run_python(self.sandbox, "print('runs')", handover=handover)
        self.assertEqual((done.status == 0, done.output), (False, b""))

    def test_a_program_inherits_nothing_of_the_handover(self) -> None:
        handover = Handover(LISTENERS)
        script = "import os; print([number for number in range(3, 99) if os.path.exists(f'/proc/self/fd/{number}')])"
        self.assertEqual(self.run_python(self.sandbox, script, handover=handover).output, b"[]\n")
        for each in handover.take().values():
            each.close()


class AccountTests(HandoverTests):
    """As root, for another account: without a namespace of accounts."""

    account = Account(65534, 65534, "nobody", "/")

    def setUp(self) -> None:
        if os.geteuid() != 0:
            self.skipTest("only root can switch to another account")
        super().setUp()


class OtherKindTests(TestCase):
    """What has no network namespaces, or none that can be entered, has no network, and says so."""

    def refusal(self, kind: Kind) -> str:
        """:returns: why a kind cannot make a sandbox with a network."""
        found: Mapping[Kind, str | None] = dict(programs.problems(Sandbox(listeners=LISTENERS, kind=kind)))
        return found[kind] or ""

    def test_landlock(self) -> None:
        self.assertRegex(self.refusal(Kind.LANDLOCK), "Landlock cannot")

    def test_containers(self) -> None:
        self.assertRegex(self.refusal(Kind.CONTAINER), "Docker Engine")
