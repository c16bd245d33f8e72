"""A fleet of real daemons and servers in which things go wrong."""

from __future__ import annotations

import collections
import contextlib
import http.client
import json
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.control.wire import NAME_HEADER, ROLES_HEADER
from tests.fleet.hosts import ME, Fleet, Host
from tests.fleet.networks import Networks
from tests.product import wait_until


def deciding(host: Host, what: str, number: str) -> subprocess.Popen[str]:
    """:returns: a command that decides."""
    return host.product.start(what, number, stdin=subprocess.DEVNULL)


class PartitionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.networks = Networks(3)
        self.addCleanup(self.networks.close)
        self.fleet = Fleet(("laptop", "build-3"), self.networks.sites)
        self.addCleanup(self.fleet.end)
        self.fleet.begin()

    def test_each_side_decides_its_own_and_nothing_twice(self) -> None:
        laptop, build = self.fleet.hosts.values()
        sessions = [host.ask() for host in (laptop, build)]
        wait_until(lambda: laptop.asking and build.asking)
        wait_until(lambda: laptop.waiting() == ["1", "build-3/1"] and build.waiting() == ["1", "laptop/1"])
        self.networks.cut(1)
        far = [deciding(laptop, "approve", "build-3/1"), deciding(build, "approve", "laptop/1")]
        for host in (laptop, build):
            self.assertEqual(host.product.run("deny", "1").returncode, 0)
        for session in sessions:
            self.assertIn("All done.", session.communicate()[0])
        for process, owner in zip(far, (build, laptop), strict=True):
            self.assertIn(f"{owner.name} does not answer", process.communicate()[1])
            self.assertNotEqual(process.returncode, 0)
        wait_until(lambda: build.known["unreached"])
        self.networks.join(1)
        wait_until(lambda: not build.known["unreached"])
        for host in (laptop, build):
            self.assertEqual(host.decisions, [f"denied {ME}"])
        wait_until(lambda: laptop.witnesses(build))
        self.assertIn("same head of record", laptop.product.run("audit", "verify", "build-3/1").stdout)


class Asked:
    """
    Decisions about questions, each given in several ways at the same time.

    :ivar told: the decisions that counted, as whoever gave them was told.
    """

    def __init__(self) -> None:
        self.told = list[str]()

    def race(self, view: dict[str, Any], ways: Sequence[Path], meanwhile: Callable[[], object]) -> int:
        """
        Decide about a question.

        :param ways: sockets of the process that owns it; every second one denies.
        :param meanwhile: called once all have asked.
        :returns: how many were told that their decision counts.
        """
        before, asking = len(self.told), [_connected(path) for path in ways]
        for number, one in enumerate(asking):
            outcome = "denied" if number % 2 else "approved"
            body = json.dumps({"decision": outcome, "digest": view["digest"]})
            one.request("POST", f"/v1/escalations/{view['number']}", body, {NAME_HEADER: ME, ROLES_HEADER: "approve"})
        meanwhile()
        for one in asking:
            with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(one):
                answer = one.getresponse()
                if answer.status == 200:
                    decided = json.loads(answer.read())
                    self.told.append(f"{decided['outcome']} {decided['by']}")
        return len(self.told) - before


def _connected(path: Path) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("ironcurtain")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(30)
    connection.sock.connect(str(path))
    return connection


def first_question(path: Path) -> Any:
    """
    :param path: the socket of a process.
    :returns: its question that waits; nothing, if none does.
    """
    with contextlib.closing(_connected(path)) as asking:
        asking.request("GET", "/v1/escalations")
        return next(iter(json.loads(asking.getresponse().read())), None)


class OwnerTests(SynchronousTestCase):
    """The daemon that owns a session is stopped, and killed, while its questions are decided on two hosts."""

    def setUp(self) -> None:
        self.fleet = Fleet(("laptop", "build-3"))
        self.addCleanup(self.fleet.end)
        self.fleet.begin()

    def test_owner_that_stops_and_dies_loses_no_decision(self) -> None:
        laptop, build = self.fleet.hosts.values()
        own, far = build.home.daemon_socket, laptop.home.fleet_socket("build-3", "daemon")
        asked = Asked()
        for stopped in (False, True):
            session = build.ask(9)
            wait_until(lambda: build.asking and far.exists())
            owner = build.daemon
            assert owner is not None
            for number in range(8):
                view = wait_until(partial(first_question, own))
                if number % 2:
                    owner.send_signal(signal.SIGSTOP)
                ways = (far, far) if number % 3 == 0 else (own, far, own, far)  # the own ones are faster
                self.assertEqual(asked.race(view, ways, partial(owner.send_signal, signal.SIGCONT)), 1)
            view = wait_until(partial(first_question, own))
            if stopped:
                owner.send_signal(signal.SIGSTOP)
            self.assertLessEqual(asked.race(view, (own, far), owner.kill), 0 if stopped else 1)
            session.communicate()
            build.end()
            build.begin()
        self.assertEqual({one.split()[-1] for one in asked.told}, {ME, f"{ME}@laptop"})
        told, recorded = collections.Counter(asked.told), collections.Counter(build.decisions)
        self.assertEqual(told - recorded, {})
        self.assertLessEqual(recorded.total() - told.total(), 1)  # the owner was killed before it could say so
        self.assertEqual(laptop.waiting(), [])
