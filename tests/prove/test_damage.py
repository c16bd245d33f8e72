"""The hostile program, in sandboxes from which protections were taken away: it has to notice each."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.mcp_proxy import launch
from ironcurtain.mcp_proxy.servers_config import CommandServer
from ironcurtain.process.accounts import Account
from ironcurtain.prove.places import VARIABLE, Machine, prove_server
from ironcurtain.prove.report import Report
from ironcurtain.sandbox import bubblewrap, programs
from ironcurtain.sandbox.landlock import implementation
from ironcurtain.sandbox.spec import Kind, Sandbox
from tests.prove.test_sandboxes import LIMITS

PROGRAM = """#!{python} -I
import json, os, sys
damage, line, kept = json.loads({damage!r}), sys.argv[1:], []
while line:
    word = line.pop(0)
    name = word.partition("=")[0]
    if word == "--args":
        with open(int(line.pop(0)), "rb") as options:
            line = options.read().decode().split("\\0")[:-1] + line
    elif name in damage:
        del line[:damage[name]]
    else:
        kept.append(word)
os.execv({real!r}, [{real!r}, *kept])
"""
"""A bubblewrap that loses options: their names, with the number of words that follow."""

PERMIT_ALL = b"\x06\x00\x00\x00\x00\x00\xff\x7f"
"""A filter that permits each system call (seccomp(2))."""


class DamageCase(SynchronousTestCase):
    kind: Kind

    def setUp(self) -> None:
        self.account = Account(4242, 4243, home="/home/prove") if os.geteuid() == 0 else None
        if (problem := programs.unavailable(self.account, self.kind)) is not None:
            raise SkipTest(problem)
        self.top = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.top.chmod(0o755)
        self.patch(launch, "Sandbox", partial(Sandbox, limits=LIMITS))

    def got_out(self) -> set[str]:
        """:returns: what the report of a server says that got out."""
        server = CommandServer("trial", sys.executable)
        own = Account(os.getuid(), os.getgid()) if self.account is None else self.account
        reports = list(prove_server(server, Machine(os.environ, str(self.top), own, (self.kind,))))
        self.assertEqual([type(report) for report in reports], [Report])
        report = reports[0]
        assert isinstance(report, Report)
        self.assertTrue(report.complete)
        self.assertFalse(report.held)
        return {line.split("OUT ")[1].strip().split(": ")[0] for line in report.lines() if "  OUT " in line}

    def assert_noticed(self, out: Collection[str], *attempts: str) -> None:
        self.assertEqual([what for what in attempts if what not in out], [], sorted(out))


class BubblewrapTests(DamageCase):
    kind = Kind.BUBBLEWRAP

    def lose(self, damage: Mapping[str, int]) -> None:
        """:param damage: as :data:`PROGRAM` has it."""
        found = bubblewrap.tried(self.account).program
        assert found is not None
        program = self.top / "bin" / "bwrap"
        program.parent.mkdir()
        program.write_text(PROGRAM.format(python=sys.executable, damage=json.dumps(damage), real=found.path))
        program.chmod(0o755)
        self.patch(os, "environ", {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"})

    def test_lost_namespaces_and_a_leaking_environment_are_noticed(self) -> None:
        self.lose({"--hostname": 1, **{f"--unshare-{name}": 0 for name in ("net", "pid", "ipc", "uts")}})
        self.patch(launch, "INHERITED", (*launch.INHERITED, VARIABLE))
        self.assert_noticed(
            self.got_out(),
            *(f"share the {name} namespace of this machine" for name in ("net", "pid", "ipc", "uts")),
            "connect to a server of this machine by IPv4",
            "connect to a socket without a file (abstract)",
            "see a process outside",
            "find a secret in the environment",
        )

    def test_lost_filter_limits_and_read_only_mounts_are_noticed(self) -> None:
        limits = {f"--{name}": 0 for name in ("data", "nofile", "fsize", "core", "nproc")}
        self.lose({"--seccomp": 1, "--remount-ro": 1, **limits})
        self.assert_noticed(
            self.got_out(),
            *(
                f"have a higher limit than it should (RLIMIT_{name})"
                for name in ("DATA", "NOFILE", "FSIZE", "CORE", "NPROC")
            ),
            "have a mount that can be written",
            "bpf",
            "keyctl",
            "leave a core dump",
            "open a socket of AF_NETLINK, audit",
        )


class LandlockTests(DamageCase):
    kind = Kind.LANDLOCK

    def test_lost_filter_and_rules_are_noticed(self) -> None:
        self.patch(implementation, "filter_program", lambda **_: PERMIT_ALL)
        self.patch(implementation, "HARMLESS", ("/",))
        self.assert_noticed(
            self.got_out(),
            "connect to a UNIX socket outside",
            "find an interface other than loopback",
            "read a file outside by its path",
            "read it through a symbolic link in the workspace",
        )
