"""
Decisions raced from three hosts of a fleet, while servers of NATS and members are killed and stopped.

An agent of the first host asks again and again. For each question the person approves on all three hosts at once.
Every few seconds something is killed or stopped: one of three servers, or one of the other two hosts, and begins again.
At the end the audit log has exactly one decision for each question: that of the host which was told that its decision
counts, if one was told, by the person with that host::

    python -m benchmarks.fleet_race [--decisions 10000] [--sessions 4] [--every 6]
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import signal
import subprocess
import time
from typing import Any

from twisted.internet.asyncioreactor import install

install()

from twisted.internet.defer import Deferred, DeferredList, TimeoutError  # noqa: E402
from twisted.internet.task import deferLater, react  # noqa: E402
from twisted.internet.threads import deferToThread  # noqa: E402

from benchmarks.sizes import parse  # noqa: E402
from ironcurtain.control.client import ControlClient  # noqa: E402
from ironcurtain.errors import IronCurtainError, StaleDecision  # noqa: E402
from ironcurtain.escalation import Outcome  # noqa: E402
from ironcurtain.operations.model import EscalationView  # noqa: E402
from tests.fleet.hosts import ME, Fleet, Site  # noqa: E402
from tests.product import Command  # noqa: E402

HOSTS = ("tower", "laptop", "build-3")
"""The first one has the sessions."""

PATIENCE, AGAIN = 20.0, 0.3
"""Seconds for one decision, and until a host that could not be reached is asked again."""

HEAD_START = 0.06
"""Maximum seconds that a host waits before it decides: else the questions' own host would always be the first."""


class Race:
    """
    :param fleet: that runs.
    :ivar told: by question, the hosts that were told that their decision counts.
    :ivar failed: what kept hosts from deciding, and how often.
    """

    def __init__(self, reactor: Any, fleet: Fleet) -> None:
        self._reactor, self._fleet, self._chance = reactor, fleet, random.Random(1)
        owner = fleet.hosts[HOSTS[0]]
        self.clients = {HOSTS[0]: ControlClient(reactor, str(owner.home.daemon_socket))}
        for name in HOSTS[1:]:
            socket = fleet.hosts[name].home.fleet_socket(HOSTS[0], "daemon")
            self.clients[name] = ControlClient(reactor, str(socket), host=HOSTS[0])
        self.told: dict[int, list[str]] = {}
        self.failed: collections.Counter[str] = collections.Counter()

    async def run(self, sessions: list[Command]) -> None:
        """Decide until all sessions are over."""
        racing: dict[int, Deferred[Any]] = {}
        while any(session.poll() is None for session in sessions):
            try:
                waiting = await self.clients[HOSTS[0]].escalations()
            except IronCurtainError as e:
                waiting = []
                self.failed[e.code] += 1
            for view in waiting:
                if view.number not in self.told:
                    self.told[view.number] = []
                    racing[view.number] = Deferred.fromCoroutine(self._decide(view))
            await deferLater(self._reactor, 0.005)
        await DeferredList(list(racing.values()), fireOnOneErrback=True)

    async def _decide(self, view: EscalationView) -> None:
        done: list[str] = []
        at_once = [Deferred.fromCoroutine(self._attempt(name, view, done)) for name in HOSTS]
        await DeferredList(at_once, fireOnOneErrback=True)

    async def _attempt(self, name: str, view: EscalationView, done: list[str]) -> None:
        """Decide on one host, again and again until it is told that it, or another one, has decided."""
        await deferLater(self._reactor, self._chance.uniform(0, HEAD_START) * (2 if name == HOSTS[0] else 1))
        while True:
            client = self.clients[name]
            asked = Deferred.fromCoroutine(client.decide(view.number, Outcome.APPROVED, view.digest))
            try:
                await asked.addTimeout(PATIENCE, self._reactor)
            except TimeoutError:
                self.failed["no answer in time"] += 1
            except IronCurtainError as e:
                if e.code == StaleDecision.code:
                    return
                self.failed[e.code] += 1
            else:
                self.told[view.number].append(name)
                done.append(name)
                return
            if done:  # another one was told so
                return
            await deferLater(self._reactor, AGAIN)


