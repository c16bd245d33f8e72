"""A fleet of real daemons and servers in which things go wrong."""

from __future__ import annotations

import collections
import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.control.wire import NAME_HEADER, ROLES_HEADER
from ironcurtain.fleet.task_files import TaskFiles
from ironcurtain.operations import Role
from tests.audit.doubles import scratch
from tests.fleet.hosts import ME, Fleet, Host
from tests.fleet.networks import Networks
from tests.product import LIMIT, Command, wait_until
from tests.programs import program


def deciding(host: Host, what: str, number: str) -> Command:
    """:returns: a command that decides."""
    return host.product.start(what, number, stdin=subprocess.DEVNULL)


class PartitionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.networks = Networks(3)
        self.addCleanup(self.networks.close)
        self.fleet = Fleet(("laptop", "build-3"), self.networks.sites)
        self.addCleanup(lambda: self.assertEqual(self.fleet.end(), []))
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
    connection.sock.settimeout(LIMIT)
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
        self.addCleanup(lambda: self.assertEqual(self.fleet.end(), []))
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


class DiskTests(SynchronousTestCase):
    """The home of a host is a file system of its own, which is full for a while."""

    def setUp(self) -> None:
        self.fleet = Fleet(("laptop", "build-3"))
        self.addCleanup(lambda: self.assertEqual(self.fleet.end(), []))
        home = self.fleet.hosts["build-3"].product.home
        shutil.copytree(home, aside := home.with_name("aside"))
        mount = ["mount", "-t", "tmpfs", "-o", "size=16m,mode=700", "none", str(home)]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
            raise SkipTest("nothing can be mounted on this machine")
        self.addCleanup(self.unmount, home)
        shutil.copytree(aside, home, dirs_exist_ok=True)
        self.fleet.begin()

    def unmount(self, home: Path) -> None:
        """Free the directory, once the daemon has left it."""
        self.fleet.hosts["build-3"].end()
        subprocess.run(["umount", "--lazy", str(home)], check=True)

    def test_full_disk_loses_no_decision_and_ends_no_member(self) -> None:
        laptop, build = self.fleet.hosts.values()
        session = build.ask()
        wait_until(lambda: build.asking and laptop.waiting() == ["build-3/1"])
        filling = build.product.home / "filling"
        with contextlib.suppress(OSError), filling.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        self.assertEqual(laptop.product.run("approve", "build-3/1").returncode, 0)
        self.assertIn("All done.", session.communicate()[0])
        self.assertEqual(build.decisions, [f"approved {ME}@laptop"])  # the log keeps room for that
        filling.unlink()
        again = build.ask()
        wait_until(lambda: build.asking and laptop.waiting() == ["build-3/2"])
        self.assertEqual(laptop.product.run("approve", "build-3/2").returncode, 0)
        self.assertIn("All done.", again.communicate()[0])
        self.assertEqual(build.decisions, [f"approved {ME}@laptop"] * 2)
        self.assertNotIn("Traceback", build.log.read_text())


SHIFT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile long *shift;

