"""A fleet of real daemons and servers in which things go wrong."""

from __future__ import annotations

import json
import subprocess

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.audit.witness import read_heads
from ironcurtain.fleet.heads import heads_file
from tests.fleet.hosts import ME, Fleet, Host
from tests.fleet.networks import Networks
from tests.product import wait_until


def decisions(host: Host) -> list[str]:
    """:returns: outcome and principal of all decisions in the audit logs of a host."""
    logs = [path.read_bytes() for path in sorted(host.home.sessions.glob("*/audit.jsonl"))]
    records = [json.loads(line) for log in logs for line in log.splitlines()]
    return [f"{record['outcome']} {record['by']}" for record in records if record["kind"] == "decision"]


def waiting(host: Host) -> list[str]:
    """:returns: the numbers of the questions that wait, as a host lists them; it shows them all, too."""
    return [str(each["number"]) for each in host.product.json("escalations") if not each["outcome"]]


def deciding(host: Host, what: str, number: str) -> subprocess.Popen[str]:
    """:returns: a command that decides."""
    return host.product.start(what, number, stdin=subprocess.DEVNULL)


def witnessed(witness: Host, owner: Host) -> bool:
    """:returns: whether a host has the last heads of the only session of another one."""
    (log,) = owner.home.sessions.glob("*/audit.jsonl")
    with heads_file(witness.home, owner.name).open("rb") as lines:
        heads = [head.sequence for head in read_heads(lines)]
    return log.read_bytes().count(b"\n") - 1 in heads


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
        wait_until(lambda: waiting(laptop) == ["1", "build-3/1"] and waiting(build) == ["1", "laptop/1"])
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
            self.assertEqual(decisions(host), [f"denied {ME}"])
        wait_until(lambda: witnessed(laptop, build))
        self.assertIn("same head of record", laptop.product.run("audit", "verify", "build-3/1").stdout)