def disturb(fleet: Fleet, chance: random.Random, done: list[str]) -> None:
    """Kill or stop something for a while, and have it begin again."""
    what, seconds = chance.choice(("kill node", "stop node", "kill member", "stop member")), chance.uniform(0.5, 3)
    done.append(what)
    if what.endswith("node"):
        node = chance.choice(fleet.cluster.nodes)
        if what == "stop node":
            node.send(signal.SIGSTOP)
            time.sleep(seconds)
            node.send(signal.SIGCONT)
        else:
            node.end()
            time.sleep(seconds)
            node.begin()
        return
    host = fleet.hosts[chance.choice(HOSTS[1:])]
    assert host.daemon is not None
    if what == "stop member":
        host.daemon.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        host.daemon.send_signal(signal.SIGCONT)
    else:
        host.end(signal.SIGKILL)
        time.sleep(seconds)
        host.launch()


def ask(fleet: Fleet, count: int) -> Command:
    """:returns: a session of the first host that asks so many times."""
    owner = fleet.hosts[HOSTS[0]]
    file = owner.product.person / "names.txt"
    file.write_text("Ada")
    code = f"for number in range({count}):\n    filesystem.read_text_file({str(file)!r}, head=number + 1)"
    script = owner.product.script({"text": "Let me look.", "code": code}, {"text": "All done."})
    return owner.product.start("start", "--backend", script, "Read it", stdin=subprocess.DEVNULL)


def judge(fleet: Fleet, race: Race) -> collections.Counter[str]:
    """
    :returns: how many questions each host has decided, as the audit logs have it.
    :raises AssertionError: a question has no decision or two, or another than was told.
    """
    decided: dict[int, list[str]] = {}
    for path in fleet.hosts[HOSTS[0]].home.sessions.glob("*/audit.jsonl"):
        for record in map(json.loads, path.read_bytes().splitlines()):
            if record["kind"] == "decision":
                decided.setdefault(record["number"], []).append(f"{record['outcome']} {record['by']}")
    right = {name: f"approved {ME}{f'@{name}' if name != HOSTS[0] else ''}" for name in HOSTS}
    wins: collections.Counter[str] = collections.Counter()
    for number, told in race.told.items():
        assert len(decided.get(number, [])) == 1, f"question {number} has the decisions {decided.get(number)}"
        assert len(told) <= 1, f"of question {number}, {told} were told that they have decided it"
        (by,) = decided[number]
        assert not told or by == right[told[0]], f"question {number}: {told} was told, and {by} is recorded"
        wins[next(name for name, each in right.items() if each == by)] += 1
    assert decided.keys() == race.told.keys(), "a question was never seen"
    return wins


async def measure(reactor: Any, options: argparse.Namespace) -> None:
    """Race, and judge."""
    fleet, disturbed = await deferToThread(Fleet, HOSTS, [Site()] * 3), list[str]()
    try:
        await deferToThread(fleet.begin)
        each = options.decisions // options.sessions
        sessions = [await deferToThread(ask, fleet, each) for _ in range(options.sessions)]
        race, over, chance = Race(reactor, fleet), list[bool](), random.Random(2)

        def trouble() -> None:
            while not over:
                disturb(fleet, chance, disturbed)
                time.sleep(options.every * chance.uniform(0.5, 1))

        troubled, start = deferToThread(trouble), time.monotonic()
        for session in sessions:
            deferToThread(session.communicate)  # it would wait for whoever reads what it writes
        try:
            await race.run(sessions)
        finally:
            over.append(True)
            await troubled
        seconds = time.monotonic() - start
        wins = judge(fleet, race)
        assert sum(wins.values()) == each * options.sessions, f"{sum(wins.values())} decisions are recorded"
        verified = await deferToThread(fleet.hosts[HOSTS[0]].product.run, "audit", "verify")
        assert verified.returncode == 0, verified.stdout
        untold = sum(not told for told in race.told.values())
        print(f"{sum(wins.values())} decisions in {seconds:.0f} s, one for each question: won by {dict(wins)}")
        print(f"whose winner did not get the answer: {untold}; attempts that failed: {dict(race.failed)}")
        print(f"disturbed {len(disturbed)} times: {dict(collections.Counter(disturbed))}; the audit logs are intact")
    finally:
        await deferToThread(fleet.end)


def main() -> None:
    """Read the command line, and race."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=10_000, help="number of questions")
    parser.add_argument("--sessions", type=int, default=4, help="number of sessions that ask at the same time")
    parser.add_argument("--every", type=float, default=6.0, help="seconds between two disturbances, at most")
    options = parse(parser, decisions=20, sessions=2, every=1.0)
    react(lambda reactor: Deferred.fromCoroutine(measure(reactor, options)))


if __name__ == "__main__":
    main()