__attribute__((constructor)) static void begin(void) {
    shift = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, open(getenv("CLOCK_SHIFT"), O_RDONLY), 0);
}
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, now);
    if (!failed && shift && shift != MAP_FAILED && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        now->tv_sec += *shift;
    return failed;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    int failed = clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec, out->tv_usec = now.tv_nsec / 1000;
    return failed;
}
"""
"""A library that moves the clock of a process by the seconds in a file."""


class ClockTests(SynchronousTestCase):
    """The clock of a host is an hour fast, then an hour slow, and is set forward while something waits."""

    def setUp(self) -> None:
        place = scratch(self)
        (place / "shift.c").write_text(SHIFT)
        line = [program("cc"), "-shared", "-fPIC", "-o", str(place / "shift.so"), str(place / "shift.c"), "-ldl"]
        subprocess.run(line, check=True)
        self.shift = place / "shift"
        self.move(3600)
        self.fleet = Fleet(("laptop", "build-3"))
        self.addCleanup(lambda: self.assertEqual(self.fleet.end(), []))
        build = self.fleet.hosts["build-3"]
        build.product.environ |= {"LD_PRELOAD": str(place / "shift.so"), "CLOCK_SHIFT": str(self.shift)}
        config = build.home.config.read_text()
        build.home.config.write_text(config.replace("timeout_seconds = 3600", "timeout_seconds = 1800"))
        self.fleet.begin()

    def move(self, seconds: int) -> None:
        """Move the clock, also of what runs."""
        self.shift.touch()
        with self.shift.open("r+b") as file:
            file.write(struct.pack("l", seconds))

    def test_question_waits_and_is_decided_whatever_the_clock_says(self) -> None:
        laptop, build = self.fleet.hosts.values()
        for number, (seconds, later) in enumerate(((3600, 7200), (-3600, 3600)), 1):
            self.move(seconds)
            session = build.ask()
            wait_until(lambda: build.asking and laptop.waiting())
            self.assertRegex(laptop.product.run("escalations").stdout, r"\((29|30) min left\)")
            self.move(later)  # else it would expire now
            self.assertEqual(laptop.product.run("approve", f"build-3/{number}").returncode, 0)
            self.assertIn("All done.", session.communicate()[0])
        self.assertEqual(build.decisions, [f"approved {ME}@laptop"] * 2)
        self.fleet.meet()


class RestartTests(SynchronousTestCase):
    """A host that has tasks of another one is killed. It takes as long as the lease of a host."""

    def setUp(self) -> None:
        self.fleet = Fleet(("laptop", "build-3", "tower"), roles=(Role.ADMIN,))
        self.addCleanup(lambda: self.assertEqual(self.fleet.end(), []))
        self.laptop, self.build, self.tower = self.fleet.hosts.values()
        repository = str(self.laptop.product.person)
        as_somebody = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        for words in (("init", "-q"), (*as_somebody, "commit", "-q", "--allow-empty", "--message=x")):
            subprocess.run([program("git"), "-C", repository, *words], check=True)
        near = self.laptop.product.person / "bin" / "ssh"
        near.parent.mkdir()
        near.write_text('#!/bin/sh\nfor last; do :; done; exec sh -c "$last"\n')  # on this machine
        near.chmod(0o755)
        for host in (self.build, self.tower):
            host.product.environ["PATH"] = f"{near.parent}:{host.product.environ['PATH']}"
        self.address = f"ssh://ada@example.org{repository}"
        self.fleet.cluster.begin()
        for host in (self.laptop, self.build):
            host.begin()

    def tasks(self) -> list[tuple[str, str, str]]:
        """:returns: state and host of each task, and the host that was lost with it."""
        return [(task.state, task.host, task.lost) for task in TaskFiles(self.laptop.home).all()]

    def test_task_of_a_killed_host_starts_elsewhere_once_if_it_may(self) -> None:
        script = self.build.questions()
        for more in (("--restart",), ()):
            line = ("start", "--on", "any", *more, "--repo", self.address, "--backend", script, "Read it")
            done = self.laptop.product.run(*line)
            self.assertEqual(done.returncode, 0, done.stderr)
        wait_until(lambda: self.tasks() == [("started", "build-3", "")] * 2 and self.build.asking == 2)
        self.tower.begin()
        self.build.end(signal.SIGKILL)
        wait_until(lambda: self.tasks()[0] in (("started", "tower", "build-3"), ("ended", "tower", "build-3")))
        self.assertRegex(self.laptop.product.run("fleet", "status").stdout, r"lost +build-3/[12]")
        self.build.begin()
        wait_until(lambda: self.tasks()[1] == ("lost", "build-3", ""))
        wait_until(lambda: self.tasks()[0] == ("ended", "tower", "build-3"))
        self.assertEqual([len(list(host.home.sessions.iterdir())) for host in (self.build, self.tower)], [2, 1])
